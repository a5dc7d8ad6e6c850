//! The load of a case, on a running database.
//!
//! [`postgres`]: pgbench and our own generators. [`installed`]: tools of others, on other databases.

mod installed;
mod loaded;
mod postgres;

use std::path::{Path, PathBuf};

use anyhow::Result;

pub use loaded::{Loaded, copy_ledger, ledger};
pub use postgres::Pgbench;

use super::prepare::Prepared;
use super::server::Server;
use super::stage::Stage;
use crate::case::{Case, Load};
use crate::lab::Lab;
use crate::pg::Template;
use crate::{mariadb, redis, tools};

/// The database's program (PostgreSQL: where its programs are), after whatever the load needs was found.
pub fn find_programs(load: Load<'_>) -> Result<PathBuf> {
    let tool = load.tool().map(|tool| tool.find()).transpose()?;
    match load {
        Load::Pgbench(_) | Load::Slob(_) | Load::Tprocc(_) => tools::postgres_bin(),
        Load::Sysbench(_) => mariadb::program(),
        Load::RedisBenchmark(_) => redis::program(),
        Load::DbBench(_) => tool.ok_or_else(|| anyhow::anyhow!("RocksDB without its tool")),
    }
}

/// What every configuration begins with a copy of.
pub fn template<'a>(lab: &'a Lab, bin: &Path, case: &Case) -> Result<Template<'a>> {
    match case.load() {
        Load::Pgbench(_) | Load::Slob(_) | Load::Tprocc(_) => {
            Template::create_with(lab, bin, |cluster| postgres::create(lab, case, cluster))
        }
        load => installed::template(lab, load),
    }
}

/// Warm buffers, and nothing that a checkpoint would write.
pub fn warm(case: &Case, server: &Server<'_>) -> Result<()> {
    match case.load() {
        Load::Pgbench(_) | Load::Slob(_) | Load::Tprocc(_) => postgres::warm(server.postgres()?),
        load => installed::warm(load, server),
    }
}

/// Runs it to its end.
pub fn run(stage: &Stage<'_>, prepared: &Prepared, server: &Server<'_>) -> Result<Loaded> {
    match stage.case.load() {
        Load::Pgbench(_) | Load::Slob(_) | Load::Tprocc(_) => {
            postgres::run(stage, prepared, server.postgres()?)
        }
        load => installed::run(stage, load, prepared, server),
    }
}

/// What was acknowledged is there, and whole, as far as the load can tell.
pub fn check<'a>(
    stage: &Stage<'a>,
    prepared: &Prepared,
    server: Server<'a>,
    loaded: &Loaded,
) -> Result<Server<'a>> {
    match stage.case.load() {
        Load::Pgbench(_) | Load::Slob(_) | Load::Tprocc(_) => {
            postgres::check(stage, prepared, server.postgres()?, loaded)?;
            Ok(server)
        }
        load => installed::check(stage, load, prepared, server),
    }
}
