//! What the guest tells: lines of `word subject rest`, and ledgers. A power cut may tear the last line.

use std::path::Path;

use anyhow::{Context, Result};
use seawall_load::ledger::Verdict;
use serde::Deserialize;

/// One line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// What it is about.
    pub word: String,
    /// A database, a step.
    pub subject: String,
    /// The rest.
    pub rest: String,
}

impl Line {
    fn parse(text: &str) -> Self {
        let mut parts = text.trim_end().splitn(3, ' ').map(str::to_owned);
        let mut next = || parts.next().unwrap_or_default();
        Self { word: next(), subject: next(), rest: next() }
    }

    /// As it came.
    pub fn text(&self) -> String {
        format!("{} {} {}", self.word, self.subject, self.rest)
    }
}

/// The whole lines of a port.
///
/// # Errors
/// If its file cannot be read.
pub fn whole_lines(path: &Path) -> Result<String> {
    let bytes = match std::fs::read(path) {
        // QEMU has not made it yet.
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        read => read.with_context(|| path.display().to_string())?,
    };
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    text.truncate(text.rfind('\n').map_or(0, |end| end + 1));
    Ok(text)
}

/// What the guest has told so far.
///
/// # Errors
/// As [`whole_lines`].
pub fn read(path: &Path) -> Result<Vec<Line>> {
    Ok(whole_lines(path)?.lines().map(Line::parse).collect())
}

/// The part of `seawall status --json` that the test asks for.
#[derive(Deserialize)]
struct Status {
    medium_name: String,
    spill: Option<Spill>,
}

#[derive(Deserialize)]
struct Spill {
    spilled_bytes: u64,
}

/// The part of `seawall takeover --json` that the test asks for.
#[derive(Deserialize)]
struct Takeover {
    takeover: Taken,
}

#[derive(Deserialize)]
struct Taken {
    recovery: Recovered,
}

#[derive(Deserialize)]
struct Recovered {
    live: u64,
    replayed: bool,
}

/// One database, as one boot found it.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Found {
    /// The ledger compared with the database, and the database's own checks. `None`: the boot ended before.
    pub verdict: Option<Verdict>,
    /// What `seawall status` calls the pool's medium.
    pub medium: Option<String>,
    /// Bytes that its daemon had copied to a spill area when it was last asked.
    pub spilled: u64,
    /// Live records that recovery found in the log.
    pub live: u64,
    /// Those of them that were replayed.
    pub replayed: u64,
}

/// Everything one boot told about `database`.
///
/// # Errors
/// If the guest told something in an unknown form.
pub fn found(lines: &[Line], database: &str) -> Result<Found> {
    let mut found = Found::default();
    for line in lines.iter().filter(|line| line.subject == database) {
        match line.word.as_str() {
            "verdict" => found.verdict = Some(serde_json::from_str(&line.rest).context(line.text())?),
            "status" => {
                let status: Status = serde_json::from_str(&line.rest).context(line.text())?;
                found.medium = Some(status.medium_name);
                found.spilled = status.spill.map_or(0, |spill| spill.spilled_bytes);
            }
            "takeover" => {
                let Takeover { takeover } = serde_json::from_str(&line.rest).context(line.text())?;
                found.live += takeover.recovery.live;
                found.replayed += if takeover.recovery.replayed { takeover.recovery.live } else { 0 };
            }
            "log" => {
                if let Some((live, replayed)) = recovery(&line.rest) {
                    (found.live, found.replayed) = (found.live + live, found.replayed + replayed);
                }
            }
            _ => {}
        }
    }
    Ok(found)
}

/// The numbers in "started; 12 records in the log, 3 live, 3 of them replayed".
fn recovery(log: &str) -> Option<(u64, u64)> {
    let (_, numbers) = log.split_once("started; ")?;
    let mut counts = numbers.split(", ").map(|part| part.split(' ').next()?.parse().ok());
    counts.next()??;
    Some((counts.next()??, counts.next()??))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_three_parts_and_a_torn_one_does_not_count() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("port");
        std::fs::write(&path, "done prepare\r\nfailed x a b c\nverd").expect("written");
        let lines = read(&path).expect("read");
        assert_eq!(lines.len(), 2);
        assert_eq!((lines[0].subject.as_str(), lines[1].rest.as_str()), ("prepare", "a b c"));
        assert_eq!(read(&dir.path().join("none")).expect("read"), []);
    }

    #[test]
    fn the_daemons_log_says_what_recovery_did() {
        let line = "2026-01-01 started; 12 records in the log, 3 live, 2 of them replayed";
        assert_eq!(recovery(line), Some((3, 2)));
        assert_eq!(recovery("drained"), None);
    }

    #[test]
    fn what_concerns_a_database_is_put_together() {
        let line = |text: &str| Line::parse(text);
        let lines = [
            line("log sqlite started; 5 records in the log, 2 live, 2 of them replayed"),
            line(r#"status sqlite {"medium_name":"pmem","size":1,"spill":null}"#),
            line(r#"status sqlite {"medium_name":"pmem","size":1,"spill":{"spilled_bytes":7}}"#),
            line("log postgres started; 9 records in the log, 9 live, 9 of them replayed"),
        ];
        let found = found(&lines, "sqlite").expect("understood");
        assert_eq!((found.medium.as_deref(), found.live, found.replayed), (Some("pmem"), 2, 2));
        assert_eq!(found.spilled, 7);
        assert!(found.verdict.is_none());
    }

    #[test]
    fn a_takeover_says_what_it_replayed() {
        let said = |replayed: bool| {
            let rest = format!(
                r#"{{"done":true,"takeover":{{"turn":2,"recovery":{{"replayed":{replayed},"live":3}}}}}}"#
            );
            found(&[Line::parse(&format!("takeover postgres {rest}"))], "postgres").expect("understood")
        };
        assert_eq!((said(true).live, said(true).replayed), (3, 3));
        assert_eq!((said(false).live, said(false).replayed), (3, 0));
    }
}
