//! A client of Redis (RESP2), as far as a test needs one.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    Text(String),
    Number(i64),
    Nothing,
    List(Vec<Reply>),
    Error(String),
}

impl Reply {
    /// A number, also one that is a text; 0 for nothing.
    pub fn number(&self) -> i64 {
        match self {
            Reply::Number(n) => *n,
            Reply::Text(text) => text.parse().expect("a number"),
            Reply::Nothing => 0,
            other => panic!("no number: {other:?}"),
        }
    }
}

pub struct Redis(BufReader<UnixStream>);

impl Redis {
    pub fn open(socket: &Path) -> Option<Self> {
        let stream = UnixStream::connect(socket).ok()?;
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        Some(Self(BufReader::new(stream)))
    }

    /// `None`: the connection is lost.
    pub fn call(&mut self, words: &[&str]) -> Option<Reply> {
        self.send(&[words])?;
        self.reply()
    }

    /// A text without blanks within words.
    pub fn ask(&mut self, text: &str) -> Option<Reply> {
        self.call(&text.split(' ').collect::<Vec<_>>())
    }

    /// Commands in one go; their last reply.
    pub fn together(&mut self, commands: &[&[&str]]) -> Option<Reply> {
        self.send(commands)?;
        commands.iter().map(|_| self.reply()).collect::<Option<Vec<_>>>()?.pop()
    }

    fn send(&mut self, commands: &[&[&str]]) -> Option<()> {
        let mut bytes = Vec::new();
        for words in commands {
            bytes.extend(format!("*{}\r\n", words.len()).bytes());
            words.iter().for_each(|word| bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes()));
        }
        self.0.get_mut().write_all(&bytes).ok()
    }

    fn reply(&mut self) -> Option<Reply> {
        let mut line = String::new();
        self.0.read_line(&mut line).ok().filter(|n| *n > 0 && line.ends_with('\n'))?;
        let (kind, rest) = line.trim_end().split_at(1);
        let length = || rest.parse::<i64>().expect("a length");
        Some(match kind {
            "+" => Reply::Text(rest.to_owned()),
            "-" => Reply::Error(rest.to_owned()),
            ":" => Reply::Number(length()),
            "$" | "*" if length() < 0 => Reply::Nothing,
            "$" => {
                let mut text = vec![0; length() as usize + 2];
                self.0.read_exact(&mut text).ok()?;
                text.truncate(length() as usize);
                Reply::Text(String::from_utf8_lossy(&text).into_owned())
            }
            "*" => Reply::List((0..length()).map(|_| self.reply()).collect::<Option<_>>()?),
            _ => panic!("no reply: {line:?}"),
        })
    }
}
