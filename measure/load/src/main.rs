//! `seawall-load`: loads that check their own data. Results on standard output.

mod cli;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use cli::output::print;
use seawall_load::etcd::{Etcd, Puts};
use seawall_load::ledger::Verdict;
use seawall_load::ledger_load::{Check, Load};
use seawall_load::mariadb::Mariadb;
use seawall_load::pg::Postgres;
use seawall_load::redis::Redis;
use seawall_load::sqlite::Sqlite;
use seawall_load::write::verify::{self, Expectation};
use seawall_load::{files, sqlite, stream, write};

/// Loads that check their own data
///
/// Each load runs on an unmodified database (or on plain files) and notes what was acknowledged as durable;
/// its `check` compares that with what is there. Results go to standard output, progress to standard error.
/// Exit code 0: done and right; 1: damage was found, or the run was cut short; 2: it could not run.
#[derive(Parser)]
#[command(version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The SLOB method: a row a block, work units through an index (PostgreSQL, MariaDB, SQLite)
    #[command(subcommand)]
    Slob(cli::slob::Slob),
    /// A TPROC-C-like mix: HammerDB's transactions and weights (PostgreSQL, MariaDB)
    #[command(subcommand)]
    Tprocc(cli::tprocc::Tprocc),
    /// Time write + fdatasync, then verify every block
    Write(write::Options),
    /// Read or write a whole file, and look at every page that is read
    Stream(stream::Options),
    /// Verify the blocks of an earlier `write --save-expectation`
    CheckWrite(CheckWrite),
    /// Write new files, rename them over others, remove them, and sync all of it each time
    Files(files::Options),
    /// Compare the ledger of `files` with the directory
    CheckFiles(files::CheckOptions),
    /// Insert and update in SQLite, one commit after another
    Sqlite(sqlite::Options),
    /// Compare the ledger of `sqlite` with the database
    CheckSqlite(Check<Sqlite>),
    /// Commit rows in PostgreSQL and note each acknowledged one in a ledger
    LedgerPg(Load<Postgres>),
    /// Compare the ledger of `ledger-pg` with the database
    CheckPg(Check<Postgres>),
    /// Commit transfers in MariaDB and note each acknowledged one in a ledger
    LedgerMariadb(Load<Mariadb>),
    /// Compare the ledger of `ledger-mariadb` with the database
    CheckMariadb(Check<Mariadb>),
    /// Execute transactions in Redis and note each acknowledged one in a ledger
    LedgerRedis(Load<Redis>),
    /// Compare the ledger of `ledger-redis` with the server
    CheckRedis(Check<Redis>),
    /// Put keys in etcd and note each acknowledged one in a ledger
    LedgerEtcd(Load<Puts>),
    /// Compare the ledger of `ledger-etcd` with the server
    CheckEtcd(Check<Etcd>),
}

#[derive(Args)]
struct CheckWrite {
    /// Directory of the data files
    #[arg(long)]
    dir: PathBuf,
    /// What `write --save-expectation` saved
    #[arg(long)]
    expectation: PathBuf,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("seawall-load: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Runs one command; `false` means: it ran, and found damage.
fn run(command: Command) -> Result<bool> {
    match command {
        Command::Slob(slob) => slob.run(),
        Command::Tprocc(tprocc) => tprocc.run(),
        Command::Write(options) => {
            let report = write::run(&options)?;
            print(&report)?;
            Ok(report.verified.errors == 0)
        }
        Command::Stream(options) => print(&stream::run(&options)?).map(|()| true),
        Command::CheckWrite(options) => {
            let checked = verify::check(&options.dir, &Expectation::load(&options.expectation)?)?;
            print(&checked)?;
            Ok(checked.errors == 0)
        }
        Command::Files(options) => print(&files::run(&options)?).map(|()| true),
        Command::CheckFiles(options) => judge(&files::check(&options)?),
        Command::Sqlite(options) => print(&sqlite::run(&options)?).map(|()| true),
        Command::CheckSqlite(check) => judge(&check.verdict()?),
        Command::LedgerPg(load) => print(&load.run()?).map(|()| true),
        Command::CheckPg(check) => judge(&check.verdict()?),
        Command::LedgerMariadb(load) => print(&load.run()?).map(|()| true),
        Command::CheckMariadb(check) => judge(&check.verdict()?),
        Command::LedgerRedis(load) => print(&load.run()?).map(|()| true),
        Command::CheckRedis(check) => judge(&check.verdict()?),
        Command::LedgerEtcd(load) => print(&load.run()?).map(|()| true),
        Command::CheckEtcd(check) => judge(&check.verdict()?),
    }
}

fn judge(verdict: &Verdict) -> Result<bool> {
    print(verdict)?;
    Ok(verdict.is_clean())
}
