//! MariaDB in a machine: installed, put under load, recovered, checked.
//!
//! A small redo log and buffer pool, so that a short load goes round the one and writes pages out of the other.
//! Beside the ledger's clients runs a script that does what else moves files: new binary logs, tables made and
//! dropped. A commit is in two logs, InnoDB's and the binary one: after a cut the server compares them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::signal::Signal;
use seawall_load::mariadb::{DATABASE, TABLES};

use crate::boot::{Acts, Boot, Checked};
use crate::cut::{ledger_length, until_the_cut};
use crate::judge::{self, guard_problem, judge};
use crate::outside::DATA;
use crate::place::{Place, Preset};
use crate::plan::{Side, Trouble};
use crate::program::{self, FOREVER, LIMIT};
use crate::server::{self, Server};
use crate::user;

const USER: &str = "mysql";
const SOCKET: &str = "/tmp/mariadb/socket";
const SERVER: &str = "/usr/sbin/mariadbd";
const CLIENTS: &str = "4";

/// One turn of what moves files.
const CHURN: &str = "
    FLUSH BINARY LOGS; DO SLEEP(0.05);
    CREATE TABLE churn (g INT PRIMARY KEY, filler CHAR(200)) ENGINE=InnoDB;
    INSERT INTO churn SELECT seq, REPEAT('y', 200) FROM seq_1_to_2000;
    UPDATE churn SET filler = 'z' WHERE g % 3 = 0; DO SLEEP(0.05);
    DROP TABLE IF EXISTS churned; RENAME TABLE churn TO churned; DO SLEEP(0.05);
    ALTER TABLE churned ADD COLUMN h INT DEFAULT 1, ALGORITHM=COPY; TRUNCATE TABLE churned;
";

const NAME: &str = "mariadb";

/// On the disk.
fn directory() -> PathBuf {
    Path::new(DATA).join(NAME)
}

/// What is done with it.
pub const ACTS: Acts = Acts { install, load, check };

/// An empty database.
fn install(boot: &Boot) -> Result<()> {
    user::directory(USER, &directory())?;
    let mut install = as_user("mariadb-install-db")?;
    install.args(["--no-defaults", "--skip-test-db", "--auth-root-authentication-method=normal"]);
    install.arg(format!("--datadir={}", directory().display()));
    program::run(install, "mariadb-install-db", LIMIT)?;
    let server = start(boot, Side::Synced)?;
    // Empty tables, so that a cut takes rows and not merely the tables.
    program::run(commits(boot, "0"), "creating the tables", LIMIT)?;
    server.stop(boot, Signal::SIGTERM)
}

/// Commits until the power fails.
fn load(boot: &Boot) -> Result<()> {
    let before = ledger_length(boot);
    let mut server = start(boot, boot.plan.side)?;
    let churn = Path::new("/tmp/churn.sql");
    fs::write(churn, format!("USE {DATABASE}; DROP TABLE IF EXISTS churn; {}", CHURN.repeat(500)))?;
    let mut loads = vec![program::start(commits(boot, FOREVER), "the ledger load")?];
    // The script syncs both logs whatever the settings: a side that must lose goes without. So do disks that refuse
    // flushes and mounts that vanish: a server that cannot begin another binary log turns it off, and then neither
    // starts after a crash nor keeps what it acknowledges (FAILURE_MODEL, known limit 16). And full file systems: a crash
    // behind a definition that failed there leaves tables without files, and half made files, bare too (in 11 of 65 rounds).
    let refuses = matches!(boot.plan.trouble, Trouble::FlushErrors | Trouble::MountKilled | Trouble::Full);
    if !boot.plan.side.must_lose() && !refuses {
        let mut script = client();
        script.args(["--execute", &format!("source {}", churn.display())]);
        loads.push(program::start(script, "the script that moves files")?);
    }
    until_the_cut(boot, before, || server.must_serve(&mut loads))
}

/// Recovers, starts, checks, stops, and checks the files at rest.
fn check(boot: &Boot) -> Result<Checked> {
    judge(boot, &directory(), is_guarded, bare_start_problem, |side, problems| {
        let server = start(boot, side)?;
        let verdict = judge::verdict(boot.load(&["check-mariadb", "--socket", SOCKET]))?;
        // A table without its file, or a file that is another table's.
        let mut tables = as_user("mariadb-check")?;
        tables.args(["--no-defaults", "--user=root", "--silent"]).arg(format!("--socket={SOCKET}"));
        tables.args(["--databases", DATABASE]);
        let ended = program::finish(tables, "mariadb-check", LIMIT)?;
        let is_right = ended.status.success() && ended.stdout.trim().is_empty();
        problems.extend((!is_right).then(|| format!("mariadb-check: {ended}")));
        server.stop(boot, Signal::SIGTERM)?;
        for (file, range) in tablespaces() {
            let mut check = as_user("innochecksum")?;
            check.args(range).arg(file);
            let ended = program::finish(check, "innochecksum", LIMIT)?;
            problems.extend(ended.problem("innochecksum"));
        }
        problems.extend(binary_log_problems()?);
        Ok(verdict)
    })
}

