//! The mix on MariaDB: procedures, one call a transaction.

use anyhow::{Context, Result};

use super::Scale;
use super::input::{Customer, Transaction};
use super::load::{Rows, Table, Value};
use super::store::{Answer, Database, Keeper, Loaded, Session};
use crate::counters::Counters;
use crate::failure::Failure;
use crate::mariadb::{Connection, told};
use crate::target::MariadbServer;

const HOME: &str = "seawall_tprocc";
const PROCEDURES: [&str; 6] = [
    include_str!("new_order.sql"),
    include_str!("customer_of.sql"),
    include_str!("payment.sql"),
    include_str!("order_status.sql"),
    include_str!("delivery.sql"),
    include_str!("stock_level.sql"),
];
/// Rows in one statement.
const ROWS_A_STATEMENT: usize = 500;

/// A server.
pub struct Mariadb<'a> {
    /// How it is reached.
    pub server: &'a MariadbServer,
}

impl Database for Mariadb<'_> {
    fn session(&self) -> Result<Box<dyn Session>, Failure> {
        let mut connection = Connection::open(self.server)?;
        connection
            .execute(&format!("USE {HOME}; SET SESSION autocommit = 1, SESSION wait_timeout = 86400"))?;
        Ok(Box::new(MariadbSession(connection)))
    }

    fn keeper(&self) -> Result<Box<dyn Keeper>> {
        Ok(Box::new(MariadbKeeper(Connection::open(self.server).map_err(told)?)))
    }
}

struct MariadbSession(Connection);

/// Number and name of a customer, as arguments; the other one is empty.
fn named(customer: &Customer) -> String {
    match customer {
        Customer::Number(number) => format!("{number}, ''"),
        Customer::LastName(name) => format!("0, '{name}'"),
    }
}

fn call(transaction: &Transaction) -> String {
    match transaction {
        Transaction::NewOrder { warehouse: w, district: d, customer, lines } => {
            let is_local = lines.iter().all(|line| line.supply_warehouse == *w);
            let text: Vec<String> =
                lines.iter().map(|l| format!("{}:{}:{}", l.supply_warehouse, l.item, l.quantity)).collect();
            let (count, local, text) = (lines.len(), u8::from(is_local), text.join(","));
            format!("CALL new_order({w}, {d}, {customer}, {count}, {local}, '{text}')")
        }
        Transaction::Payment { warehouse, district, of: (cw, cd), customer, cents } => {
            format!("CALL payment({warehouse}, {district}, {cw}, {cd}, {}, {cents})", named(customer))
        }
        Transaction::OrderStatus { warehouse, district, customer } => {
            format!("CALL order_status({warehouse}, {district}, {})", named(customer))
        }
        Transaction::Delivery { warehouse, carrier } => format!("CALL delivery({warehouse}, {carrier})"),
        Transaction::StockLevel { warehouse, district, threshold } => {
            format!("CALL stock_level({warehouse}, {district}, {threshold})")
        }
    }
}

impl Session for MariadbSession {
    fn execute(&mut self, transaction: &Transaction) -> Result<Answer, Failure> {
        let number = match self.0.number(&call(transaction)) {
            Ok(number) => number as u64,
            Err(Failure::Conflict(said)) => {
                self.0.execute("ROLLBACK")?; // a lock timeout undoes only its own statement
                return Err(Failure::Conflict(said));
            }
            Err(failure) => return Err(failure),
        };
        Ok(match transaction {
            Transaction::NewOrder { .. } if number == 0 => Answer::RolledBack,
            Transaction::NewOrder { .. } => Answer::Order(number as u32),
            Transaction::Payment { .. } => Answer::Payment(number),
            _ => Answer::Done,
        })
    }
}

struct MariadbKeeper(Connection);

impl MariadbKeeper {
    fn execute(&mut self, sql: &str) -> Result<()> {
        self.0.execute(sql).map(drop).map_err(told)
    }
}

fn literal(value: &Value) -> String {
    match (value, value.plain()) {
        (_, None) => "NULL".to_owned(),
        (Value::Text(_), Some(text)) => format!("'{text}'"),
        (_, Some(number)) => number,
    }
}

impl Keeper for MariadbKeeper {
    fn version(&mut self) -> Result<String> {
        self.0.version()
    }

    fn create(&mut self) -> Result<()> {
        self.execute(&format!("DROP DATABASE IF EXISTS {HOME}"))?;
        self.execute(include_str!("schema.sql")).context("cannot create the tables")
    }

    fn load(&mut self, rows: &Rows) -> Result<()> {
        for some in rows.rows.chunks(ROWS_A_STATEMENT) {
            let tuple = |row: &Vec<Value>| {
                let values: Vec<String> = row.iter().map(literal).collect();
                format!("({})", values.join(", "))
            };
            let tuples: Vec<String> = some.iter().map(tuple).collect();
            self.execute(&format!(
                "INSERT INTO {HOME}.{} VALUES {}",
                rows.table.columns(),
                tuples.join(", ")
            ))
            .with_context(|| format!("cannot load rows of {:?}", rows.table))?;
        }
        Ok(())
    }

    fn finish(&mut self, loaded: &Loaded) -> Result<()> {
        self.execute(&format!("USE {HOME}"))?;
        self.execute(include_str!("indexes.sql")).context("cannot make the indexes")?;
        PROCEDURES.iter().try_for_each(|sql| self.execute(sql)).context("cannot make the procedures")?;
        self.0.query(&format!("ANALYZE TABLE {}", Table::ALL.map(Table::name).join(", "))).map_err(told)?;
        let Loaded { setup, scale: Scale { warehouses, items, customers } } = loaded;
        self.execute(&format!("INSERT INTO loaded VALUES ({setup}, {warehouses}, {items}, {customers})"))
    }

    fn loaded(&mut self) -> Result<Option<Loaded>> {
        let Some(noted) = self.0.noted(HOME)? else { return Ok(None) };
        self.execute(&format!("USE {HOME}"))?;
        Ok(Some(Loaded::from(noted)))
    }

    fn counters(&mut self) -> Result<Counters> {
        self.0.counters()
    }

    fn number(&mut self, sql: &str) -> Result<u64> {
        self.0.number(sql).map(|number| number as u64).map_err(told)
    }

    fn numbers(&mut self, sql: &str) -> Result<Vec<Vec<u64>>> {
        self.0.numbers(sql)
    }

    fn integrity(&mut self) -> Result<Vec<String>> {
        self.0.check_tables(Table::ALL.iter().map(|table| format!("{HOME}.{}", table.name())))
    }
}
