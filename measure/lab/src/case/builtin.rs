//! The cases that come with the program, and cases in files.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use super::{Case, parse};

/// Name and text of each; `--all` runs them in this order, but for those that say `by_name`.
pub const CASES: [(&str, &str); 35] = [
    ("redo", include_str!("../../cases/redo.toml")),
    ("commits", include_str!("../../cases/commits.toml")),
    ("tprocc", include_str!("../../cases/tprocc.toml")),
    ("restart", include_str!("../../cases/restart.toml")),
    ("restart-cut", include_str!("../../cases/restart-cut.toml")),
    ("restart-slob", include_str!("../../cases/restart-slob.toml")),
    ("restart-mariadb", include_str!("../../cases/restart-mariadb.toml")),
    ("cores", include_str!("../../cases/cores.toml")),
    ("tail", include_str!("../../cases/tail.toml")),
    ("layout", include_str!("../../cases/layout.toml")),
    ("cache", include_str!("../../cases/cache.toml")),
    ("capture", include_str!("../../cases/capture.toml")),
    ("mariadb", include_str!("../../cases/mariadb.toml")),
    ("redis", include_str!("../../cases/redis.toml")),
    ("rocksdb", include_str!("../../cases/rocksdb.toml")),
    ("rocksdb-programs", include_str!("../../cases/rocksdb-programs.toml")),
    ("sqlite", include_str!("../../cases/sqlite.toml")),
    ("sqlite-delete", include_str!("../../cases/sqlite-delete.toml")),
    ("sqlite-truncate", include_str!("../../cases/sqlite-truncate.toml")),
    ("sqlite-persist", include_str!("../../cases/sqlite-persist.toml")),
    ("sqlite-programs", include_str!("../../cases/sqlite-programs.toml")),
    ("lmdb", include_str!("../../cases/lmdb.toml")),
    ("names-ext4", include_str!("../../cases/names-ext4.toml")),
    ("names-xfs", include_str!("../../cases/names-xfs.toml")),
    ("parts-ext4", include_str!("../../cases/parts-ext4.toml")),
    ("definitions-filled", include_str!("../../cases/definitions-filled.toml")),
    ("definitions-postgres", include_str!("../../cases/definitions-postgres.toml")),
    ("definitions-mariadb", include_str!("../../cases/definitions-mariadb.toml")),
    ("etcd", include_str!("../../cases/etcd.toml")),
    ("mount", include_str!("../../cases/mount.toml")),
    ("atomic", include_str!("../../cases/atomic.toml")),
    ("atomic-mariadb", include_str!("../../cases/atomic-mariadb.toml")),
    ("slow-disk", include_str!("../../cases/slow-disk.toml")),
    ("replicated", include_str!("../../cases/replicated.toml")),
    ("replicated-redis", include_str!("../../cases/replicated-redis.toml")),
];

/// A case and the text it was read from.
pub struct Found {
    pub case: Case,
    pub text: String,
}

/// A case by its name, or in a file.
///
/// # Errors
/// If there is none, or if there is a mistake in it.
pub fn find(name: &str) -> Result<Found> {
    let (file, text) = match CASES.iter().find(|(known, _)| *known == name) {
        Some((known, text)) => (format!("{known}.toml"), (*text).to_owned()),
        None if name.contains('/') || Path::new(name).extension().is_some() => (
            name.to_owned(),
            fs::read_to_string(name).with_context(|| format!("cannot read the case {name}"))?,
        ),
        None => {
            let known: Vec<_> = CASES.iter().map(|(name, _)| *name).collect();
            bail!(
                "there is no case {name:?}: name one of {}, or give the path of a file (./{name}.toml)",
                known.join(", ")
            )
        }
    };
    Ok(Found { case: parse(&file, &text)?, text })
}

/// All that come with the program.
///
/// # Errors
/// If there is a mistake in one.
pub fn all() -> Result<Vec<Found>> {
    CASES.iter().map(|(name, _)| find(name)).collect()
}

/// What `--all` runs.
///
/// # Errors
/// If there is a mistake in one.
pub fn of_all() -> Result<Vec<Found>> {
    Ok(all()?.into_iter().filter(|found| !found.case.by_name).collect())
}

/// About how long cases take, as their files say, seconds.
pub fn planned_seconds(cases: &[Found]) -> u64 {
    cases.iter().map(|found| planned(&found.case)).sum()
}

fn planned(case: &Case) -> u64 {
    case.planned_seconds(*case.rounds.get_ref(), *case.seconds.get_ref())
}

/// `4 min 40 s`
fn minutes(seconds: u64) -> String {
    format!("{} min {} s", seconds / 60, seconds % 60)
}

/// `list`.
///
/// # Errors
/// If there is a mistake in a case.
pub fn list() -> Result<()> {
    for Found { case, .. } in all()? {
        outln!("{}: {}", case.name(), case.question);
        outln!(
            "    {}; {} rounds of {} s, about {}{}",
            case.load().in_words(),
            case.rounds.get_ref(),
            case.seconds.get_ref(),
            minutes(planned(&case)),
            if case.by_name { "; run only by its name, not with --all" } else { "" }
        );
        for configuration in case.expanded() {
            outln!("    {:<22} {}", configuration.name, configuration.title);
        }
        outln!();
    }
    outln!("--all takes about {} on two cores.", minutes(planned_seconds(&of_all()?)));
    outln!("A case of your own: a file like measure/lab/cases/redo.toml; `seawall lab run ./mine.toml`.");
    Ok(())
}

/// The table of docs/measure/LAB.md.
///
/// # Errors
/// If there is a mistake in a case.
pub(super) fn table() -> Result<String> {
    let mut out = String::from("\n| case | question | configurations | load |\n|---|---|---|---|\n");
    for Found { case, .. } in all()? {
        let names: Vec<_> = case.configurations.iter().map(|c| format!("`{}`", c.get_ref().name)).collect();
        let (name, question) = (case.name(), &case.question);
        out += &format!(
            "| [`{name}`](../../measure/lab/cases/{name}.toml) | {question} | {} | {} |\n",
            names.join(", "),
            case.load().in_words()
        );
    }
    Ok(out + "\n")
}
