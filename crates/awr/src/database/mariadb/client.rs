//! The server's own client program, kept running: it knows the user's option files and every authentication
//! plugin, and one that is there already costs nothing to ask again.
//!
//! Each question is followed by a mark; what comes before the mark is its answer. An error of the server's goes
//! to the client's other output before the mark is asked for, so it is there when the mark has come.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

const PATIENCE: Duration = Duration::from_secs(10);
/// Longer answers are nobody's status.
const LONGEST: usize = 1 << 26;

/// A running client.
pub struct Client {
    child: Child,
    to: ChildStdin,
    answers: ChildStdout,
    errors: ChildStderr,
    socket: PathBuf,
    asked: u64,
}

impl Client {
    /// Starts it.
    pub fn start(socket: &Path) -> Result<Self> {
        let mut client = Command::new("mariadb");
        client.arg("--socket").arg(socket);
        // With --force an error of one question does not end it.
        client.args(["--batch", "--skip-column-names", "--unbuffered", "--force", "--skip-reconnect"]);
        client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = client
            .spawn()
            .context("starting `mariadb`, the client that asks the server: is it installed?")?;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(to), Some(answers), Some(errors)) = pipes else { bail!("the client has no pipes") };
        Ok(Self { child, to, answers, errors, socket: socket.into(), asked: 0 })
    }

    /// Rows of words. An error leaves the client as it was, unless [`Self::is_gone`].
    pub fn rows(&mut self, sql: &str) -> Result<Vec<Vec<String>>> {
        self.asked += 1;
        let mark = format!("seawall-{}", self.asked);
        let said = match self.to.write_all(format!("{sql};\nSELECT '{mark}';\n").as_bytes()) {
            Ok(()) => self.read(&mark),
            Err(_) => self.last_words(),
        };
        let text = said.with_context(|| format!("MariaDB at {}", self.socket.display()))?;
        Ok(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
    }

    /// Whether the client has ended: the server went away, or never let it in.
    pub fn is_gone(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    fn read(&mut self, mark: &str) -> Result<String> {
        let (end, mut text) = (Instant::now() + PATIENCE, Vec::new());
        let tail = format!("{mark}\n");
        while !is_whole(&text, tail.as_bytes()) {
            let (answered, failed) = self.wait(end)?;
            if failed {
                let error = take(&mut self.errors)?;
                if is_lost(&error) || !answered && error.is_empty() {
                    let _ = self.child.kill();
                    bail!("{}", if error.is_empty() { "the client ended".into() } else { error });
                }
                // The answer to the mark comes all the same, and leaves the pipe empty for the next question.
                self.skip(&tail, end)?;
                bail!("{error}");
            }
            if append(&mut self.answers, &mut text)? == 0 {
                return self.last_words();
            }
        }
        text.truncate(text.len() - tail.len());
        String::from_utf8(text).or_else(|e| Ok(String::from_utf8_lossy(e.as_bytes()).into_owned()))
    }

    fn skip(&mut self, tail: &str, end: Instant) -> Result<()> {
        let mut text = Vec::new();
        while !is_whole(&text, tail.as_bytes()) {
            self.wait(end)?;
            if append(&mut self.answers, &mut text)? == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Which of the two outputs has something to read, or was closed.
    fn wait(&mut self, end: Instant) -> Result<(bool, bool)> {
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: i64::from(left.subsec_nanos()) };
        let mut fds = [PollFd::new(&self.answers, PollFlags::IN), PollFd::new(&self.errors, PollFlags::IN)];
        if poll(&mut fds, Some(&left))? == 0 {
            let _ = self.child.kill();
            bail!("no answer for {} s", PATIENCE.as_secs());
        }
        Ok((!fds[0].revents().is_empty(), fds[1].revents().contains(PollFlags::IN)))
    }

    /// Why the client ended.
    fn last_words(&mut self) -> Result<String> {
        let mut error = String::new();
        let _ = self.errors.read_to_string(&mut error);
        let _ = self.child.wait();
        bail!("{}", if error.trim().is_empty() { "the client ended" } else { error.trim() })
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The mark is a line of its own.
fn is_whole(text: &[u8], tail: &[u8]) -> bool {
    text.strip_suffix(tail).is_some_and(|before| before.is_empty() || before.ends_with(b"\n"))
}

/// The client's own errors (2002 to 2055): there is no connection any more.
fn is_lost(error: &str) -> bool {
    error.lines().any(|line| line.starts_with("ERROR 20"))
}

fn append(from: &mut impl Read, text: &mut Vec<u8>) -> Result<usize> {
    let mut part = [0; 1 << 16];
    let n = from.read(&mut part)?;
    text.extend(&part[..n]);
    if text.len() > LONGEST {
        bail!("an answer of more than {LONGEST} bytes");
    }
    Ok(n)
}

/// What is there now.
fn take(from: &mut impl Read) -> Result<String> {
    let mut part = [0; 4096];
    let n = from.read(&mut part)?;
    Ok(String::from_utf8_lossy(&part[..n]).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_ends_at_its_mark_only() {
        assert!(is_whole(b"seawall-1\n", b"seawall-1\n") && is_whole(b"a\tb\nseawall-1\n", b"seawall-1\n"));
        assert!(!is_whole(b"a seawall-1\n", b"seawall-1\n") && !is_whole(b"seawall-1", b"seawall-1\n"));
    }

    #[test]
    fn an_error_of_the_connection_is_told_from_one_of_a_question() {
        assert!(is_lost("ERROR 2013 (HY000) at line 3: Lost connection to server during query"));
        assert!(is_lost("ERROR 2006 (HY000) at line 3: Server has gone away"));
        assert!(!is_lost("ERROR 1142 (42000) at line 1: SELECT command denied"));
    }
}
