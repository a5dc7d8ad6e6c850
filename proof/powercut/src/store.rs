//! RocksDB and LMDB in a machine: made, put under load, recovered, checked. Their programs are
//! [`seawall_load::store`]'s.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use seawall_load::ledger::Verdict;
use seawall_load::store::{SETTINGS, Store};

use crate::boot::{Acts, Boot, Checked};
use crate::cut::{ledger_length, until_the_cut};
use crate::judge::{guard_problem, is_guard, judge};
use crate::outside::DATA;
use crate::place::Place;
use crate::plan::{Database, Side};
use crate::program::{self, FOREVER, LIMIT, command};

/// Which store this database is, if it is one.
pub fn of(database: Database) -> Option<Store> {
    match database {
        Database::Rocksdb => Some(Store::Rocksdb),
        Database::Lmdb => Some(Store::Lmdb),
        _ => None,
    }
}

fn store(boot: &Boot) -> Result<Store> {
    of(boot.plan.database).context("this database is not a store")
}

fn directory(store: Store) -> PathBuf {
    Path::new(DATA).join(store.name())
}

/// The file that a guard stands in for, and how the bare store refuses its text.
fn guard(store: Store) -> (PathBuf, &'static str) {
    let (name, refused) = match store {
        Store::Rocksdb => ("CURRENT", "CURRENT file corrupted"),
        Store::Lmdb => ("data.mdb", "not an LMDB file"),
    };
    (directory(store).join(name), refused)
}

/// What is done with it.
pub const ACTS: Acts = Acts { install, load, check };

/// An empty store.
fn install(boot: &Boot) -> Result<()> {
    fs::create_dir_all(directory(store(boot)?)).context("cannot create the store's directory")?;
    let place = place(boot, Side::Synced)?;
    program::run(run(boot, Side::Synced, &place, "0")?, "making the store", LIMIT).map(drop)
}

/// Commits until the power fails.
fn load(boot: &Boot) -> Result<()> {
    let before = ledger_length(boot);
    let place = place(boot, boot.plan.side)?;
    let mut commits = run(boot, boot.plan.side, &place, FOREVER)?;
    commits.arg(boot.plan.ledger());
    let mut load = program::start(commits, "the load")?;
    until_the_cut(boot, before, || load.must_run())
}

/// Recovers and checks.
fn check(boot: &Boot) -> Result<Checked> {
    let store = store(boot)?;
    let (file, refused) = guard(store);
    let bare = || {
        let bare = on(boot, Side::Synced, &place(boot, Side::Synced)?, &["check"])?;
        let ended = program::finish(bare, "the bare store behind the guard", LIMIT);
        Ok(guard_problem(ended, refused))
    };
    judge(
        boot,
        &directory(store),
        || is_guard(&file),
        bare,
        |side, problems| {
            let verdict = verdict(boot, side)?;
            problems.extend(own_checker_problem(store)?);
            Ok(verdict)
        },
    )
}

/// What is found, every value compared with its key.
fn verdict(boot: &Boot, side: Side) -> Result<Verdict> {
    let place = place(boot, side)?;
    let said = program::run(on(boot, side, &place, &["check"])?, "the store's check", LIMIT)?;
    place.leave(boot)?;
    Store::verdict(&said.stdout, &boot.plan.ledger())
}

/// The store's own checker. A sound LMDB is one that `mdb_copy -c`, which reads every page in use, can copy.
fn own_checker_problem(store: Store) -> Result<Option<String>> {
    let data = directory(store);
    let checker = match store {
        Store::Rocksdb => {
            let mut ldb = command("ldb", &["checkconsistency"]);
            ldb.arg(format!("--db={}", data.display()));
            ldb
        }
        Store::Lmdb => {
            let copy = Path::new("/tmp/copy");
            fs::create_dir(copy).context("cannot create a directory for a copy")?;
            let mut copier = command("mdb_copy", &["-c"]);
            copier.arg(&data).arg(copy);
            copier
        }
    };
    let what = checker.get_program().to_string_lossy().into_owned();
    Ok(program::finish(checker, &what, LIMIT)?.problem(&what))
}

/// The load, without a ledger.
fn run(boot: &Boot, side: Side, place: &Place, seconds: &str) -> Result<Command> {
    let sync = if side == Side::Unsafe { "nosync" } else { "sync" };
    on(boot, side, place, &["run", sync, seconds])
}

fn place(boot: &Boot, side: Side) -> Result<Place> {
    let name = store(boot)?.name();
    Place::of(boot, side, name, name)
}

/// The program as `side` runs it.
fn on(boot: &Boot, side: Side, place: &Place, arguments: &[&str]) -> Result<Command> {
    let store = store(boot)?;
    let mut command = place.command(boot, side, store.name(), &format!("seawall-{}", store.name()))?;
    command.arg(place.path()).args(arguments);
    let opened = boot.plan.settings.iter().map(|(_, value)| value.as_str());
    command.env(SETTINGS, opened.collect::<String>());
    Ok(command)
}

/// What a store's rounds need, for the check of what is installed. Building the program shows whether its library is.
pub fn installed(database: Database) -> Result<()> {
    let needed: &[(&str, &str)] = match of(database) {
        Some(Store::Rocksdb) => &[("cc", "--version"), ("ldb", "--version")],
        Some(Store::Lmdb) => &[("cc", "--version"), ("mdb_copy", "-V")],
        None => &[],
    };
    needed.iter().try_for_each(|(program, harmless)| program::installed(program, harmless))
}
