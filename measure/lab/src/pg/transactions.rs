//! pgbench's own log: every transaction, when it ended and how long it took.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

/// One transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transaction {
    /// When it ended, µs since 1970, by the wall clock.
    pub ended_us: u64,
    pub took_us: u64,
}

/// Makes a pgbench command log every transaction in `dir`, which exists and is empty.
pub fn log_to(command: &mut Command, dir: &Path) {
    command.arg("-l").arg("--log-prefix").arg(dir.join("t"));
}

/// All of them; `CLIENT NUMBER µs SCRIPT SECONDS µs` a line. The last line of a client that was cut off is left out.
pub fn read(dir: &Path) -> Result<Vec<Transaction>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        all.extend(text.lines().filter_map(parse));
    }
    Ok(all)
}

fn parse(line: &str) -> Option<Transaction> {
    let mut fields = line.split(' ').skip(2);
    let took_us = fields.next()?.parse().ok()?;
    let seconds: u64 = fields.nth(1)?.parse().ok()?;
    let us: u64 = fields.next()?.parse().ok()?;
    Some(Transaction { ended_us: seconds * 1_000_000 + us, took_us })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_the_log_is_understood() {
        let found = parse("0 199 2241 0 1175850568 995598");
        assert_eq!(found, Some(Transaction { ended_us: 1_175_850_568_995_598, took_us: 2241 }));
        assert_eq!(parse("0 199 failed 0 1175850568 995598"), None);
        assert_eq!(parse("0 199 22"), None);
    }
}
