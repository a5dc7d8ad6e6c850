//! Which files a table of PostgreSQL has, as its server says, through the user's own psql.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::names::Table;

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
SELECT current_setting('data_directory') || '/' || path
FROM (SELECT pg_relation_filepath(id::regclass) AS path FROM relations WHERE id <> 0) AS paths
WHERE path IS NOT NULL ORDER BY 1;
";

/// Variables that say which server psql asks.
const SAID: [&str; 4] = ["PGHOST", "PGHOSTADDR", "PGPORT", "PGSERVICE"];

/// The first file of each relation of a table; none if there is no such table. The server is that of the directory `data`,
/// if its owner asks, and neither the environment nor `psql` names another one.
///
/// # Errors
/// If psql cannot be started or its server cannot be asked.
pub fn relations(psql: &str, table: &Table, data: Option<&Path>) -> Result<Vec<PathBuf>> {
    let mut words = psql.split_whitespace();
    let Some(program) = words.next() else { bail!("--psql names no program") };
    let database = format!("dbname='{}'", table.database.replace('\\', r"\\").replace('\'', r"\'"));
    let mut command = Command::new(program);
    command.args(words).args(["-X", "-A", "-t", "-q", "-v", "ON_ERROR_STOP=1", "-d", &database]);
    command.args(["-v", &format!("schema={}", table.schema), "-v", &format!("name={}", table.table)]);
    if SAID.iter().all(|name| std::env::var_os(name).is_none()) {
        let text = data.and_then(|data| std::fs::read_to_string(data.join("postmaster.pid")).ok());
        command.envs(listening(&text.unwrap_or_default()));
    }
    command.args(["-f", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| {
        format!(
            "starting {program}, which asks for the files of {}: install PostgreSQL's client, say with --psql how to call \
             it, or name the files by their paths",
            table.name
        )
    })?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that has ended already says why.
        let _ = stdin.write_all(RELATIONS.as_bytes());
    }
    let output = child.wait_with_output().with_context(|| format!("waiting for {program}"))?;
    if !output.status.success() {
        bail!(
            "{psql} could not say which files {} has: {}\nIt connects as psql does (PGHOST, PGPORT, PGUSER), as a superuser or \
             a member of pg_read_all_settings; for example --psql \"sudo -u postgres psql\"",
            table.name,
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let lines = String::from_utf8(output.stdout).context("what psql said")?;
    Ok(lines.lines().filter(|line| !line.is_empty()).map(PathBuf::from).collect())
}

/// What tells psql where a server listens, of its postmaster.pid: the port is its fourth line, its first socket's directory
/// the fifth.
fn listening(pid_file: &str) -> Vec<(&'static str, String)> {
    let line = |name, number| {
        let text = pid_file.lines().nth(number).map(str::trim).filter(|text| !text.is_empty())?;
        Some((name, text.to_owned()))
    };
    [line("PGPORT", 3), line("PGHOST", 4)].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_server_listens_is_in_its_pid_file() {
        let text = "812\n/srv/pg\n1700000000\n5433\n/run/postgresql\nlocalhost\n  1 2\nready   \n";
        let said = [("PGPORT", "5433".to_owned()), ("PGHOST", "/run/postgresql".to_owned())];
        assert_eq!(listening(text), said);
        assert_eq!(listening(&text.replace("/run/postgresql", "")), said[..1], "no socket: by its name");
        assert_eq!(listening("812\n"), []);
    }
}
