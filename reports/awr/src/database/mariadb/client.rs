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
        Self::spawn(client, socket)
    }

    fn spawn(mut client: Command, socket: &Path) -> Result<Self> {
        client.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = client
            .spawn()
            .context("cannot start `mariadb`, the client that asks the server: is it installed?")?;
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
            Err(_) => self.last_words(Vec::new()),
        };
        let text = said.with_context(|| format!("MariaDB at {}", self.socket.display()))?;
        Ok(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
    }

    /// Whether the client has ended: the server went away, or never let it in.
    pub fn is_gone(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// The answer before the mark. Both outputs may come in pieces, and a reader of one that has nothing to say waits
    /// for ever.
    fn read(&mut self, mark: &str) -> Result<String> {
        let (end, mut text, mut error) = (Instant::now() + PATIENCE, Vec::new(), Vec::new());
        let tail = format!("{mark}\n");
        while !is_whole(&text, tail.as_bytes()) {
            let (answered, failed) = self.wait(end)?;
            let no_more = failed && append(&mut self.errors, &mut error)? == 0;
            if is_lost(&error) || no_more && !answered {
                let _ = self.child.kill();
                return self.last_words(error);
            }
            if answered && append(&mut self.answers, &mut text)? == 0 {
                return self.last_words(error);
            }
        }
        // The text of an error came before the mark.
        if self.wait_for(Duration::ZERO)?.is_some_and(|(_, failed)| failed) {
            append(&mut self.errors, &mut error)?;
        }
        let error = String::from_utf8_lossy(&error);
        if !error.trim().is_empty() {
            bail!("{}", error.trim());
        }
        text.truncate(text.len() - tail.len());
        String::from_utf8(text).or_else(|e| Ok(String::from_utf8_lossy(e.as_bytes()).into_owned()))
    }

    /// Which of the two outputs has something to read, or was closed.
    fn wait(&mut self, end: Instant) -> Result<(bool, bool)> {
        let ready = self.wait_for(end.saturating_duration_since(Instant::now()))?;
        if ready.is_none() {
            let _ = self.child.kill();
        }
        ready.with_context(|| format!("no answer within {} s", PATIENCE.as_secs()))
    }

    fn wait_for(&self, time: Duration) -> Result<Option<(bool, bool)>> {
        let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
        let mut fds = [PollFd::new(&self.answers, PollFlags::IN), PollFd::new(&self.errors, PollFlags::IN)];
        let any = poll(&mut fds, Some(&time))? > 0;
        Ok(any.then(|| (!fds[0].revents().is_empty(), !fds[1].revents().is_empty())))
    }

    /// Why the client ended: what it said before, and the rest.
    fn last_words<T>(&mut self, mut error: Vec<u8>) -> Result<T> {
        let _ = self.errors.read_to_end(&mut error);
        let _ = self.child.wait();
        let error = String::from_utf8_lossy(&error);
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
fn is_lost(error: &[u8]) -> bool {
    error.split(|byte| *byte == b'\n').any(|line| line.starts_with(b"ERROR 20"))
}

/// What is there now; 0 at the end.
fn append(from: &mut impl Read, text: &mut Vec<u8>) -> Result<usize> {
    let mut part = [0; 1 << 16];
    let n = from.read(&mut part)?;
    text.extend(&part[..n]);
    if text.len() > LONGEST {
        bail!("the answer has more than {LONGEST} bytes");
    }
    Ok(n)
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
        assert!(is_lost(b"ERROR 2013 (HY000) at line 3: Lost connection to server during query"));
        assert!(is_lost(b"ERROR 2006 (HY000) at line 3: Server has gone away"));
        assert!(!is_lost(b"ERROR 1142 (42000) at line 1: SELECT command denied"));
    }

    /// A client that answers each question with this.
    fn saying(words: &str) -> Client {
        let mut script = Command::new("sh");
        script.args(["-c", &format!("while read -r question && read -r mark; do {words}; done")]);
        Client::spawn(script, Path::new("/nowhere")).expect("sh")
    }

    const MARK: &str = "echo \"$mark\" | cut -d\"'\" -f2";

    #[test]
    fn regression_an_error_that_comes_in_pieces_is_not_waited_for_on_the_other_pipe() {
        let mut lost = saying("printf 'ERR' >&2; sleep 0.2; echo 'OR 2013 (HY000): Lost' >&2; exec sleep 60");
        let (told, heard) = std::sync::mpsc::channel();
        std::thread::spawn(move || told.send(lost.rows("SELECT 1")));
        let answer = heard.recv_timeout(PATIENCE * 2).expect("nobody waits for ever");
        let error = format!("{:#}", answer.expect_err("lost"));
        assert!(error.contains("ERROR 2013 (HY000)"), "{error}");
    }

    #[test]
    fn an_error_belongs_to_its_question() {
        let mut client = saying(&format!(
            "case $question in *x*) printf 'ERROR 11' >&2; sleep 0.1; echo '42: denied' >&2;; *) printf 'a\\tb\\n';; esac; {MARK}"
        ));
        for _ in 0..3 {
            let error = client.rows("x").expect_err("denied").to_string();
            assert!(error.contains("/nowhere"), "{error}");
            assert_eq!(client.rows("SELECT").expect("rows"), [["a", "b"]]);
        }
        assert!(!client.is_gone());
    }
}