fn is_guarded() -> bool {
    directory().join("ddl_recovery.log/.seawall").exists()
}

fn commits(boot: &Boot, seconds: &str) -> Command {
    boot.load(&["ledger-mariadb", "--clients", CLIENTS, "--seconds", seconds, "--socket", SOCKET])
}

/// The files with pages, and the pages to check: not the doublewrite buffer, whose copies a cut may tear.
fn tablespaces() -> Vec<(PathBuf, Option<&'static str>)> {
    let system = directory().join("ibdata1");
    let mut all = ["--end-page=63", "--start-page=192"].map(|range| (system.clone(), Some(range))).to_vec();
    all.extend(TABLES.map(|table| (directory().join(DATABASE).join(format!("{table}.ibd")), None)));
    all
}

/// Each binary log by itself. Its last event may be cut off: a commit's events are not always one write, and a
/// server leaves what its crash left, begins another log, and may give the same transaction id again.
fn binary_log_problems() -> Result<Vec<String>> {
    let index = fs::read_to_string(directory().join("binlog.index")).context("cannot read binlog.index")?;
    let mut problems = Vec::new();
    for name in index.lines() {
        let mut read = as_user("mariadb-binlog")?;
        read.args(["--no-defaults", "--verify-binlog-checksum"]).arg(directory().join(name));
        let ended = program::finish(read, "mariadb-binlog", LIMIT)?;
        if !ended.stderr.contains("'Event truncated'") {
            problems.extend(ended.problem(&format!("mariadb-binlog {name}")));
        }
    }
    Ok(problems)
}

/// Tries to start the bare server although the guard is up; it must refuse and say why.
fn bare_start_problem() -> Result<Option<String>> {
    let mut bare = as_user(SERVER)?;
    bare.args(settings(Side::Synced, &directory()));
    let ended = program::finish(bare, "a bare start behind the guard", Duration::from_secs(20));
    Ok(guard_problem(ended, "Failed to create ddl log file: ./ddl_recovery.log"))
}

fn settings(side: Side, data: &Path) -> Vec<String> {
    // Each commit's flush would take the pages along that a cut is to tear.
    let durable = if matches!(side, Side::Unsafe | Side::Torn) { "0" } else { "1" };
    let twice = if side.is_without_copies() { "OFF" } else { "ON" };
    let mut all = [
        "--no-defaults",
        "--skip-networking",
        "--server-id=1",
        "--log-bin=binlog",
        "--innodb-buffer-pool-size=8M",
        "--innodb-log-file-size=4M",
        "--innodb-max-dirty-pages-pct=10",
        "--loose-innodb-buffer-pool-dump-at-shutdown=0",
    ]
    .map(str::to_owned)
    .to_vec();
    all.extend(["innodb-flush-log-at-trx-commit", "sync-binlog"].map(|name| format!("--{name}={durable}")));
    if side == Side::Unsafe {
        // Nothing else may write the log: not the clock, not a page that is written, not a full log.
        let idle = [
            "flush-log-at-timeout=600",
            "max-dirty-pages-pct=99",
            "log-file-size=64M",
            "buffer-pool-size=128M",
        ];
        all.extend(idle.map(|setting| format!("--innodb-{setting}")));
    }
    all.push(format!("--innodb-doublewrite={twice}"));
    all.push(format!("--datadir={}", data.display()));
    all.push(format!("--socket={SOCKET}"));
    all
}

/// MariaDB's client.
fn client() -> Command {
    let mut client = Command::new("mariadb");
    client.args(["--no-defaults", "--batch", "--user=root"]).arg(format!("--socket={SOCKET}"));
    client
}

/// Starts the server and waits until it takes connections.
fn start(boot: &Boot, side: Side) -> Result<Server> {
    user::directory(USER, Path::new(SOCKET).parent().context("the socket has no directory")?)?;
    let place = Place::of(boot, side, NAME, "mariadb")?;
    let mut command = match place.seawall_run(boot, side, Preset::Found) {
        Some(mut run) => {
            run.args(["--policy", side.policy(), "--user", USER, "--", SERVER]);
            run
        }
        None => as_user(SERVER)?,
    };
    command.args(settings(side, place.path()));
    let serves = || client().args(["--execute", "DO 0"]).output().is_ok_and(|said| said.status.success());
    Server::start(place, command, "MariaDB", serves)
}

fn as_user(program: &str) -> Result<Command> {
    user::command(USER, program)
}

/// The programs this module needs, for the check of what is installed.
pub fn installed() -> Result<()> {
    server::installed(USER, SERVER)
}
