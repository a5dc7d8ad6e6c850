//! Load generators of others, as installed: how each is found, and what it says in figures.
//!
//! A caller builds the command with the tool's own options and hands what it printed to [`Tool::read`]. Closed loops
//! all of them: their latencies leave out what their users would have waited for. A tool that reports operations it
//! failed at has no figures, only an error.

mod db_bench;
mod figures;
mod pgbench;
mod redis_benchmark;
mod sysbench;

use std::env;
use std::path::PathBuf;

use anyhow::{Context, Result};

pub use figures::Figures;
pub use pgbench::latencies as pgbench_latencies;

/// A load generator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    /// PostgreSQL's own.
    Pgbench,
    /// For MariaDB and others.
    Sysbench,
    /// Redis's own. With `--csv`.
    RedisBenchmark,
    /// RocksDB's own, one benchmark at a time. With `--histogram` for percentiles.
    DbBench,
}

impl Tool {
    /// The program's name.
    pub fn program(self) -> &'static str {
        match self {
            Tool::Pgbench => "pgbench",
            Tool::Sysbench => "sysbench",
            Tool::RedisBenchmark => "redis-benchmark",
            Tool::DbBench => "db_bench",
        }
    }

    /// The package that has it.
    pub fn package(self) -> &'static str {
        match self {
            Tool::Pgbench => "postgresql-contrib",
            Tool::Sysbench => "sysbench",
            Tool::RedisBenchmark => "redis-tools",
            Tool::DbBench => "rocksdb-tools",
        }
    }

    /// Where it is, or which package to install.
    pub fn find(self) -> Result<PathBuf> {
        let (program, package) = (self.program(), self.package());
        find_in_path(program)
            .with_context(|| format!("{program} is not installed: apt-get install {package}"))
    }

    /// The figures in what it printed.
    pub fn read(self, said: &str) -> Result<Figures> {
        let figures = match self {
            Tool::Pgbench => pgbench::read(said),
            Tool::Sysbench => sysbench::read(said),
            Tool::RedisBenchmark => redis_benchmark::read(said),
            Tool::DbBench => db_bench::read(said),
        };
        figures.with_context(|| format!("cannot read what {} printed: {}", self.program(), said.trim()))
    }
}

/// A program where a shell would find it.
pub fn find_in_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    env::split_paths(&path).map(|dir| dir.join(program)).find(|p| p.is_file())
}

#[cfg(test)]
mod tests {
    use super::Tool;

    #[test]
    fn what_is_not_understood_is_shown() {
        for tool in [Tool::Pgbench, Tool::Sysbench, Tool::RedisBenchmark, Tool::DbBench] {
            let error = format!("{:#}", tool.read("out of order").expect_err("no figures"));
            assert!(error.contains("out of order"), "{error}");
        }
    }
}
