//! Which database a target is.

use anyhow::{Result, bail};

use super::mariadb::Mariadb;
use super::postgres::Postgres;
use super::store::Database;
use crate::target::Target;

/// The implementation for a target.
pub fn open(target: &Target) -> Result<Box<dyn Database + '_>> {
    match target {
        Target::Postgres(connect) => Ok(Box::new(Postgres { connect })),
        Target::Mariadb(server) => Ok(Box::new(Mariadb { server })),
        Target::Sqlite(_) => {
            bail!("the TPROC-C-like mix runs on PostgreSQL and MariaDB: SQLite has no procedures")
        }
    }
}
