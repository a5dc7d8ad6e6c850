//! Where commands begin and end in an append-only file that is read piece by piece.
//!
//! The bytes are those that Redis sends to its replicas, with one exception: annotations (`#TS:1700000000`, from
//! `aof-timestamp-enabled`), which are taken out. What is *whole* ends with a command outside of a transaction or with
//! `EXEC`: only that can have been acknowledged, and only that does Redis keep when it loads a file that was cut.

use anyhow::{Context, Result, bail, ensure};

/// No header line is longer.
const LONGEST_LINE: usize = 32;
/// Longer than the names of the two commands that matter here.
const LONGEST_NAME: usize = 6;
/// What ends a line and an argument.
const LINE_END: u64 = 2;

/// What the next byte belongs to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    /// The first byte of a command or an annotation.
    #[default]
    Start,
    Annotation,
    /// `*3\r\n`
    Count,
    /// `$5\r\n`
    Length,
    /// An argument with its line's end, of which so many bytes are to come.
    Argument(u64),
}

/// Goes through the bytes of one append-only file, increment after increment.
#[derive(Debug, Default)]
pub struct Scan {
    at: At,
    /// The header line so far.
    line: Vec<u8>,
    /// The command's arguments, and how many of them are to come.
    arguments: u64,
    left: u64,
    /// The beginning of the first argument.
    name: Vec<u8>,
    in_transaction: bool,
    passed: u64,
    whole: u64,
}

impl Scan {
    /// Takes `input` and appends to `out` what a replica is sent of it.
    ///
    /// # Errors
    /// If this is no append-only file.
    pub fn feed(&mut self, mut input: &[u8], out: &mut Vec<u8>) -> Result<()> {
        while let Some(&first) = input.first() {
            if self.at == At::Annotation || self.at == At::Start && first == b'#' {
                let end = input.iter().position(|byte| *byte == b'\n');
                self.at = if end.is_some() { At::Start } else { At::Annotation };
                input = &input[end.map_or(input.len(), |end| end + 1)..];
                continue;
            }
            let n = match self.at {
                At::Argument(left) => self.argument(input, left),
                _ => self.header(first)?,
            };
            out.extend_from_slice(&input[..n]);
            self.passed += n as u64;
            input = &input[n..];
            if self.at == At::Argument(0) {
                self.argument_ended();
            }
        }
        Ok(())
    }

    /// One byte of a header line. An argument's begins when the line ends.
    fn header(&mut self, byte: u8) -> Result<usize> {
        match self.at {
            At::Start => {
                ensure!(byte == b'*', "a command begins with byte {byte:#04x} instead of '*'");
                self.at = At::Count;
            }
            _ if byte != b'\n' => {
                self.line.push(byte);
                ensure!(self.line.len() <= LONGEST_LINE, "a header has more than {LONGEST_LINE} bytes");
            }
            At::Count => {
                self.arguments = self.number("")?;
                ensure!(self.arguments > 0, "a command has no words");
                self.left = self.arguments;
                self.at = At::Length;
            }
            _ => self.at = At::Argument(self.number("$")? + LINE_END),
        }
        Ok(1)
    }

    fn number(&mut self, prefix: &str) -> Result<u64> {
        let line = std::mem::take(&mut self.line);
        let text = std::str::from_utf8(&line).ok().and_then(|line| line.strip_suffix('\r'));
        let number = text.and_then(|text| text.strip_prefix(prefix)?.parse::<u32>().ok());
        match number {
            Some(number) => Ok(number.into()),
            None => bail!("a header is not valid: {:?}", String::from_utf8_lossy(&line)),
        }
    }

    fn argument(&mut self, input: &[u8], left: u64) -> usize {
        let n = usize::try_from(left).map_or(input.len(), |left| left.min(input.len()));
        if self.left == self.arguments {
            let room = LONGEST_NAME - self.name.len();
            self.name.extend_from_slice(&input[..n.min(room)]);
        }
        self.at = At::Argument(left - n as u64);
        n
    }

