//! A session of a run.

use crate::failure::Failure;
use crate::mariadb::Connection;
use crate::slob::RedoStress;
use crate::slob::pick::Rows;
use crate::slob::store::{Session, Table, table_name};

pub struct MariadbSession {
    connection: Connection,
    stress: RedoStress,
}

impl MariadbSession {
    pub fn new(mut connection: Connection, stress: RedoStress) -> Result<Self, Failure> {
        connection.execute("SET SESSION autocommit = 1, SESSION wait_timeout = 86400")?;
        Ok(MariadbSession { connection, stress })
    }
}

fn data(schema: u32) -> String {
    format!("{} FORCE INDEX (custid)", table_name(schema, Table::Data))
}

fn between(rows: Rows) -> String {
    format!("WHERE custid > {} AND custid < {}", rows.above(), rows.r)
}

impl Session for MariadbSession {
    fn read(&mut self, schema: u32, rows: Rows) -> Result<u64, Failure> {
        let sql = format!("SELECT count(c2) FROM {} {}", data(schema), between(rows));
        Ok(self.connection.number(&sql)? as u64)
    }

    fn update(&mut self, schema: u32, rows: Rows, columns: &[String]) -> Result<u64, Failure> {
        let numbers = self.stress.columns();
        // The texts are hexadecimal digits and dots: nothing to escape.
        let set: String = numbers.iter().zip(columns).map(|(c, text)| format!(", c{c} = '{text}'")).collect();
        let sql = format!("UPDATE {} SET updates = updates + 1{set} {}", data(schema), between(rows));
        self.connection.execute(&sql)
    }

    fn scan(&mut self, schema: u32) -> Result<u64, Failure> {
        Ok(self.connection.number(&format!("SELECT count(c2) FROM {}", table_name(schema, Table::Scan)))?
            as u64)
    }

    fn begin(&mut self) -> Result<(), Failure> {
        self.connection.execute("BEGIN").map(drop)
    }

    fn commit(&mut self) -> Result<(), Failure> {
        self.connection.execute("COMMIT").map(drop)
    }

    fn wait_durable(&mut self) -> Result<(), Failure> {
        unreachable!("this mode was refused when the session was opened")
    }
}
