//! Killing databases at full load, and the proof afterwards. The demo and the tests share this.
//!
//! A load notes each commit in a ledger outside the database as soon as it was acknowledged. After the kill
//! and a restart, ledger and database are compared, and the database's own checkers are run. Not shown by
//! any of it: a power cut. The page cache outlives every process.

mod etcd;
mod generator;
mod mariadb;
mod postgres;
mod program;
mod redis;
mod sqlite;
mod store;
mod waiting;

pub use etcd::check_etcd;
pub use generator::{Generator, GeneratorLoad, Reached};
pub use mariadb::{MariadbLoad, check_mariadb, check_mariadb_files};
pub use postgres::{PostgresLoad, check_postgres};
pub use program::ProgramLoad;
pub use redis::check_redis;
pub use sqlite::check_sqlite;
pub use store::check_store;
