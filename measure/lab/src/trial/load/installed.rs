//! Installed tools as loads: sysbench on MariaDB, redis-benchmark on Redis, db_bench on RocksDB.
//!
//! What each did is checked as far as it lets itself be: sysbench's updates count a column up, so the sum must have
//! grown by as many; Redis counts the SETs itself, and must hold as many keys after a restart; db_bench keeps no
//! account, so its store is opened again, every checksum verified and everything read back.

use anyhow::{Context, Result, bail, ensure};
use seawall_load::installed::{Figures, Tool};
use seawall_load::redis::{Connection, Reply};

use super::Loaded;
use crate::case::{Load, Measure, Sysbench};
use crate::installed::{Sets, Tables, random_puts, read, read_back};
use crate::lab::Lab;
use crate::pg::Template;
use crate::process;
use crate::redis;
use crate::trial::prepare::Prepared;
use crate::trial::server::{self, Database, Server};
use crate::trial::stage::Stage;

fn tables(load: &Sysbench) -> Tables {
    Tables { tables: load.tables, rows: load.rows }
}

/// A data directory: with sysbench's tables, or empty.
pub fn template<'a>(lab: &'a Lab, load: Load<'_>) -> Result<Template<'a>> {
    let data = lab.work.data("template");
    match load {
        Load::Sysbench(sysbench) => tables(sysbench).prepare(lab, &data)?,
        _ => lab.fresh_dir(&data)?,
    }
    Ok(Template::of(lab, data))
}

/// Reads tables and indexes into the buffers.
pub fn warm(load: Load<'_>, server: &Server<'_>) -> Result<()> {
    if let (Load::Sysbench(sysbench), Database::Mariadb(server)) = (load, &server.database) {
        for name in tables(sysbench).names() {
            server.query(&format!(
                "SELECT count(c) FROM {db}.{name}; SELECT sum(k) FROM {db}.{name} WHERE k >= 0",
                db = crate::mariadb::DATABASE
            ))?;
        }
    }
    Ok(())
}

/// Runs it to its end.
pub fn run(stage: &Stage<'_>, load: Load<'_>, prepared: &Prepared, server: &Server<'_>) -> Result<Loaded> {
    let (lab, seconds) = (stage.lab, stage.run.seconds);
    match (load, &server.database) {
        (Load::Sysbench(sysbench), Database::Mariadb(server)) => {
            let tables = tables(sysbench);
            let before = tables.sum(server)?;
            let figures = tables.update(lab, server, sysbench.threads, seconds)?;
            let commits = figures.operations.context("sysbench counted nothing")?;
            let counted = tables.sum(server)? - before;
            ensure!(counted >= commits, "sysbench reported {commits} updates, its tables count {counted}");
            Ok(loaded(commits, &figures))
        }
        (Load::RedisBenchmark(load), Database::Redis(server)) => {
            let sets = Sets { clients: load.clients, pipeline: load.pipeline };
            let (figures, asked) = sets.run(lab, server, seconds as f64)?;
            let done = calls(server)?;
            ensure!(done >= asked, "redis-benchmark asked for {asked} SETs, Redis counts {done}");
            Ok(loaded(asked, &figures))
        }
        (Load::DbBench(load), Database::Embedded) => {
            let data = server.data(prepared);
            let mut command = server::command(lab, prepared, stage.bin, data)?;
            command.args(random_puts(data, load.threads, seconds, true)).arg("--histogram=1");
            prepared.settings(stage.case).for_each(|(name, value)| {
                command.arg(format!("--{name}={value}"));
            });
            let figures = read(Tool::DbBench, &process::run(command, "db_bench")?)?;
            Ok(loaded(figures.operations.context("db_bench counted nothing")?, &figures))
        }
        _ => bail!("the database is not the load's"),
    }
}

fn loaded(commits: u64, figures: &Figures) -> Loaded {
    let mut found = vec![(Measure::Throughput, figures.per_second)];
    let ms = |measure, us: Option<f64>| us.map(|us| (measure, us / 1e3));
    found.extend(ms(Measure::LatencyP99, figures.p99_us));
    found.extend(ms(Measure::Longest, figures.max_us));
    Loaded { commits, figures: found }
}

/// SETs since the server was started, by its own count.
fn calls(server: &redis::Server) -> Result<u64> {
    let said = Connection::open(server.socket())?.call(&["INFO", "commandstats"])?;
    let said = match said {
        Reply::Text(Some(said)) => said,
        other => bail!("INFO replied {other:?}"),
    };
    let line = said.lines().find_map(|line| line.strip_prefix("cmdstat_set:calls="));
    let count = line.and_then(|rest| rest.split(',').next()?.parse().ok());
    count.context("Redis does not count SETs")
}

fn keys(server: &redis::Server) -> Result<i64> {
    let said = Connection::open(server.socket())?.call(&["DBSIZE"])?;
    said.number().context("DBSIZE is no number")
}

/// Looks at what is there.
pub fn check<'a>(
    stage: &Stage<'a>,
    load: Load<'_>,
    prepared: &Prepared,
    server: Server<'a>,
) -> Result<Server<'a>> {
    match (load, &server.database) {
        (Load::Sysbench(sysbench), Database::Mariadb(server)) => tables(sysbench).check(server)?,
        (Load::RedisBenchmark(_), Database::Redis(redis)) => {
            let before = keys(redis)?;
            server.stop()?;
            let again = Server::start(stage.lab, stage.bin, stage.case, prepared)?;
            let Database::Redis(redis) = &again.database else { bail!("the database is not the load's") };
            let after = keys(redis)?;
            ensure!(before == after && after > 0, "{before} keys before a restart, {after} after it");
            return Ok(again);
        }
        (Load::DbBench(_), Database::Embedded) => {
            let data = server.data(prepared);
            let mut command = server::command(stage.lab, prepared, stage.bin, data)?;
            command.args(read_back(data));
            let said = process::run(command, "db_bench, reading back")?;
            let said = String::from_utf8_lossy(&said);
            ensure!(
                said.contains("readseq") && !said.contains("orruption"),
                "db_bench, reading back: {said}"
            );
        }
        _ => bail!("the database is not the load's"),
    }
    Ok(server)
}
