//! What PostgreSQL says about the redo it applied.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::case::Measure;
use crate::lab::Lab;
use crate::pg::Cluster;
use crate::trial::prepare::Prepared;
use crate::trial::server::{Database, Server};

/// The server's log, and how long it is before the crash; `None`: of another database.
pub fn said(lab: &Lab, server: &Server<'_>, prepared: &Prepared) -> Option<(PathBuf, u64)> {
    let log = matches!(server.database, Database::Postgres(_))
        .then(|| Cluster::log_of(lab, &prepared.configuration.name))?;
    let length = fs::metadata(&log).map_or(0, |m| m.len());
    Some((log, length))
}

/// What it said since.
pub fn figures(said: Option<(PathBuf, u64)>) -> Result<Vec<(String, f64)>> {
    let Some((log, from)) = said else { return Ok(Vec::new()) };
    let bytes = fs::read(&log).with_context(|| format!("cannot read {}", log.display()))?;
    let text = String::from_utf8_lossy(&bytes[(from as usize).min(bytes.len())..]).into_owned();
    Ok(parse(&text))
}

fn parse(text: &str) -> Vec<(String, f64)> {
    let position = |after: &str| {
        let word = text.split(after).nth(1)?.split_whitespace().next()?;
        let (high, low) = word.trim_end_matches([',', ';']).split_once('/')?;
        Some((u64::from_str_radix(high, 16).ok()? << 32) + u64::from_str_radix(low, 16).ok()?)
    };
    let mut figures = Vec::new();
    if let (Some(from), Some(to)) = (position("redo starts at "), position("redo done at ")) {
        figures.push((Measure::Redo.key().to_owned(), (to - from.min(to)) as f64 / f64::from(1 << 20)));
    }
    let elapsed = text.split("redo done at ").nth(1).and_then(|t| t.split("elapsed: ").nth(1));
    if let Some(seconds) = elapsed.and_then(|t| t.split_whitespace().next()?.parse().ok()) {
        figures.push((Measure::RedoTime.key().to_owned(), seconds));
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_words_about_redo_are_understood() {
        let text = "LOG:  redo starts at 0/50000028\nLOG:  invalid record length at 0/56400028: wanted 24, got 0\n\
                    LOG:  redo done at 0/56400000 system usage: CPU: user: 0.25 s, system: 0.09 s, elapsed: 0.35 s\n";
        let found = parse(text);
        assert_eq!(found[0].0, "redo");
        assert!((found[0].1 - 100.0).abs() < 0.01, "{found:?}");
        assert_eq!(found[1], ("redo_time".to_owned(), 0.35));
        assert!(parse("LOG:  database system is ready").is_empty());
    }
}
