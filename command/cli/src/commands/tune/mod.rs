//! `seawall tune DATABASE`: what to change in its settings under Seawall, and why; `seawall tune qemu`: with what options a
//! virtual machine starts. Changes nothing.
//!
//! Input: the policy the database runs with, and what the pool's medium survives. Output: settings with their
//! reasons, what must be true for them to be safe, and the way back. Without a pool on this machine the medium
//! is unknown, and advice that needs one that survives a power cut is withheld.

mod advice;
mod machine;
mod mariadb;
mod near;
mod postgres;
mod qemu;

use std::path::PathBuf;

use anyhow::Result;
use seawall_media::Medium;
use seawall_wire::shm::{Policy, Preset};

use advice::{Advice, Setting};

use crate::{pool, show};

/// Advise on settings
#[derive(clap::Args)]
pub struct Tune {
    /// The database; or qemu, for a virtual machine on this host
    #[arg(value_parser = ["postgres", "mariadb", "qemu"])]
    database: String,
    /// The pool it will run with; without it your default pool
    #[arg(long)]
    pool: Option<PathBuf>,
    /// The policy it will run with
    #[arg(long, default_value = "tail", value_parser = ["tail", "atomic"])]
    policy: String,
    /// Its data lies in a directory of `seawall mount`
    #[arg(long)]
    mount: bool,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    near: near::Goal,
    #[command(flatten)]
    qemu: qemu::Wanted,
}

/// Prints the advice.
///
/// # Errors
/// If a pool was named and cannot be looked at.
pub fn tune(how: &Tune) -> Result<()> {
    if how.database == "qemu" {
        return qemu::tune(&how.qemu, how.json);
    }
    let policy = Policy::from_name(&how.policy).unwrap_or_default();
    let medium = match (pool::existing(how.pool.as_deref()), &how.pool) {
        (Ok(path), _) => Some(pool::medium(&path)?.0),
        (Err(error), Some(_)) => return Err(error),
        (Err(_), None) => None,
    };
    let mut advice = match how.database.as_str() {
        "mariadb" => mariadb::advise(policy, medium),
        _ => postgres::advise(policy, medium, how.mount),
    };
    advice.machine = machine::advise(medium, how.mount);
    let preset = if how.database == "mariadb" { Preset::Mariadb } else { Preset::Postgres };
    advice.recovery = near::advise(&how.near, preset)?;
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
    advice.recovery.iter().for_each(near::Near::tell);
    settings("\nThis machine's settings", &advice.machine);
    settings("\nNot advised here", &advice.not_advised);
    list("\nWhat must be true", &advice.requires);
    list("\nThe way back, before it runs without Seawall", &advice.way_back);
    outln!("\nNothing was changed.");
}

fn settings(title: &str, all: &[Setting]) {
    if !all.is_empty() {
        outln!("{title}");
    }
    for setting in all {
        outln!("  {} = {}\n      {}", setting.name, setting.value, setting.why);
    }
}

fn list(title: &str, all: &[&str]) {
    if !all.is_empty() {
        outln!("{title}");
    }
    all.iter().enumerate().for_each(|(i, line)| outln!("  {}. {line}", i + 1));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn preloaded(policy: Policy, medium: Option<Medium>) -> Advice {
        postgres::advise(policy, medium, false)
    }

    /// How a database's advice is made, and the setting that protects its pages by a copy.
    type Case = (fn(Policy, Option<Medium>) -> Advice, &'static str);

    /// Without copies a power cut tears pages unless every write is logged on a medium that survives it.
    #[test]
    fn copies_of_pages_go_only_under_atomic_on_a_medium_that_survives() {
        let all: [Case; 2] = [(preloaded, "full_page_writes"), (mariadb::advise, "innodb_doublewrite")];
        for (advise, name) in all {
            for policy in [Policy::Tail, Policy::Atomic] {
                for medium in [None, Some(Medium::Emulated), Some(Medium::Pmem)] {
                    let advice = advise(policy, medium);
                    let is_off = |s: &Setting| s.name == name && s.value.eq_ignore_ascii_case("off");
                    let off = advice.settings.iter().any(is_off);
                    assert_eq!(off, policy == Policy::Atomic && medium == Some(Medium::Pmem), "{advice:?}");
                    assert_eq!(advice.way_back.is_empty(), policy == Policy::Tail);
                }
            }
        }
    }

    #[test]
    fn one_request_a_commit_on_the_mount_where_it_has_that_way() {
        for (policy, on_mount) in [(Policy::Tail, false), (Policy::Tail, true), (Policy::Atomic, true)] {
            let settings = postgres::advise(policy, None, on_mount).settings;
            let method = settings.iter().find(|s| s.name == "wal_sync_method").map(|s| s.value);
            let one_request = (policy, on_mount) == (Policy::Tail, true);
            assert_eq!(method, Some(if one_request { "open_datasync" } else { "fdatasync" }));
        }
    }
}
