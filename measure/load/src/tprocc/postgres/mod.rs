//! The mix on PostgreSQL: functions, one call a transaction.

use std::io::Write;

use anyhow::{Context, Result};
use postgres::{Client, NoTls, Statement};

use super::input::{Customer, Transaction};
use super::load::{Rows, Table, Value};
use super::store::{Answer, Database, Keeper, Loaded, Session};
use crate::counters::Counters;
use crate::failure::Failure;

const PATH: &str = "SET search_path = seawall_tprocc";
const PROCEDURES: [&str; 3] =
    [include_str!("new_order.sql"), include_str!("payment.sql"), include_str!("others.sql")];
/// What new_order.sql raises for an item that nobody has.
const UNUSED_ITEM: &str = "TP001";

/// A server.
pub struct Postgres<'a> {
    /// How to connect, in libpq's words.
    pub connect: &'a str,
}

impl Database for Postgres<'_> {
    fn session(&self) -> Result<Box<dyn Session>, Failure> {
        Ok(Box::new(PostgresSession::new(Client::connect(self.connect, NoTls)?)?))
    }

    fn keeper(&self) -> Result<Box<dyn Keeper>> {
        Ok(Box::new(PostgresKeeper(crate::pg::connect(self.connect)?)))
    }
}

struct PostgresSession {
    client: Client,
    new_order: Statement,
    payment: Statement,
    order_status: Statement,
    delivery: Statement,
    stock_level: Statement,
}

impl PostgresSession {
    fn new(mut client: Client) -> Result<Self, Failure> {
        client
            .batch_execute(&format!("{PATH}; SET jit = off; SET application_name = 'seawall-load tprocc'"))?;
        Ok(PostgresSession {
            new_order: client.prepare("SELECT new_order($1, $2, $3, $4, $5, $6)")?,
            payment: client.prepare("SELECT payment($1, $2, $3, $4, $5, $6, $7)")?,
            order_status: client.prepare("SELECT order_status($1, $2, $3, $4)")?,
            delivery: client.prepare("SELECT delivery($1, $2)")?,
            stock_level: client.prepare("SELECT stock_level($1, $2, $3)")?,
            client,
        })
    }
}

/// Number and name of a customer; the other one is empty.
fn named(customer: &Customer) -> (i32, &str) {
    match customer {
        Customer::Number(number) => (*number as i32, ""),
        Customer::LastName(name) => (0, name),
    }
}

impl Session for PostgresSession {
    fn execute(&mut self, transaction: &Transaction) -> Result<Answer, Failure> {
        let client = &mut self.client;
        match transaction {
            Transaction::NewOrder { warehouse, district, customer, lines } => {
                let all = |of: fn(&super::input::Line) -> u32| -> Vec<i32> {
                    lines.iter().map(|line| of(line) as i32).collect()
                };
                let (items, supplies) = (all(|line| line.item), all(|line| line.supply_warehouse));
                let quantities = all(|line| line.quantity);
                let (w, d, c) = (*warehouse as i32, *district as i32, *customer as i32);
                let said = client.query_one(&self.new_order, &[&w, &d, &c, &items, &supplies, &quantities]);
                match said {
                    Ok(row) => Ok(Answer::Order(row.try_get::<_, i32>(0)? as u32)),
                    Err(error) if error.code().is_some_and(|code| code.code() == UNUSED_ITEM) => {
                        Ok(Answer::RolledBack)
                    }
                    Err(error) => Err(error.into()),
                }
            }
            Transaction::Payment { warehouse, district, of, customer, cents } => {
                let (w, d, cw, cd) = (*warehouse as i32, *district as i32, of.0 as i32, of.1 as i32);
                let ((c, name), cents) = (named(customer), i64::from(*cents));
                let row = client.query_one(&self.payment, &[&w, &d, &cw, &cd, &c, &name, &cents])?;
                Ok(Answer::Payment(row.try_get::<_, i64>(0)? as u64))
            }
            Transaction::OrderStatus { warehouse, district, customer } => {
                let (w, d, (c, name)) = (*warehouse as i32, *district as i32, named(customer));
                client.query_one(&self.order_status, &[&w, &d, &c, &name])?;
                Ok(Answer::Done)
            }
            Transaction::Delivery { warehouse, carrier } => {
                client.query_one(&self.delivery, &[&(*warehouse as i32), &(*carrier as i32)])?;
                Ok(Answer::Done)
            }
            Transaction::StockLevel { warehouse, district, threshold } => {
                let (w, d, threshold) = (*warehouse as i32, *district as i32, *threshold as i32);
                client.query_one(&self.stock_level, &[&w, &d, &threshold])?;
                Ok(Answer::Done)
            }
        }
    }
}

