//! What advice is made of, for every database.

use seawall_media::Medium;
use seawall_wire::shm::Policy;
use serde::Serialize;

use super::near::Near;

/// One setting.
#[derive(Debug, Serialize)]
pub struct Setting {
    pub name: &'static str,
    pub value: &'static str,
    pub why: &'static str,
}

/// The whole advice.
#[derive(Debug, Serialize)]
pub struct Advice {
    pub database: &'static str,
    pub policy: &'static str,
    /// `None`: there is no pool to look at.
    pub medium: Option<&'static str>,
    pub settings: Vec<Setting>,
    /// What keeps a crash short, if that is asked.
    pub recovery: Option<Near>,
    /// Of this machine, not of the database.
    pub machine: Vec<Setting>,
    /// Considered, and not advised.
    pub not_advised: Vec<Setting>,
    /// What must be true.
    pub requires: Vec<&'static str>,
    /// Before the database runs without Seawall again.
    pub way_back: Vec<&'static str>,
}

/// How a database protects its pages by a copy of each, and what goes with switching that off.
pub struct Pages {
    pub database: &'static str,
    pub off: Setting,
    pub on: Setting,
    /// Why it stays on where the log does not survive a power cut.
    pub emulated: Setting,
    pub requires: &'static [&'static str],
    pub way_back: &'static [&'static str],
}

impl Pages {
    /// The advice on them, before the one on the database's other settings.
    pub fn advise(self, policy: Policy, medium: Option<Medium>, mut settings: Vec<Setting>) -> Advice {
        let mut not_advised = Vec::new();
        match (policy, survives(medium)) {
            (Policy::Atomic, true) => settings.insert(0, self.off),
            (Policy::Atomic, false) => not_advised.push(self.emulated),
            (Policy::Tail, _) => settings.insert(0, self.on),
        }
        let atomic = policy == Policy::Atomic;
        Advice {
            database: self.database,
            policy: policy.name(),
            medium: medium.map(Medium::name),
            settings,
            recovery: None,
            machine: Vec::new(),
            not_advised,
            requires: if atomic { self.requires.to_vec() } else { Vec::new() },
            way_back: if atomic { self.way_back.to_vec() } else { Vec::new() },
        }
    }
}

/// True if this medium keeps the log when the power fails. Without a pool to look at: no.
pub fn survives(medium: Option<Medium>) -> bool {
    medium.is_some_and(|medium| medium != Medium::Emulated)
}
