//! `seawall-load`: loads that check their own data. Results on standard output.

mod cli;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use cli::output::print;
use seawall_load::ledger::Verdict;
use seawall_load::write::verify::{self, Expectation};
use seawall_load::{etcd, files, mariadb, pg, redis, sqlite, stream, write};

/// Loads that check their own data
///
/// Each load runs on an unmodified database (or on plain files) and knows what it was told to be durable;
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
    CheckSqlite(sqlite::CheckOptions),
    /// Commit rows in PostgreSQL and note each acknowledged one in a ledger
    LedgerPg(pg::Options),
    /// Compare the ledger of `ledger-pg` with the database
    CheckPg(pg::CheckOptions),
    /// Commit transfers in MariaDB and note each acknowledged one in a ledger
    LedgerMariadb(mariadb::Options),
    /// Compare the ledger of `ledger-mariadb` with the database
    CheckMariadb(mariadb::CheckOptions),
    /// Execute transactions in Redis and note each acknowledged one in a ledger
    LedgerRedis(redis::Options),
    /// Compare the ledger of `ledger-redis` with the server
    CheckRedis(redis::CheckOptions),
    /// Put keys in etcd and note each acknowledged one in a ledger
    LedgerEtcd(etcd::Options),
    /// Compare the ledger of `ledger-etcd` with the server
    CheckEtcd(etcd::CheckOptions),
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
        Command::CheckSqlite(options) => judge(&sqlite::check(&options)?),
        Command::LedgerPg(options) => print(&pg::run(&options)?).map(|()| true),
        Command::CheckPg(options) => judge(&pg::check(&options)?),
        Command::LedgerMariadb(options) => print(&mariadb::run(&options)?).map(|()| true),
        Command::CheckMariadb(options) => judge(&mariadb::check(&options)?),
        Command::LedgerRedis(options) => print(&redis::run(&options)?).map(|()| true),
        Command::CheckRedis(options) => judge(&redis::check(&options)?),
        Command::LedgerEtcd(options) => print(&etcd::run(&options)?).map(|()| true),
        Command::CheckEtcd(options) => judge(&etcd::check(&options)?),
    }
}

fn judge(verdict: &Verdict) -> Result<bool> {
    print(verdict)?;
    Ok(verdict.is_clean())
}
