//! What every load asks a MariaDB server.

use std::num::ParseIntError;
use std::str::FromStr;

use anyhow::{Context, Result, anyhow};

use super::connection::Connection;
use crate::counters::Counters;
use crate::failure::Failure;

/// A failure of a connection that nobody kills.
pub fn told(failure: Failure) -> anyhow::Error {
    match failure {
        Failure::Other(error) => error,
        failure => anyhow!("{failure}"),
    }
}

impl Connection {
    /// The last column of each row.
    pub fn texts(&mut self, sql: &str) -> Result<Vec<String>> {
        let rows = self.query(sql).map_err(told)?;
        Ok(rows.into_iter().filter_map(|row| row.into_iter().next_back().flatten()).collect())
    }

    /// `MariaDB 10.11.19-MariaDB`.
    pub fn version(&mut self) -> Result<String> {
        let version = self.texts("SELECT version()")?;
        Ok(format!("MariaDB {}", version.first().context("MariaDB does not say its version")?))
    }

    /// What the server has counted so far.
    pub fn counters(&mut self) -> Result<Counters> {
        let mut status = |name: &str| -> Result<Option<u64>> {
            let said = self.texts(&format!("SHOW GLOBAL STATUS LIKE '{name}'"))?;
            Ok(said.first().and_then(|text| text.parse().ok()))
        };
        let transactions = [status("Com_commit")?, status("Com_rollback")?];
        Ok(Counters {
            redo_bytes: status("Innodb_os_log_written")?,
            logical_reads: status("Innodb_buffer_pool_read_requests")?,
            physical_reads: status("Innodb_buffer_pool_reads")?,
            transactions: transactions.into_iter().sum(),
        })
    }

    /// Rows of whole numbers.
    pub fn numbers<T: FromStr<Err = ParseIntError>>(&mut self, sql: &str) -> Result<Vec<Vec<T>>> {
        let number = |value: Option<String>| -> Result<T> { Ok(value.context("a column is NULL")?.parse()?) };
        let rows = self.query(sql).map_err(told)?;
        rows.into_iter().map(|row| row.into_iter().map(number).collect()).collect()
    }

    /// The four numbers that a setup has noted in the table `loaded` of a database; `None`: it has not come to its end.
    pub fn noted(&mut self, database: &str) -> Result<Option<[u64; 4]>> {
        let is_there = format!(
            "SELECT count(*) FROM information_schema.tables WHERE table_schema = '{database}' AND table_name = 'loaded'"
        );
        if self.number(&is_there).map_err(told)? == 0 {
            return Ok(None);
        }
        let row = self.numbers(&format!("SELECT * FROM {database}.loaded"))?.into_iter().next();
        row.map(|row| row.try_into().map_err(|row| anyhow!("{database}.loaded has {row:?}"))).transpose()
    }

    /// What `CHECK TABLE … EXTENDED` finds wrong.
    pub fn check_tables(&mut self, tables: impl IntoIterator<Item = String>) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        for table in tables {
            let said = self.texts(&format!("CHECK TABLE {table} EXTENDED"))?;
            wrong.extend(said.into_iter().filter(|said| said != "OK").map(|said| format!("{table}: {said}")));
        }
        Ok(wrong)
    }
}
