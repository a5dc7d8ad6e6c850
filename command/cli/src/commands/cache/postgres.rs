//! Which files a table of PostgreSQL has, as its server says, through the user's own psql.

use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};
use nix::unistd::geteuid;

use super::names::Table;
use super::server::{Answering, WHICH};
use crate::postmaster::Running;

/// The table with its partitions, the TOAST table of each, and all their indexes; or one index. Those without files have
/// no path.
const RELATIONS: &str = "
WITH RECURSIVE tables(id) AS (
    SELECT to_regclass(format('%I.%I', :'schema', :'name'))::oid
    UNION SELECT inhrelid FROM pg_inherits JOIN tables ON inhparent = id
), heaps(id) AS (
    SELECT id FROM tables
    UNION SELECT reltoastrelid FROM pg_class JOIN tables ON oid = id
), relations(id) AS (
    SELECT id FROM heaps
    UNION SELECT indexrelid FROM pg_index JOIN heaps ON indrelid = id
)
SELECT path FROM (SELECT pg_relation_filepath(id::regclass) AS path FROM relations WHERE id <> 0) AS paths
WHERE path IS NOT NULL ORDER BY 1;
";

/// How psql is called, if nobody says otherwise.
pub const PSQL: &str = "psql";

/// Variables that say which server psql asks.
const SAID: [&str; 4] = ["PGHOST", "PGHOSTADDR", "PGPORT", "PGSERVICE"];

/// The first file of each relation of a table; none if there is no such table. The server is that of one of the directories:
/// their owner asks the one that runs in the only one, if neither the environment nor `psql` names another.
///
/// # Errors
/// If psql cannot be started, or its server cannot be asked, or is none of these.
pub fn relations(psql: &str, table: &Table, directories: &[&Path]) -> Result<Vec<PathBuf>> {
    let mut words = psql.split_whitespace();
    let Some(program) = words.next() else { bail!("--psql names no program") };
    let mut connect = format!("dbname={}", quoted(&table.database));
    if let [data] = directories
        && !names_a_server(psql)
        && let Ok(Some(running)) = Running::of(data)
    {
        connect += &running
            .parameters()
            .map(|(name, value)| format!(" {name}={}", quoted(value)))
            .collect::<String>();
    }
    let mut command = Command::new(program);
    command.args(words).args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", &connect]);
    command.args(["-v", &format!("schema={}", table.schema), "-v", &format!("name={}", table.table)]);
    if psql == PSQL && std::env::var_os("PGUSER").is_none() {
        not_as_root(&mut command, directories);
    }
    let output = asked(command, program, table)?;
    if !output.status.success() {
        bail!(
            "{psql} could not say which files {} has: {}\nIt connects as psql does (PGHOST, PGPORT, PGUSER), as a role that may \
             use the table's schema and call pg_control_system(); for example --psql \"sudo -u postgres psql\"",
            table.name,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let lines = String::from_utf8(output.stdout).context("psql's output is not UTF-8")?;
    let mut lines = lines.lines().filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let Some(server) = Answering::of(first) else {
        bail!("{psql} printed {first:?} instead of naming its server: does --psql call psql?");
    };
    let data = server.directory(directories, psql).with_context(|| table.name.clone())?;
    Ok(lines.map(|path| data.join(path)).collect())
}

/// Root is rarely a role. The directory's owner is, who made the cluster; and a psql that is nobody's in particular is
/// better not root's.
fn not_as_root(command: &mut Command, directories: &[&Path]) {
    if geteuid().is_root()
        && let [data] = directories
        && let Ok(data) = data.metadata()
    {
        // The owner may not be allowed to enter where root is.
        command.uid(data.uid()).gid(data.gid()).current_dir("/");
    }
}

/// Whether somebody says which server psql asks: in its words, or in the environment.
fn names_a_server(psql: &str) -> bool {
    let options = ["-h", "-p", "--host", "--port"];
    SAID.iter().any(|name| std::env::var_os(name).is_some())
        || psql.split_whitespace().skip(1).any(|word| options.iter().any(|option| word.starts_with(option)))
}

/// A value in what psql connects to.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\\', r"\\").replace('\'', r"\'"))
}

/// What psql said.
fn asked(mut command: Command, program: &str, table: &Table) -> Result<Output> {
    command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| {
        format!(
            "cannot start {program} to ask for the files of {} (install PostgreSQL's client, say with --psql \
             how to call it, or name the files by their paths)",
            table.name
        )
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that has ended already says why.
        let _ = stdin.write_all([WHICH, RELATIONS].concat().as_bytes());
    }
    child.wait_with_output().with_context(|| format!("cannot wait for {program}"))
}
