//! A command in Redis's protocol (RESP2), as it is sent and as it is read.

use std::io::{BufRead, Read};

use anyhow::{Context, Result, ensure};

/// A command as Redis reads it.
pub fn command(words: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    words.iter().for_each(|word| bytes.extend(format!("${}\r\n{word}\r\n", word.len()).bytes()));
    bytes
}

/// The words of a command that comes in. It is not known yet who sends it: all lengths have limits.
///
/// # Errors
/// It is no command, or the connection ends.
pub fn words(from: &mut impl BufRead) -> Result<Vec<String>> {
    const MOST: usize = 64;
    const LONGEST: usize = 4096;
    let count = number(from, '*')?;
    ensure!((1..=MOST).contains(&count), "the command has {count} words");
    (0..count)
        .map(|_| {
            let length = number(from, '$')?;
            ensure!(length <= LONGEST, "the word has {length} bytes");
            let mut word = vec![0; length + 2];
            from.read_exact(&mut word)?;
            word.truncate(length);
            String::from_utf8(word).context("the word is not text")
        })
        .collect()
}

fn number(from: &mut impl BufRead, kind: char) -> Result<usize> {
    let mut line = String::new();
    from.take(32).read_line(&mut line)?;
    let number = line.trim_end().strip_prefix(kind).and_then(|number| number.parse().ok());
    number.with_context(|| format!("{line:?} is in the place of a number"))
}
