//! A case: a question, the configurations that answer it, the load, the measures, the controls.
//!
//! Input: a small TOML file, one of those built in ([`builtin`]) or the user's own. Output: a [`Case`] that can be
//! run, or an error that names file, line and key and says what is allowed ([`parse()`]). Adding a case is adding a
//! file; nothing here runs anything.

pub mod builtin;
mod check;
mod parse;
mod schema;
#[cfg(test)]
mod tests;

pub use builtin::{find, table};
pub use parse::{CaseError, parse};
pub use schema::{
    Configuration, Crash, Devices, Front, Measure, Medium, Pgbench, PolicyName, Role, Slob, Source, Tprocc,
    Wal,
};

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

/// A case, as its file says it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// One word: its name on the command line.
    pub name: Spanned<String>,
    /// In a few words.
    pub title: String,
    /// What it answers.
    pub question: String,
    /// How often each configuration is measured.
    #[serde(default = "three")]
    pub rounds: Spanned<usize>,
    /// How long one turn of load lasts, seconds.
    pub seconds: Spanned<u64>,
    /// What is measured; the first one is what is judged.
    pub measures: Spanned<Vec<Measure>>,
    /// The wait that the candidates make shorter, by the name DBAs know: its share of DB time bounds any gain.
    #[serde(default = "commit_wait")]
    pub sped_up: String,
    /// Configurations that are measured twice under two names: how much equal things differ in this very run.
    pub controls: Vec<Spanned<String>>,
    /// Whether sessions are sampled during a turn (ten times a second).
    #[serde(default = "yes")]
    pub sampled: bool,
    /// Settings of the database, equal in all configurations.
    #[serde(default)]
    pub settings: BTreeMap<String, Setting>,
    /// The load: one of the three.
    pub pgbench: Option<Pgbench>,
    /// The load: one of the three.
    pub slob: Option<Slob>,
    /// The load: one of the three.
    pub tprocc: Option<Tprocc>,
    /// If devices of a known speed stand in for disks.
    pub devices: Option<Devices>,
    /// If the database is killed under load.
    pub crash: Option<Crash>,
    /// What is compared.
    #[serde(rename = "configuration")]
    pub configurations: Vec<Spanned<Configuration>>,
    /// What others found, to be shown beside it.
    pub source: Option<Source>,
}

/// A value of a setting: a word, a number, or true and false.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub enum Setting {
    Word(String),
    Number(i64),
    Switch(bool),
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Setting::Word(word) => f.write_str(word),
            Setting::Number(number) => number.fmt(f),
            Setting::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
        }
    }
}

fn three() -> Spanned<usize> {
    Spanned::new(0..0, 3)
}

fn yes() -> bool {
    true
}

fn commit_wait() -> String {
    "log file sync".to_owned()
}

impl Case {
    /// Its name.
    pub fn name(&self) -> &str {
        self.name.get_ref()
    }

    /// Everything that is measured, controls among it, in order: a control stands behind what it repeats.
    pub fn expanded(&self) -> Vec<Configuration> {
        let mut all = Vec::new();
        for configuration in self.configurations.iter().map(Spanned::get_ref) {
            all.push(configuration.clone());
            if self.controls.iter().any(|name| *name.get_ref() == configuration.name) {
                all.push(configuration.again());
            }
        }
        all
    }

    /// What all others are compared with.
    pub fn baseline(&self) -> &Configuration {
        let mut all = self.configurations.iter().map(Spanned::get_ref);
        all.find(|c| c.role == Role::Baseline).expect("checked when it was read: one is the baseline")
    }

    /// The measure that is judged.
    pub fn judged(&self) -> Measure {
        self.measures.get_ref()[0]
    }

    /// What the load's tables take on the disk, bytes.
    pub fn table_bytes(&self) -> u64 {
        let pgbench = self.pgbench.as_ref().map_or(0, |p| u64::from(p.scale) << 24);
        let slob = self.slob.as_ref().and_then(|s| s.bytes().ok()).unwrap_or(0);
        pgbench + slob + self.tprocc.as_ref().map_or(0, Tprocc::bytes)
    }

    /// The load in words, commit mode named.
    pub fn load_in_words(&self) -> String {
        let pgbench = self.pgbench.as_ref().map(Pgbench::in_words);
        let slob = || self.slob.as_ref().map(Slob::in_words);
        pgbench.or_else(slob).or_else(|| self.tprocc.as_ref().map(Tprocc::in_words)).unwrap_or_default()
    }
}
