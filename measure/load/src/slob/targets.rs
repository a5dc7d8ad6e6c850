//! Which database a target is.

use super::mariadb::Mariadb;
use super::postgres::Postgres;
use super::sqlite::Sqlite;
use super::store::Database;
use crate::target::Target;

/// The implementation for a target.
pub fn open(target: &Target) -> Box<dyn Database + '_> {
    match target {
        Target::Postgres(connect) => Box::new(Postgres { connect }),
        Target::Mariadb(server) => Box::new(Mariadb { server }),
        Target::Sqlite(file) => Box::new(Sqlite { file }),
    }
}
