//! The load of a case, on a running database.
//!
//! [`postgres`]: pgbench and our own generators. [`installed`]: tools of others, on other servers. [`embedded`]: programs
//! that have their store in themselves. [`definitions`]: CREATE and DROP. [`etcd`]: its own benchmark, or puts of ours.

mod definitions;
mod embedded;
mod etcd;
mod installed;
mod loaded;
mod postgres;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use seawall_load::store::Store;

pub use loaded::{Loaded, copy_ledger, ledger};
pub use postgres::{Pgbench, slob_outcome, slob_run};

use self::embedded::Programs;
use super::prepare::Prepared;
use super::server::{Database, Server};
use super::stage::Stage;
use crate::case::{Case, Load, Product};
use crate::lab::Lab;
use crate::pg::Template;
use crate::store::Program;
use crate::{mariadb, redis, tools};

/// The database's program (PostgreSQL: where its programs are), after whatever the load needs was found.
pub fn find_programs(load: Load<'_>) -> Result<PathBuf> {
    let tool = load.tool().map(|tool| tool.find()).transpose()?;
    match load.product() {
        Product::Postgres => tools::postgres_bin(),
        Product::Mariadb => mariadb::program(),
        Product::Redis => redis::program(),
        Product::Rocksdb => tool.context("the load of RocksDB has no tool"),
        // The lab's own program, which is found with the lab's others.
        Product::Sqlite | Product::Files => Ok(PathBuf::new()),
        Product::Lmdb => tools::find_in_path("cc").context("there is no C compiler: apt-get install gcc"),
        Product::Etcd => crate::etcd::program(),
    }
}

/// What every configuration begins with a copy of.
pub fn template<'a>(lab: &'a Lab, bin: &Path, case: &Case) -> Result<Template<'a>> {
    match case.load() {
        load if load.product() == Product::Postgres => {
            Template::create_with(lab, bin, |cluster| postgres::create(lab, case, cluster))
        }
        load => {
            if matches!(load, Load::Lmdb(_)) {
                Program::build(lab, Store::Lmdb, "")?;
            }
            installed::template(lab, load)
        }
    }
}

/// Warm buffers, and nothing that a checkpoint would write.
pub fn warm(case: &Case, server: &Server<'_>) -> Result<()> {
    match case.load() {
        load if load.product() == Product::Postgres => postgres::warm(server.postgres()?),
        load => installed::warm(load, server),
    }
}

/// Runs it to its end.
pub fn run(stage: &Stage<'_>, prepared: &Prepared, server: &Server<'_>) -> Result<Loaded> {
    match stage.case.load() {
        Load::Definitions(load) => definitions::run(server, load.of, stage.run.seconds),
        Load::Pgbench(_) | Load::Slob(_) | Load::Tprocc(_) => {
            postgres::run(stage, prepared, server.postgres()?)
        }
        load => match (&server.database, load) {
            (Database::Embedded, _) => programs(stage, prepared, server).run(),
            (Database::Etcd(server), Load::Etcd(load)) => {
                etcd::run(stage.lab, server, load.clients, stage.run.seconds)
            }
            _ => installed::run(stage, load, server),
        },
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
        Load::Definitions(_) => Ok(server),
        load => match &server.database {
            Database::Embedded => {
                programs(stage, prepared, &server).check(loaded.commits)?;
                Ok(server)
            }
            Database::Etcd(_) => Ok(server),
            _ => installed::check(stage, load, prepared, server),
        },
    }
}

fn programs<'a>(stage: &'a Stage<'a>, prepared: &'a Prepared, server: &'a Server<'_>) -> Programs<'a> {
    Programs { stage, prepared, data: server.data(prepared) }
}
