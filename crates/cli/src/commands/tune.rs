//! `seawall tune postgres`: what to change in PostgreSQL's settings under Seawall, and why. Changes nothing.
//!
//! Input: the policy the database runs with, and what the pool's medium survives. Output: settings with their
//! reasons, what must be true for them to be safe, and the way back. Without a pool on this machine the medium
//! is unknown, and advice that needs one that survives a power cut is withheld.

use std::path::PathBuf;

use anyhow::Result;
use seawall_media::Medium;
use seawall_wire::shm::Policy;
use serde::Serialize;

use crate::{pool, show};

/// Advise on settings
#[derive(clap::Args)]
pub struct Tune {
    /// The database
    #[arg(value_parser = ["postgres"])]
    database: String,
    /// The pool it will run with; without it your default pool
    #[arg(long)]
    pool: Option<PathBuf>,
    /// The policy it will run with
    #[arg(long, default_value = "tail", value_parser = ["tail", "atomic"])]
    policy: String,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}

/// One setting.
#[derive(Debug, Serialize)]
struct Setting {
    name: &'static str,
    value: &'static str,
    why: &'static str,
}

/// Everything that is said.
#[derive(Debug, Serialize)]
struct Advice {
    database: &'static str,
    policy: &'static str,
    /// `None`: there is no pool to look at.
    medium: Option<&'static str>,
    settings: Vec<Setting>,
    /// Considered, and not advised.
    not_advised: Vec<Setting>,
    /// What must be true.
    requires: Vec<&'static str>,
    /// Before the database runs without Seawall again.
    way_back: Vec<&'static str>,
}

const FULL_PAGES_OFF: Setting = Setting {
    name: "full_page_writes",
    value: "off",
    why: "no page can tear: every write of a data file is in the log before it is in the file, so the copy of \
          each page that PostgreSQL puts into its WAL after a checkpoint protects from nothing any more",
};
const FULL_PAGES_ON: Setting = Setting {
    name: "full_page_writes",
    value: "on",
    why: "leave it on: under --policy tail data files are the kernel's, and a power cut can tear their pages",
};
const FULL_PAGES_EMULATED: Setting = Setting {
    name: "full_page_writes",
    value: "off",
    why: "only on a medium that survives a power cut: on this one the log is gone with the power, and torn pages \
          stay torn. To measure what it would bring, on data you can lose, it may be set",
};

/// The same on every medium and with every policy.
fn always() -> Vec<Setting> {
    vec![
        Setting {
            name: "synchronous_commit",
            value: "on",
            why: "its wait for the disk is what Seawall takes away: there is nothing to gain from off any more",
        },
        Setting {
            name: "wal_sync_method",
            value: "fdatasync",
            why: "the default on Linux; a tracked segment's fdatasync returns at once. open_datasync writes the \
                  same and syncs as often",
        },
        Setting {
            name: "wal_recycle",
            value: "on",
            why: "the default: a renamed segment is on disk already, and its first fsync after that is the only \
                  real one; a new one needs several",
        },
        Setting {
            name: "wal_init_zero",
            value: "on",
            why: "the default: zeros are logged as a length, and overwriting an allocated file costs the file \
                  system less than extending one",
        },
        Setting {
            name: "commit_delay",
            value: "0",
            why: "the default: it makes commits wait for others to share a sync, and there is no sync to share",
        },
    ]
}

fn advise(policy: Policy, medium: Option<Medium>) -> Advice {
    let survives = medium.is_some_and(|medium| medium != Medium::Emulated);
    let (mut settings, mut not_advised) = (always(), Vec::new());
    match (policy, survives) {
        (Policy::Atomic, true) => settings.insert(0, FULL_PAGES_OFF),
        (Policy::Atomic, false) => not_advised.push(FULL_PAGES_EMULATED),
        (Policy::Tail, _) => settings.insert(0, FULL_PAGES_ON),
    }
    let atomic = policy == Policy::Atomic;
    let requires: &[&str] = if atomic { &REQUIRES } else { &[] };
    let way_back: &[&str] = if atomic { &WAY_BACK } else { &[] };
    Advice {
        database: "postgres",
        policy: policy.name(),
        medium: medium.map(Medium::name),
        settings,
        not_advised,
        requires: requires.to_vec(),
        way_back: way_back.to_vec(),
    }
}

const REQUIRES: [&str; 6] = [
    "the server always runs under `seawall run --policy atomic`, its crash recovery too: after a crash start it \
     that way, not bare after `seawall recover`",
    "switch full_page_writes off only when it runs that way already, and CHECKPOINT right before",
    "`seawall status` shows no file outside the log; a daemon that is gone, a full log whose disk refuses, or a \
     mapped file puts one outside, and its pages can tear until it is back. Keep an eye on that line",
    "tablespaces existed when the server was started; a new one is covered from the next start on",
    "data checksums are on (pg_checksums --enable): what is torn all the same is found, not believed",
    "base backups still need full pages: pg_basebackup switches them on by itself while it runs",
];

const WAY_BACK: [&str; 4] = [
    "ALTER SYSTEM SET full_page_writes = on",
    "SELECT pg_reload_conf()",
    "CHECKPOINT: from here on the WAL has full pages of everything that recovery may need",
    "stop the server; now it may start without Seawall",
];

/// Prints the advice.
///
/// # Errors
/// If a pool was named and cannot be looked at.
pub fn tune(how: &Tune) -> Result<()> {
    let policy = Policy::from_name(&how.policy).unwrap_or_default();
    let medium = match (pool::existing(how.pool.as_deref()), &how.pool) {
        (Ok(path), _) => Some(pool::medium(&path)?.0),
        (Err(error), Some(_)) => return Err(error),
        (Err(_), None) => None,
    };
    let advice = advise(policy, medium);
    if how.json {
        return show::json(&advice);
    }
    tell(&advice, medium);
    Ok(())
}

fn tell(advice: &Advice, medium: Option<Medium>) {
    let medium = medium.map_or("none yet: name the pool with --pool", Medium::label);
    show::facts(&[("policy", advice.policy.into()), ("medium", medium.into())]);
    settings("\nSettings", &advice.settings);
    settings("\nNot advised here", &advice.not_advised);
    list("\nWhat must be true", &advice.requires);
    list("\nThe way back, before it runs without Seawall", &advice.way_back);
    println!("\nNothing was changed.");
}

fn settings(title: &str, all: &[Setting]) {
    if !all.is_empty() {
        println!("{title}");
    }
    for setting in all {
        println!("  {} = {}\n      {}", setting.name, setting.value, setting.why);
    }
}

fn list(title: &str, all: &[&str]) {
    if !all.is_empty() {
        println!("{title}");
    }
    all.iter().enumerate().for_each(|(i, line)| println!("  {}. {line}", i + 1));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Without full pages a power cut tears pages unless every write is logged on a medium that survives it.
    #[test]
    fn full_pages_go_only_under_atomic_on_a_medium_that_survives() {
        for policy in [Policy::Tail, Policy::Atomic] {
            for medium in [None, Some(Medium::Emulated), Some(Medium::Pmem)] {
                let advice = advise(policy, medium);
                let off = advice.settings.iter().any(|s| s.name == "full_page_writes" && s.value == "off");
                assert_eq!(off, policy == Policy::Atomic && medium == Some(Medium::Pmem), "{advice:?}");
                assert_eq!(advice.way_back.is_empty(), policy == Policy::Tail);
            }
        }
    }
}
