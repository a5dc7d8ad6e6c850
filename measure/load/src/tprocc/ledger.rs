//! Acknowledged orders and payments, kept outside the database.
//!
//! ```text
//! tprocc SETUP
//! n WAREHOUSE DISTRICT ORDER     a new order
//! p NUMBER                       a payment's history row
//! ```

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Result, bail};

use super::input::Transaction;
use super::store::Answer;
use crate::tally::{Lines, Tally};

const LOAD: &str = "tprocc";

/// Appends.
pub struct Writer(Tally);

impl Writer {
    /// Begins a new one.
    pub fn create(path: &Path, setup: u64) -> Result<()> {
        Tally::create(path, LOAD, setup)
    }

    /// Goes on with one.
    pub fn open(path: &Path, setup: u64) -> Result<Self> {
        Tally::open(path, LOAD, setup).map(Writer)
    }

    /// Notes what was acknowledged, if it changed something that can be found again.
    pub fn acknowledge(&self, transaction: &Transaction, answer: Answer) -> Result<()> {
        match (transaction, answer) {
            (Transaction::NewOrder { warehouse, district, .. }, Answer::Order(order)) => {
                self.0.append(&format!("n {warehouse} {district} {order}\n"))
            }
            (_, Answer::Payment(number)) => self.0.append(&format!("p {number}\n")),
            _ => Ok(()),
        }
    }
}

/// What was acknowledged.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// Warehouse, district, number.
    pub orders: HashSet<(u64, u64, u64)>,
    /// Numbers of history rows.
    pub payments: HashSet<u64>,
}

impl Acknowledged {
    /// Reads a ledger.
    pub fn read(path: &Path, setup: u64) -> Result<Self> {
        let mut all = Acknowledged::default();
        Lines::open(path, LOAD, setup)?.each(|words| {
            match *words {
                ["n", warehouse, district, order] => {
                    all.orders.insert((warehouse.parse()?, district.parse()?, order.parse()?));
                }
                ["p", number] => {
                    all.payments.insert(number.parse()?);
                }
                _ => bail!("this is not a line of a ledger of {LOAD}"),
            }
            Ok(())
        })?;
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_acknowledged_reads_back() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("ledger");
        Writer::create(&path, 7)?;
        let writer = Writer::open(&path, 7)?;
        let order = Transaction::NewOrder { warehouse: 1, district: 2, customer: 3, lines: Vec::new() };
        writer.acknowledge(&order, Answer::Order(3001))?;
        writer.acknowledge(&order, Answer::RolledBack)?;
        writer.acknowledge(&Transaction::Delivery { warehouse: 1, carrier: 1 }, Answer::Done)?;
        let all = Acknowledged::read(&path, 7)?;
        assert_eq!((all.orders, all.payments), (HashSet::from([(1, 2, 3001)]), HashSet::new()));
        Ok(())
    }
}
