//! Installed tools as loads of servers: sysbench on MariaDB, redis-benchmark on Redis.
//!
//! What each did is checked as far as it lets itself be: sysbench's updates count a column up, so the sum must have
//! grown by as many; Redis counts the SETs itself, and must hold as many keys after a restart.

use anyhow::{Context, Result, bail, ensure};
use seawall_load::installed::Figures;
use seawall_load::redis::{Connection, Reply};

use super::Loaded;
use crate::case::{Load, Measure, Sysbench};
use crate::installed::{Sets, Tables};
use crate::lab::Lab;
use crate::mariadb;
use crate::pg::Template;
use crate::redis;
use crate::trial::prepare::Prepared;
use crate::trial::server::{Database, Server};
use crate::trial::stage::Stage;

fn tables(load: &Sysbench) -> Tables {
    Tables { tables: load.tables, rows: load.rows }
}

/// A data directory: with sysbench's tables, or empty.
pub fn template<'a>(lab: &'a Lab, load: Load<'_>) -> Result<Template<'a>> {
    let data = lab.work.data("template");
    match load {
        Load::Sysbench(sysbench) => tables(sysbench).prepare(lab, &data)?,
        Load::Definitions(_) => mariadb::install(lab, &data)?,
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
pub fn run(stage: &Stage<'_>, load: Load<'_>, server: &Server<'_>) -> Result<Loaded> {
    let (lab, seconds) = (stage.lab, stage.run.seconds);
    match (load, &server.database) {
        (Load::Sysbench(sysbench), Database::Mariadb(server)) => {
            let tables = tables(sysbench);
            let before = tables.sum(server)?;
            let figures = tables.update(lab, server, sysbench.threads, seconds)?;
            let commits = figures.operations.context("sysbench counted no transactions")?;
            let counted = tables.sum(server)? - before;
            ensure!(
                counted >= commits,
                "sysbench reported {commits} updates, but its tables count {counted}"
            );
            Ok(loaded(commits, &figures))
        }
        (Load::RedisBenchmark(load), Database::Redis(server)) => {
            let sets = Sets { clients: load.clients, pipeline: load.pipeline };
            let (figures, asked) = sets.run(lab, server, seconds as f64)?;
            let done = calls(server)?;
            ensure!(done >= asked, "redis-benchmark asked for {asked} SETs, but Redis counts {done}");
            Ok(loaded(asked, &figures))
        }
        _ => bail!("the load does not run on this database"),
    }
}

/// What a tool's figures say.
pub fn loaded(commits: u64, figures: &Figures) -> Loaded {
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
    said.number().context("the reply to DBSIZE is not a number")
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
            let Database::Redis(redis) = &again.database else {
                bail!("the load does not run on this database")
            };
            let after = keys(redis)?;
            ensure!(
                before == after && after > 0,
                "there were {before} keys before a restart, and {after} after it"
            );
            return Ok(again);
        }
        _ => bail!("the load does not run on this database"),
    }
    Ok(server)
}
