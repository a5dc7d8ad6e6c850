//! CREATE and DROP, of databases and of filled tables by PostgreSQL and of tables by MariaDB, one pair after the other.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

use super::Loaded;
use crate::case::{Defined, Measure};
use crate::mariadb::DATABASE;
use crate::process::run as finish;
use crate::trial::server::{Database, Server};

/// One client runs so many pairs, since its start takes a while.
const OF_POSTGRES: usize = 5;
const OF_MARIADB: usize = 100;
const FILL: [&str; 3] = [
    "CREATE TABLE made AS SELECT g, repeat('x', 100) AS filler FROM generate_series(1, 50000) g",
    "CREATE INDEX ON made (g)",
    "DROP TABLE made",
];

/// Runs it for about so many seconds. The first pairs, which make more than the later ones, are not counted.
pub fn run(server: &Server<'_>, of: Defined, seconds: u64) -> Result<Loaded> {
    let (pairs, lasts) = (pairs(server, of)?, Duration::from_secs(seconds));
    let (begin, mut done) = (Instant::now(), 0);
    while begin.elapsed() < lasts {
        done += self::pairs(server, of)?;
    }
    let rate = done as f64 / begin.elapsed().as_secs_f64();
    Ok(Loaded { commits: (pairs + done) as u64, figures: vec![(Measure::Throughput, rate)] })
}

/// Some pairs: how many.
fn pairs(server: &Server<'_>, of: Defined) -> Result<usize> {
    match &server.database {
        Database::Postgres(cluster) => {
            let pair: &[&str] = match of {
                Defined::FilledTables => &FILL,
                _ => &["CREATE DATABASE made", "DROP DATABASE made"],
            };
            let mut psql = cluster.client("psql");
            psql.args(["-X", "-q", "-v", "ON_ERROR_STOP=1"]);
            for statement in pair.repeat(OF_POSTGRES) {
                psql.args(["-c", statement]);
            }
            finish(psql, "psql")?;
            Ok(OF_POSTGRES)
        }
        Database::Mariadb(server) => {
            let pair = "CREATE TABLE made (a INT PRIMARY KEY) ENGINE=InnoDB; DROP TABLE made;";
            server.sql(&format!("USE {DATABASE}; {}", pair.repeat(OF_MARIADB)))?;
            Ok(OF_MARIADB)
        }
        _ => bail!("only PostgreSQL and MariaDB make databases and tables"),
    }
}
