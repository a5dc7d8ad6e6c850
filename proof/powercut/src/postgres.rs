//! PostgreSQL in a machine: installed, put under load, recovered, checked.
//!
//! The cluster has data checksums and segments of 1 MiB, so that a short load creates, recycles, renames and
//! removes many of them. Beside the ledger's clients run pgbench, whose balances must add up, and a script
//! that does what else moves files: checkpoints, switches of the segment, tables made and dropped.

mod server;

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::boot::{Acts, Boot, Checked};
use crate::cut::{ledger_length, until_the_cut};
use crate::judge::{self, judge};
use crate::outside::DATA;
use crate::plan::Side;
use crate::program::{self, FOREVER, LIMIT};
use crate::user;

/// The database everything is in, and its superuser.
const NAME: &str = "postgres";
/// Names the socket file; no network address is listened on.
const PORT: &str = "5432";
const SOCKETS: &str = "/tmp/sockets";
const LEDGER_CLIENTS: &str = "4";
const PGBENCH_CLIENTS: &str = "2";

/// One turn of what moves files, repeated until the power fails.
const CHURN: &str = "
    CHECKPOINT; SELECT pg_sleep(0.05);
    SELECT pg_switch_wal(); SELECT pg_sleep(0.05);
    CREATE TABLE churn AS SELECT g, repeat('y', 200) AS filler FROM generate_series(1, 2000) g;
    CREATE INDEX ON churn (g); UPDATE churn SET filler = 'z' WHERE g % 3 = 0;
    DROP TABLE churn; SELECT pg_sleep(0.05);
    VACUUM pgbench_branches; VACUUM pgbench_tellers;
    DROP DATABASE IF EXISTS churned; CREATE DATABASE churned; SELECT pg_sleep(0.05);
";

/// PGDATA's name.
const DIRECTORY: &str = "pg";

/// PGDATA on the disk.
fn cluster() -> PathBuf {
    Path::new(DATA).join(DIRECTORY)
}

/// How clients connect.
fn connection() -> String {
    format!("host={SOCKETS} port={PORT} user={NAME} dbname={NAME}")
}

/// A client program of this PostgreSQL.
fn client(program: &str) -> Result<Command> {
    let mut command = Command::new(server::binary(program)?);
    command.env("PGHOST", SOCKETS).env("PGPORT", PORT).env("PGUSER", NAME).env("PGDATABASE", NAME);
    Ok(command)
}

/// What is done with it.
pub const ACTS: Acts = Acts { install, load, check };

/// initdb, pgbench's tables, amcheck.
fn install(boot: &Boot) -> Result<()> {
    user::directory(server::USER, &cluster())?;
    let mut initdb = user::command(server::USER, server::binary("initdb")?)?;
    initdb.args(["--data-checksums", "--wal-segsize=1", "--auth=trust", "--encoding=UTF8", "--locale=C"]);
    initdb.arg("--username").arg(NAME).arg("-D").arg(cluster());
    program::run(initdb, "initdb", LIMIT)?;
    let server = server::start(boot, Side::Synced)?;
    let mut tables = client("pgbench")?;
    tables.args(["-i", "-q", "-s", "1"]);
    program::run(tables, "pgbench -i", LIMIT)?;
    let mut amcheck = client("psql")?;
    amcheck.args(["-X", "-q", "-v", "ON_ERROR_STOP=1", "-c", "CREATE EXTENSION amcheck"]);
    program::run(amcheck, "loading amcheck", LIMIT)?;
    // An empty ledger table, so that a cut takes rows and not merely the table.
    program::run(commits(boot, "0"), "creating the ledger table", LIMIT)?;
    server.stop(boot, server::END)
}

/// Commits until the power fails.
fn load(boot: &Boot) -> Result<()> {
    let before = ledger_length(boot);
    let mut server = server::start(boot, boot.plan.side)?;
    let churn = Path::new("/tmp/churn.sql");
    std::fs::write(churn, CHURN.repeat(500))?;
    let mut script = client("psql")?;
    script.args(["-X", "-q", "-f"]).arg(churn);
    let mut bench = client("pgbench")?;
    bench.args(["-n", "-b", "tpcb-like", "-c", PGBENCH_CLIENTS, "-T", FOREVER]);
    let mut loads = [
        program::start(script, "the script that moves files")?,
        program::start(bench, "pgbench")?,
        program::start(commits(boot, FOREVER), "the ledger load")?,
    ];
    until_the_cut(boot, before, || server.must_serve(&mut loads))
}

fn commits(boot: &Boot, seconds: &str) -> Command {
    let at = connection();
    boot.load(&["ledger-pg", "--clients", LEDGER_CLIENTS, "--seconds", seconds, "--connect", &at])
}

/// Recovers, starts, checks, stops, and checks the files at rest.
fn check(boot: &Boot) -> Result<Checked> {
    let is_guarded = || server::is_guarded(&cluster());
    judge(boot, &cluster(), is_guarded, server::bare_start_problem, |side, problems| {
        let server = server::start(boot, side)?;
        let verdict = judge::verdict(boot.load(&["check-pg", "--connect", &connection()]))?;
        problems.extend(amcheck()?);
        server.stop(boot, server::END)?;
        problems.extend(checksums()?);
        Ok(verdict)
    })
}

fn amcheck() -> Result<Option<String>> {
    let mut check = client("pg_amcheck")?;
    // The other one may just be missing.
    check.args(["--heapallindexed", "--parent-check", "--install-missing", "--no-strict-names"]);
    check.args(["--database", NAME, "--database", "churned"]);
    Ok(program::finish(check, "pg_amcheck", LIMIT)?.problem("pg_amcheck"))
}

fn checksums() -> Result<Option<String>> {
    let mut check = user::command(server::USER, server::binary("pg_checksums")?)?;
    check.arg("--check").arg("-D").arg(cluster());
    Ok(program::finish(check, "pg_checksums", LIMIT)?.problem("pg_checksums"))
}

/// The programs this module needs, for the check of what is installed.
pub fn installed() -> Result<()> {
    user::named(server::USER)?;
    ["postgres", "initdb", "psql", "pgbench", "pg_amcheck", "pg_checksums"]
        .iter()
        .try_for_each(|program| server::binary(program).map(drop))
}
