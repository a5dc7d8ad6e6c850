//! A session of a run.

use std::collections::HashMap;

use postgres::types::ToSql;
use postgres::{Client, Statement};

use crate::failure::Failure;
use crate::slob::pick::Rows;
use crate::slob::store::{HOME, Session, Table, table_name};
use crate::slob::{CommitMode, RedoStress};

const SETTINGS: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET jit = off;
    SET statement_timeout = 0; SET application_name = 'seawall-load slob'";

pub struct PostgresSession {
    client: Client,
    stress: RedoStress,
    /// By schema; a hot schema adds a second one.
    statements: HashMap<u32, Statements>,
}

#[derive(Clone)]
struct Statements {
    read: Statement,
    update: Statement,
    scan: Statement,
}

impl PostgresSession {
    pub fn new(mut client: Client, mode: CommitMode, stress: RedoStress) -> Result<Self, Failure> {
        let wait = if mode == CommitMode::Asynchronous { "off" } else { "on" };
        client.batch_execute(&format!("{SETTINGS}; SET synchronous_commit = {wait}"))?;
        Ok(PostgresSession { client, stress, statements: HashMap::new() })
    }

    fn statements(&mut self, schema: u32) -> Result<Statements, Failure> {
        if let Some(statements) = self.statements.get(&schema) {
            return Ok(statements.clone());
        }
        let (data, scan) = (table_name(schema, Table::Data), table_name(schema, Table::Scan));
        let rows = "WHERE custid > $1 AND custid < $2";
        let columns = self.stress.columns();
        let set: String = columns.iter().zip(3..).map(|(c, number)| format!(", c{c} = ${number}")).collect();
        let statements = Statements {
            read: self.client.prepare(&format!("SELECT count(c2) FROM {data} {rows}"))?,
            update: self.client.prepare(&format!("UPDATE {data} SET updates = updates + 1{set} {rows}"))?,
            scan: self.client.prepare(&format!("SELECT count(c2) FROM {scan}"))?,
        };
        self.statements.insert(schema, statements.clone());
        Ok(statements)
    }

    fn count(&mut self, statement: &Statement, values: &[&(dyn ToSql + Sync)]) -> Result<u64, Failure> {
        Ok(self.client.query_one(statement, values)?.try_get::<_, i64>(0)? as u64)
    }
}

impl Session for PostgresSession {
    fn read(&mut self, schema: u32, rows: Rows) -> Result<u64, Failure> {
        let statements = self.statements(schema)?;
        self.count(&statements.read, &[&(rows.above() as i64), &(rows.r as i64)])
    }

    fn update(&mut self, schema: u32, rows: Rows, columns: &[String]) -> Result<u64, Failure> {
        let statements = self.statements(schema)?;
        let (above, r) = (rows.above() as i64, rows.r as i64);
        let mut values: Vec<&(dyn ToSql + Sync)> = vec![&above, &r];
        values.extend(columns.iter().map(|text| text as &(dyn ToSql + Sync)));
        Ok(self.client.execute(&statements.update, &values)?)
    }

    fn scan(&mut self, schema: u32) -> Result<u64, Failure> {
        let statements = self.statements(schema)?;
        self.count(&statements.scan, &[])
    }

    fn begin(&mut self) -> Result<(), Failure> {
        Ok(self.client.batch_execute("BEGIN")?)
    }

    fn commit(&mut self) -> Result<(), Failure> {
        Ok(self.client.batch_execute("COMMIT")?)
    }

    /// A commit that waits takes the whole log before it along; it has to have written something to wait at all.
    fn wait_durable(&mut self) -> Result<(), Failure> {
        let wait = format!("SET synchronous_commit = on; INSERT INTO {HOME}.waits DEFAULT VALUES");
        Ok(self.client.batch_execute(&wait)?)
    }
}
