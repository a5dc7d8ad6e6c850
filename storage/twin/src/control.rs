//! What a supervisor asks and tells the twin: a few commands over its socket, in Redis's protocol (RESP2).

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use crate::resp::command;

/// A user of the twin's that nobody else can be.
pub const USER: &str = "seawall-twin";
/// An answer of ours is at most as long as INFO.
const LONGEST: usize = 1 << 20;

/// A connection.
pub struct Control(BufReader<UnixStream>);

impl Control {
    /// Connects as [`USER`].
    ///
    /// # Errors
    /// If nobody answers, within this time.
    pub fn open(socket: &Path, token: &str, limit: Duration) -> Result<Self> {
        let stream =
            UnixStream::connect(socket).with_context(|| format!("cannot connect to {}", socket.display()))?;
        stream.set_read_timeout(Some(limit)).and_then(|()| stream.set_write_timeout(Some(limit)))?;
        let mut control = Self::on(stream);
        control.call(&["AUTH", USER, token])?;
        Ok(control)
    }

    /// A connection that is there.
    pub fn on(stream: UnixStream) -> Self {
        Self(BufReader::new(stream))
    }

    /// Sends a command, and returns its answer as a text.
    ///
    /// # Errors
    /// If Redis answers with one.
    pub fn call(&mut self, words: &[&str]) -> Result<String> {
        self.0.get_mut().write_all(&command(words)).with_context(|| format!("cannot send {}", words[0]))?;
        self.answer().with_context(|| words[..words.len().min(2)].join(" "))
    }

    /// Sends a command whose answer is not waited for.
    pub fn send(&mut self, words: &[&str]) {
        let _ = self.0.get_mut().write_all(&command(words));
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line).context("cannot read the answer")?;
        ensure!(line.ends_with("\r\n"), "the connection was closed");
        let (kind, rest) = line.trim_end().split_at(1);
        match kind {
            "+" | ":" => Ok(rest.to_owned()),
            "$" => {
                let length: usize = rest.parse().context("the answer's length is not a number")?;
                ensure!(length <= LONGEST, "the answer is too long: {length} bytes");
                let mut text = vec![0; length + 2];
                self.0.read_exact(&mut text).context("the answer ended in the middle")?;
                text.truncate(length);
                String::from_utf8(text).context("the answer is not text")
            }
            "-" => bail!("{rest}"),
            _ => bail!("the answer is not one of Redis's: {line:?}"),
        }
    }

    /// Reads a section of INFO.
    ///
    /// # Errors
    /// If there is no answer.
    pub fn info(&mut self) -> Result<Info> {
        self.call(&["INFO", "replication", "persistence", "memory"]).map(Info)
    }
}

/// What INFO said.
pub struct Info(String);

impl Info {
    /// A line's value; nothing if it is not there.
    pub fn value(&self, name: &str) -> &str {
        let value = |line: &'_ str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with(':'));
        self.0.lines().find(|line| value(line)).map_or("", |line| &line[name.len() + 1..])
    }

    /// A line's number.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.value(name).parse().ok()
    }

    /// How far the twin has applied what it was sent in this synchronisation, and that it has written it to its own file:
    /// an answer is sent after the file was written to. `None` in any other state.
    pub fn applied(&self, id: &str) -> Option<u64> {
        let follows = self.value("role") == "slave"
            && self.value("master_link_status") == "up"
            && self.value("master_replid") == id;
        let writes = self.value("aof_enabled") == "1" && self.value("aof_last_write_status") == "ok";
        self.number("slave_repl_offset").filter(|_| follows && writes)
    }

    /// The twin's own append-only file has had the whole state once since the synchronisation.
    pub fn has_whole_file(&self) -> bool {
        self.value("aof_enabled") == "1"
            && self.value("aof_rewrite_in_progress") == "0"
            && self.value("aof_rewrite_scheduled") == "0"
            && self.value("aof_last_bgrewrite_status") == "ok"
            && self.value("aof_last_write_status") == "ok"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offset_counts_only_in_its_own_synchronisation() {
        let text = "role:slave\r\nmaster_link_status:up\r\nslave_repl_offset:7\r\nmaster_replid:x\r\nmaster_replid2:y\r\n\
                    aof_enabled:1\r\naof_last_write_status:ok\r\n";
        let info = Info(text.into());
        assert_eq!((info.applied("x"), info.applied("y")), (Some(7), None));
        for (there, instead) in
            [("status:up", "status:down"), ("status:ok", "status:err"), ("enabled:1", "enabled:0")]
        {
            assert_eq!(Info(text.replace(there, instead)).applied("x"), None, "{instead}");
        }
    }
}
