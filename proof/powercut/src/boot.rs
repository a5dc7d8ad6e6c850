//! What a machine is started for, and what it tells.
//!
//! A [`Boot`] is its first process's command line; each [`Said`] is a line of JSON on its standard output.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use seawall_load::ledger::Verdict;
use serde::{Deserialize, Serialize};

use crate::front::Front;
use crate::medium::Medium;
use crate::outside::BASE;
use crate::plan::{Plan, Side};

/// What a machine is started for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Task {
    /// Make the database, without Seawall, and shut down in order.
    Install,
    /// Run the load until the power fails.
    Load,
    /// Recover, check everything, shut down in order.
    Check,
}

/// One start of the machine.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Boot {
    /// The disk.
    pub disk: PathBuf,
    /// What random/boot_id says.
    pub boot_id: String,
    /// What to do.
    pub task: Task,
    /// With what.
    pub plan: Plan,
}

/// What a check found.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Checked {
    /// The ledger against the database.
    pub verdict: Verdict,
    /// Everything else that was wrong.
    pub problems: Vec<String>,
    /// Records replayed from the log, if that is known.
    pub replayed: Option<u64>,
}

/// What a machine does with a database.
pub struct Acts {
    /// Makes it, without Seawall.
    pub install: fn(&Boot) -> Result<()>,
    /// Commits until the power fails.
    pub load: fn(&Boot) -> Result<()>,
    /// Recovers and checks.
    pub check: fn(&Boot) -> Result<Checked>,
}

/// What the machine tells the campaign.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Said {
    /// The first commit of this boot was acknowledged.
    Working,
    /// Checked, and shut down.
    Checked(Checked),
    /// Installed, and shut down.
    Installed,
    /// It cannot go on, and why.
    Failed(String),
}

impl Boot {
    /// A program of ours.
    pub fn program(&self, name: &str) -> PathBuf {
        Path::new(BASE).join("bin").join(name)
    }

    /// `seawall-load WORDS --ledger LEDGER`.
    pub fn load(&self, words: &[&str]) -> Command {
        let mut load = Command::new(self.program("seawall-load"));
        load.args(words).arg("--ledger").arg(self.plan.ledger());
        load
    }

    /// `seawall WORD --pool POOL`.
    pub fn seawall(&self, word: &str) -> Command {
        let mut command = Command::new(self.program("seawall"));
        command.arg(word).arg("--pool").arg(self.plan.pool());
        command
    }

    /// `seawall run`, up to its `--`.
    pub fn seawall_run(&self) -> Command {
        let mut command = Command::new(self.program("seawall"));
        command.args(["run", "--quiet"]);
        self.with_log(&mut command);
        command
    }

    /// Names the log and its size, for whatever makes it on demand.
    pub fn with_log(&self, command: &mut Command) {
        let size = match self.plan.medium {
            Medium::Memory => {
                command.arg("--emulated").arg("--pool").arg(self.plan.pool());
                self.plan.pool_mib
            }
            Medium::Disk => {
                command.arg("--block").arg(self.plan.pool());
                // Three times as much lies on the disk.
                16
            }
        };
        command.arg("--size").arg(format!("{size}M"));
    }

    /// True if this side's database runs on a mount.
    pub fn is_mounted(&self, side: Side) -> bool {
        self.plan.front == Front::Mount && side.is_under_seawall()
    }
}

/// Tells the campaign.
pub fn say(said: &Said) -> Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string(said)?)?;
    Ok(out.flush()?)
}
