//! Load generators of others on the lab's databases: with which options each is called, here and nowhere else.
//!
//! How a tool is found and what it prints is [`seawall_load::installed`]'s.

use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};
use seawall_load::installed::{Figures, Tool};

use crate::lab::Lab;
use crate::mariadb::{self, DATABASE, install};
use crate::process::run;
use crate::redis;
use crate::side::Side;

/// sysbench's test: one row a transaction.
const SYSBENCH: &str = "oltp_update_index";
/// More SETs a second than a Redis takes on one core.
const FASTEST: f64 = 300_000.0;

/// sysbench's tables.
#[derive(Clone, Copy, Debug)]
pub struct Tables {
    pub tables: u32,
    /// Of each.
    pub rows: u32,
}

impl Tables {
    /// A data directory with them.
    pub fn prepare(self, lab: &Lab, data: &Path) -> Result<()> {
        install(lab, data)?;
        let server = mariadb::Server::start(lab, Side::Unsafe, data)?;
        let mut prepare = self.sysbench(lab, &server);
        prepare.arg("prepare");
        run(prepare, "sysbench prepare")?;
        server.stop()
    }

    fn sysbench(self, lab: &Lab, server: &mariadb::Server<'_>) -> Command {
        let mut command = lab.command(Tool::Sysbench.program());
        command.args([SYSBENCH, "--db-driver=mysql", "--mysql-user=root", "--percentile=99"]);
        command.arg(format!("--tables={}", self.tables)).arg(format!("--table-size={}", self.rows));
        command.arg(format!("--mysql-socket={}", server.socket().display()));
        command.arg(format!("--mysql-db={DATABASE}"));
        command
    }

    /// Updates them for so many seconds.
    pub fn update(
        self,
        lab: &Lab,
        server: &mariadb::Server<'_>,
        threads: u32,
        seconds: u64,
    ) -> Result<Figures> {
        let bench = self.updating(lab, server, threads, seconds);
        read(Tool::Sysbench, &run(bench, "sysbench")?)
    }

    fn updating(self, lab: &Lab, server: &mariadb::Server<'_>, threads: u32, seconds: u64) -> Command {
        let mut bench = self.sysbench(lab, server);
        bench.arg(format!("--threads={threads}")).arg(format!("--time={seconds}")).arg("run");
        bench
    }

    /// The same, saying every second how many there were.
    pub fn reporting(self, lab: &Lab, server: &mariadb::Server<'_>, threads: u32, seconds: u64) -> Command {
        let mut command = self.updating(lab, server, threads, seconds);
        command.arg("--report-interval=1");
        command
    }

    /// The tables' names.
    pub fn names(self) -> impl Iterator<Item = String> {
        (1..=self.tables).map(|n| format!("sbtest{n}"))
    }

    /// What all updates have counted up.
    pub fn sum(self, server: &mariadb::Server<'_>) -> Result<u64> {
        let mut sum = 0;
        for name in self.names() {
            sum += server.query(&format!("SELECT sum(k) FROM {DATABASE}.{name}"))?.parse::<u64>()?;
        }
        Ok(sum)
    }

    /// MariaDB's own checker finds nothing.
    pub fn check(self, server: &mariadb::Server<'_>) -> Result<()> {
        for name in self.names() {
            let said = server.query(&format!("CHECK TABLE {DATABASE}.{name} EXTENDED"))?;
            ensure!(said.lines().all(|line| line.ends_with("\tOK")), "CHECK TABLE {name}: {said}");
        }
        Ok(())
    }
}

/// redis-benchmark's options.
#[derive(Clone, Copy, Debug)]
pub struct Sets {
    pub clients: u32,
    /// Commands sent before a reply is waited for.
    pub pipeline: u32,
}

impl Sets {
    /// SETs for about so many seconds, and how many were asked for.
    pub fn run(self, lab: &Lab, server: &redis::Server, seconds: f64) -> Result<(Figures, u64)> {
        // It counts requests, not seconds; and over less than a millisecond it says infinity.
        let few = u64::from(self.clients * self.pipeline) * 40 + 400;
        let probed = self.ask(lab, server, few)?.per_second.min(FASTEST);
        let requests = (probed * seconds) as u64 + 1;
        Ok((self.ask(lab, server, requests)?, few + requests))
    }

    fn ask(self, lab: &Lab, server: &redis::Server, requests: u64) -> Result<Figures> {
        let mut bench = lab.command(Tool::RedisBenchmark.program());
        bench.arg("-s").arg(server.socket()).args(["-t", "set", "-d", "100", "-r", "100000", "--csv"]);
        for (option, value) in [("-c", self.clients.into()), ("-P", self.pipeline.into()), ("-n", requests)] {
            bench.arg(option).arg(value.to_string());
        }
        read(Tool::RedisBenchmark, &run(bench, "redis-benchmark")?)
    }
}

/// db_bench's options for random puts into an empty database, each synced; the last of two that set the same counts.
pub fn random_puts(data: &Path, threads: u32, seconds: u64) -> Vec<String> {
    let mut args = vec![format!("--db={}", data.display()), format!("--threads={threads}")];
    args.extend(["--benchmarks=fillrandom", "--compression_type=none", "--sync=1"].map(Into::into));
    args.push(format!("--duration={seconds}"));
    args
}

/// db_bench's options for reading back everything there is; its log is replayed before.
pub fn read_back(data: &Path) -> Vec<String> {
    let mut args = vec![format!("--db={}", data.display())];
    args.extend(
        ["--use_existing_db=1", "--benchmarks=verifychecksum,readseq", "--compression_type=none"]
            .map(Into::into),
    );
    args
}

/// The figures in what a tool printed.
pub fn read(tool: Tool, said: &[u8]) -> Result<Figures> {
    tool.read(&String::from_utf8_lossy(said))
}
