//! Checkpoints of a running PostgreSQL, nearer than its own settings can have them.
//!
//! Its smallest distance is a segment of the WAL, 16 MB, which without page images is tens of thousands of changes: too many
//! for a second. So a session of psql looks how much redo there is, and asks for a CHECKPOINT when it is half of what may be:
//! what comes in while one runs is replayed as well.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use nix::sys::signal::SigSet;

use crate::postmaster::Running;
use crate::sys::start_with_mask;

/// The server's redo since its last checkpoint, bytes; nothing where it replays the WAL of another one.
const REDO: &str = "SELECT CASE WHEN pg_is_in_recovery() THEN 0 ELSE (pg_wal_lsn_diff(pg_current_wal_insert_lsn(), \
                    (SELECT redo_lsn FROM pg_control_checkpoint())))::bigint END;";
/// Between two looks.
const SOONEST: Duration = Duration::from_millis(20);
const LATEST: Duration = Duration::from_millis(500);
/// Before a server that could not be asked is asked again.
const AGAIN: Duration = Duration::from_secs(10);

/// Whose checkpoints are paced.
pub struct Pace {
    /// The data directory.
    pub data: PathBuf,
    /// Where the server's psql is, if not on the PATH.
    pub programs: Option<PathBuf>,
}

impl Pace {
    /// Holds the redo at `most` bytes for as long as this process lives; says once what is in the way.
    pub fn keep(&self, most: u64) -> ! {
        let mut said = false;
        loop {
            let ended = self.session(most / 2);
            if let Err(e) = ended
                && !said
                && Running::ready(&self.data).is_some()
            {
                said = true;
                errln!(
                    "seawall: cannot ask the server for its checkpoints: {e:#}. Its own settings keep them \
                     near, but no nearer than two segments of its WAL"
                );
            }
            std::thread::sleep(AGAIN);
        }
    }

    fn start(&self, server: &Running) -> Result<Session> {
        let psql = self.programs.as_ref().map_or_else(|| PathBuf::from("psql"), |dir| dir.join("psql"));
        let mut command = Command::new(&psql);
        command.args(["--no-psqlrc", "--quiet", "--no-align", "--tuples-only", "--no-password"]);
        command.args(["--set", "ON_ERROR_STOP=1", "--dbname", "postgres"]);
        command.args(server.parameters().map(|(name, value)| format!("--{name}={value}")));
        command.env("PGAPPNAME", "seawall").env_remove("LD_PRELOAD");
        if rustix::process::geteuid().is_root() {
            // The server's own user, as it takes no root (`run --user`).
            let owner = std::fs::metadata(&self.data)?;
            command.uid(owner.uid()).gid(owner.gid());
        }
        Session::of(command).with_context(|| format!("cannot start {}", psql.display()))
    }

    /// One session, until the server is about to end: a smart shutdown waits for all sessions.
    fn session(&self, due: u64) -> Result<()> {
        let Some(server) = Running::ready(&self.data) else { return Ok(()) };
        let mut session = self.start(&server)?;
        let mut wait = SOONEST;
        let mut before = 0;
        while Running::ready(&self.data).as_ref() == Some(&server) {
            let redo: u64 = session.ask(REDO)?.parse().context("psql printed no number")?;
            if redo >= due.max(1) {
                session.ask("CHECKPOINT; SELECT 1;")?;
                (before, wait) = (0, SOONEST);
                continue;
            }
            wait = next_look(wait, redo.saturating_sub(before), due - redo);
            before = redo;
            std::thread::sleep(wait);
        }
        Ok(())
    }
}

/// How long until the next look, by what came in since the last one: half of the time that the rest would take.
fn next_look(waited: Duration, came: u64, left: u64) -> Duration {
    let times = if came == 0 { 2.0 } else { (left as f64 / came as f64 / 2.0).min(2.0) };
    waited.mul_f64(times).clamp(SOONEST, LATEST)
}

/// A session of psql.
struct Session {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Session {
    fn of(mut command: Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // Ours are blocked.
        start_with_mask(&mut command, SigSet::empty());
        let mut child = command.spawn()?;
        let to = child.stdin.take().context("psql has no input")?;
        let from = BufReader::new(child.stdout.take().context("psql has no output")?);
        Ok(Self { child, to, from })
    }

    /// The line that psql answers.
    fn ask(&mut self, sql: &str) -> Result<String> {
        let mut line = String::new();
        let asked = writeln!(self.to, "{sql}").and_then(|()| self.to.flush());
        if asked.is_err() || self.from.read_line(&mut line)? == 0 {
            bail!("{}", self.last_words());
        }
        Ok(line.trim().to_owned())
    }

    fn last_words(&mut self) -> String {
        let mut said = String::new();
        if let Some(mut errors) = self.child.stderr.take() {
            let _ = std::io::Read::read_to_string(&mut errors, &mut said);
        }
        said.lines().next().unwrap_or("psql has ended").to_owned()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_come_closer_as_the_redo_does() {
        let ms = Duration::from_millis;
        assert_eq!(next_look(ms(100), 0, 1000), ms(200), "nothing happens");
        assert_eq!(next_look(ms(100), 100, 100), ms(50));
        assert_eq!(next_look(ms(100), 1000, 1), SOONEST);
        assert_eq!(next_look(ms(400), 1, 1000), LATEST);
    }
}