struct PostgresKeeper(Client);

impl Keeper for PostgresKeeper {
    fn version(&mut self) -> Result<String> {
        crate::pg::version(&mut self.0)
    }

    fn create(&mut self) -> Result<()> {
        self.0.batch_execute("DROP SCHEMA IF EXISTS seawall_tprocc CASCADE")?;
        self.0.batch_execute(include_str!("schema.sql")).context("cannot create the tables")
    }

    fn load(&mut self, rows: &Rows) -> Result<()> {
        let mut copy = self.0.copy_in(&format!("COPY seawall_tprocc.{} FROM STDIN", rows.table.columns()))?;
        for row in &rows.rows {
            let fields = row.iter().map(|value: &Value| value.plain().unwrap_or_else(|| "\\N".to_owned()));
            writeln!(copy, "{}", fields.collect::<Vec<_>>().join("\t"))?;
        }
        copy.finish().with_context(|| format!("cannot load rows of {:?}", rows.table)).map(drop)
    }

    fn finish(&mut self, loaded: &Loaded) -> Result<()> {
        self.0.batch_execute(PATH)?;
        self.0.batch_execute(include_str!("indexes.sql")).context("cannot make the indexes")?;
        PROCEDURES
            .iter()
            .try_for_each(|sql| self.0.batch_execute(sql))
            .context("cannot make the functions")?;
        for table in Table::ALL {
            self.0.batch_execute(&format!("VACUUM ANALYZE {}", table.name()))?;
        }
        let Loaded { setup, scale } = *loaded;
        self.0.execute(
            "INSERT INTO loaded VALUES ($1, $2, $3, $4)",
            &[
                &(setup as i64),
                &i64::from(scale.warehouses),
                &i64::from(scale.items),
                &i64::from(scale.customers),
            ],
        )?;
        crate::pg::checkpoint(&mut self.0)
    }

    fn loaded(&mut self) -> Result<Option<Loaded>> {
        let Some(noted) = crate::pg::noted(&mut self.0, "seawall_tprocc.loaded")? else { return Ok(None) };
        self.0.batch_execute(PATH)?;
        Ok(Some(Loaded::from(noted)))
    }

    fn counters(&mut self) -> Result<Counters> {
        crate::pg::counters(&mut self.0)
    }

    fn number(&mut self, sql: &str) -> Result<u64> {
        Ok(self.0.query_one(sql, &[]).with_context(|| sql.to_owned())?.try_get::<_, i64>(0)? as u64)
    }

    fn numbers(&mut self, sql: &str) -> Result<Vec<Vec<u64>>> {
        let mut all = Vec::new();
        for message in self.0.simple_query(sql).with_context(|| sql.to_owned())? {
            if let postgres::SimpleQueryMessage::Row(row) = message {
                let numbers =
                    (0..row.len()).map(|column| Ok(row.get(column).context("a column is NULL")?.parse()?));
                all.push(numbers.collect::<Result<Vec<u64>>>()?);
            }
        }
        Ok(all)
    }

    fn integrity(&mut self) -> Result<Vec<String>> {
        // Where the checker's functions are, and where they are put if they are not there yet.
        self.0.batch_execute("RESET search_path")?;
        crate::pg::integrity(&mut self.0)
    }
}
