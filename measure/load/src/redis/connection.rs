//! As much of Redis's protocol (RESP2) as a load needs.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

/// No reply of ours is longer: one that says so is not Redis's.
const LONGEST: usize = 1 << 30;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// `+OK`.
    Status(String),
    /// `:1`.
    Number(i64),
    /// A string; `None` where there is none.
    Text(Option<String>),
    /// Several; `None`: a transaction that was not executed.
    List(Option<Vec<Reply>>),
}

impl Reply {
    /// A number, also one that is kept as text.
    pub fn number(&self) -> Option<i64> {
        match self {
            Reply::Number(n) => Some(*n),
            Reply::Text(text) => text.as_ref()?.parse().ok(),
            _ => None,
        }
    }
}

/// A connection.
pub struct Connection(BufReader<UnixStream>);

impl Connection {
    /// Connects.
    pub fn open(socket: &Path) -> Result<Self> {
        let stream =
            UnixStream::connect(socket).with_context(|| format!("cannot connect to {}", socket.display()))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Sends a command; its reply is not waited for.
    pub fn send(&mut self, words: &[&str]) -> Result<()> {
        self.0.get_mut().write_all(&encoded(&[words])).context("cannot send to Redis")
    }

    /// Sends a command and waits for its reply. An error that Redis replies is an error.
    pub fn call(&mut self, words: &[&str]) -> Result<Reply> {
        self.send(words)?;
        self.reply()
    }

    /// Sends commands as one transaction, in one go, and returns their replies.
    pub fn transaction(&mut self, commands: &[&[&str]]) -> Result<Vec<Reply>> {
        let all: Vec<&[&str]> =
            [&["MULTI"][..]].into_iter().chain(commands.iter().copied()).chain([&["EXEC"][..]]).collect();
        self.0.get_mut().write_all(&encoded(&all)).context("cannot send to Redis")?;
        for _ in 0..=commands.len() {
            self.reply()?; // OK, then QUEUED for each
        }
        match self.reply()? {
            Reply::List(Some(replies)) if replies.len() == commands.len() => Ok(replies),
            other => bail!("Redis did not execute a transaction: {other:?}"),
        }
    }

    fn reply(&mut self) -> Result<Reply> {
        let mut line = String::new();
        let n = self.0.read_line(&mut line).context("cannot read from Redis")?;
        ensure!(n > 0 && line.ends_with("\r\n"), "Redis closed the connection");
        let (kind, rest) = line.trim_end().split_at(1);
        Ok(match kind {
            "+" => Reply::Status(rest.to_owned()),
            "-" => bail!("Redis replied: {rest}"),
            ":" => Reply::Number(rest.parse().context("a reply is not a number")?),
            "$" => Reply::Text(length(rest)?.map(|n| self.text(n)).transpose()?),
            "*" => {
                let replies = |n| (0..n).map(|_| self.reply()).collect::<Result<Vec<_>>>();
                Reply::List(length(rest)?.map(replies).transpose()?)
            }
            _ => bail!("this is not a reply of Redis: {line:?}"),
        })
    }

    fn text(&mut self, bytes: usize) -> Result<String> {
        let mut text = vec![0; bytes + 2];
        self.0.read_exact(&mut text).context("cannot read from Redis")?;
        text.truncate(bytes);
        String::from_utf8(text).context("a reply is not UTF-8")
    }
}

fn encoded(commands: &[&[&str]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for words in commands {
        bytes.extend(format!("*{}\r\n", words.len()).bytes());
        words.iter().for_each(|word| bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes()));
    }
    bytes
}

/// The length in front of a string or a list; -1 means none.
fn length(text: &str) -> Result<Option<usize>> {
    if text == "-1" {
        return Ok(None);
    }
    let n: usize = text.parse().with_context(|| format!("{text:?} is not a length"))?;
    ensure!(n <= LONGEST, "a reply of {n} bytes is too long");
    Ok(Some(n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_as_redis_writes_them() -> Result<()> {
        let (mut server, client) = UnixStream::pair()?;
        let mut redis = Connection(BufReader::new(client));
        server.write_all(b"+OK\r\n:7\r\n$2\r\n12\r\n$-1\r\n*2\r\n:1\r\n$1\r\nx\r\n*-1\r\n-ERR no\r\n")?;
        assert_eq!(redis.reply()?, Reply::Status("OK".into()));
        assert_eq!(redis.reply()?.number(), Some(7));
        assert_eq!(redis.reply()?.number(), Some(12));
        assert_eq!(redis.reply()?, Reply::Text(None));
        let list = vec![Reply::Number(1), Reply::Text(Some("x".into()))];
        assert_eq!(redis.reply()?, Reply::List(Some(list)));
        assert_eq!(redis.reply()?, Reply::List(None));
        assert!(redis.reply().unwrap_err().to_string().contains("ERR no"));
        drop(server);
        assert!(redis.reply().unwrap_err().to_string().contains("closed"));
        Ok(())
    }

    #[test]
    fn a_command_is_a_list_of_counted_words() {
        assert_eq!(encoded(&[&["GET", "k"]]), b"*2\r\n$3\r\nGET\r\n$1\r\nk\r\n");
    }
}
