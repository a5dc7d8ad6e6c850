//! What a write run is asked to do.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

/// Where writes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pattern {
    /// Overwrite block after block, around and around.
    Sequential,
    /// Overwrite blocks at random.
    Random,
    /// Grow the file (`O_APPEND`).
    Append,
}

/// What follows each write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sync {
    /// `fdatasync`.
    Fdatasync,
    /// Nothing: the unsafe floor.
    None,
}

/// Who shares a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Layout {
    /// One file; each worker overwrites its own region, appenders share the end.
    Shared,
    /// One file per worker.
    Private,
}

/// Options of `seawall-load write`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// Directory for the data files (created when missing)
    #[arg(long)]
    pub dir: PathBuf,
    /// Name of the data file; private files are prefixed with the worker's number
    #[arg(long, default_value = "load.dat")]
    pub name: String,
    /// Block size in bytes
    #[arg(long, default_value_t = 8192)]
    pub bs: usize,
    /// Where writes go
    #[arg(long, value_enum, default_value_t = Pattern::Random)]
    pub pattern: Pattern,
    /// What follows each write
    #[arg(long, value_enum, default_value_t = Sync::Fdatasync)]
    pub sync: Sync,
    /// Who shares a file
    #[arg(long, value_enum, default_value_t = Layout::Shared)]
    pub layout: Layout,
    /// Threads in each process
    #[arg(long, default_value_t = 1)]
    pub threads: usize,
    /// Processes (forked)
    #[arg(long, default_value_t = 1)]
    pub processes: usize,
    /// Size of all data files together; appends stop there
    #[arg(long, default_value = "64M", value_parser = parse_bytes)]
    pub size: u64,
    /// End after this many seconds
    #[arg(long)]
    pub seconds: Option<f64>,
    /// End after this many operations, all workers together
    #[arg(long)]
    pub ops: Option<u64>,
    /// End after this many bytes, all workers together: give several times the pool's size to see
    /// what a full log does (look at p999_us and max_us)
    #[arg(long, value_parser = parse_bytes)]
    pub sustained: Option<u64>,
    /// Steady load: operations a second, all workers together (default: as fast as possible)
    #[arg(long)]
    pub rate: Option<f64>,
    /// Time the write and the sync of each operation apart, too: one more look at the clock
    #[arg(long)]
    pub apart: bool,
    /// Untimed operations each worker does first
    #[arg(long, default_value_t = 50)]
    pub warmup: u64,
    /// Save what must be in the files, for `check-write`
    #[arg(long)]
    pub save_expectation: Option<PathBuf>,
}

/// Parses `4096`, `64K`, `256M`, `2G`.
pub fn parse_bytes(text: &str) -> Result<u64, String> {
    let (digits, factor) = match text.trim_end_matches('B').chars().last() {
        Some('K' | 'k') => (text.trim_end_matches(['K', 'k', 'B']), 1 << 10),
        Some('M' | 'm') => (text.trim_end_matches(['M', 'm', 'B']), 1 << 20),
        Some('G' | 'g') => (text.trim_end_matches(['G', 'g', 'B']), 1 << 30),
        _ => (text, 1),
    };
    let number: u64 =
        digits.parse().map_err(|_| format!("{text:?} is not a size like 4096, 64K, 256M, 2G"))?;
    number.checked_mul(factor).ok_or_else(|| format!("{text:?} is too large"))
}

#[cfg(test)]
mod tests {
    use super::parse_bytes;

    #[test]
    fn sizes() {
        assert_eq!(parse_bytes("4096"), Ok(4096));
        assert_eq!(parse_bytes("64K"), Ok(65536));
        assert_eq!(parse_bytes("256M"), Ok(256 << 20));
        assert!(parse_bytes("x").is_err());
        assert!(parse_bytes("").is_err());
        assert!(parse_bytes("99999999999G").is_err());
    }
}