    fn argument_ended(&mut self) {
        self.left -= 1;
        self.at = At::Length;
        if self.left == 0 {
            self.at = At::Start;
            let is = |name: &[u8]| self.arguments == 1 && self.name.eq_ignore_ascii_case(name);
            self.in_transaction = is(b"MULTI\r") || self.in_transaction && !is(b"EXEC\r\n");
            self.name.clear();
            if !self.in_transaction {
                self.whole = self.passed;
            }
        }
    }

    /// How many bytes a replica was sent.
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// How many of them are whole: what follows them may be half a command or half a transaction.
    pub fn whole(&self) -> u64 {
        self.whole
    }

    /// True between two commands, outside of a transaction.
    pub fn is_whole(&self) -> bool {
        self.passed == self.whole && matches!(self.at, At::Start)
    }

    /// Sends a command that is not in the file.
    pub fn insert(&mut self, command: &[u8], out: &mut Vec<u8>) -> Result<()> {
        assert!(self.is_whole(), "nothing is put into the middle of a command");
        self.feed(command, out).context("cannot insert a command of Seawall's own")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resp::command;

    /// Fed in two pieces, cut at every place: the result must not depend on it.
    fn scanned(bytes: &[u8]) -> (Vec<u8>, u64) {
        let all = |cut: usize| {
            let (mut scan, mut out) = (Scan::default(), Vec::new());
            for piece in [&bytes[..cut], &bytes[cut..]] {
                scan.feed(piece, &mut out).expect("an append-only file");
            }
            assert_eq!(scan.passed(), out.len() as u64);
            (out, scan.whole())
        };
        let first = all(0);
        (1..=bytes.len()).for_each(|cut| assert_eq!(all(cut), first, "cut at {cut}"));
        first
    }

    #[test]
    fn half_a_command_is_passed_on_and_not_whole() {
        let whole = [command(&["SELECT", "0"]), command(&["SET", "k", "*1\r\n$4\r\nEXEC\r\n"])].concat();
        let next = command(&["SET", "key", "value"]);
        for half in 0..next.len() {
            let bytes = [&whole[..], &next[..half]].concat();
            assert_eq!(scanned(&bytes), (bytes.clone(), whole.len() as u64));
        }
    }

    #[test]
    fn a_transaction_is_whole_with_its_exec() {
        let before = command(&["set", "MULTI", "EXEC"]);
        let inside = [command(&["multi"]), command(&["GET", "MULTI"]), command(&["EXEC", "x"])].concat();
        let half = [&before[..], &inside[..]].concat();
        assert_eq!(scanned(&half).1, before.len() as u64);
        let all = [&half[..], &command(&["exec"])[..]].concat();
        assert_eq!(scanned(&all).1, all.len() as u64);
    }

    #[test]
    fn annotations_are_taken_out_wherever_they_stand() {
        let parts = [command(&["MULTI"]), command(&["SET", "k", "#TS:1\r\n"]), command(&["EXEC"])];
        let note = b"#TS:1700000000\r\n".to_vec();
        let noted = parts.iter().flat_map(|part| [note.clone(), part.clone()]).collect::<Vec<_>>().concat();
        let plain = parts.concat();
        assert_eq!(scanned(&noted), (plain.clone(), plain.len() as u64));
        // Half a note is nothing.
        let cut = [&plain[..], &note[..5]].concat();
        assert_eq!(scanned(&cut), (plain.clone(), plain.len() as u64));
        let mut scan = Scan::default();
        scan.feed(&cut, &mut Vec::new()).expect("scanned");
        assert!(!scan.is_whole(), "nothing may be put in here");
    }

    #[test]
    fn what_is_no_append_only_file_is_refused() {
        for text in [
            "REDIS0009",
            "\0\0",
            "*0\r\n",
            "*x\r\n",
            "*1\r\n+OK\r\n",
            "*1\r\n$-1\r\n",
            "*1\n$1\n",
            &"*1".repeat(40),
        ] {
            assert!(Scan::default().feed(text.as_bytes(), &mut Vec::new()).is_err(), "{text:?}");
        }
    }
}
