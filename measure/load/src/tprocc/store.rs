//! What the mix needs of a database.

use anyhow::Result;

use super::Scale;
use super::input::Transaction;
use super::load::Rows;
use crate::counters::Counters;
use crate::failure::Failure;

/// What a transaction that was committed says (but the third, which was rolled back as it should be).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The number of a new order.
    Order(u32),
    /// The number of a payment's history row.
    Payment(u64),
    /// An item was asked for that nobody has: a new order in a hundred.
    RolledBack,
    /// Anything else.
    Done,
}

/// What `setup` leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// A random number, in the ledger too.
    pub setup: u64,
    /// How much was loaded.
    pub scale: Scale,
}

/// As every database keeps it: in columns of this order.
impl From<[u64; 4]> for Loaded {
    fn from([setup, warehouses, items, customers]: [u64; 4]) -> Self {
        let [warehouses, items, customers] = [warehouses, items, customers].map(|number| number as u32);
        Loaded { setup, scale: Scale { warehouses, items, customers } }
    }
}

/// A database.
pub trait Database: Sync {
    /// Opens a virtual user's session.
    fn session(&self) -> Result<Box<dyn Session>, Failure>;
    /// Opens a connection to load, look and check.
    fn keeper(&self) -> Result<Box<dyn Keeper>>;
}

/// A virtual user's session.
pub trait Session: Send {
    /// Runs a transaction; it is committed when this returns.
    fn execute(&mut self, transaction: &Transaction) -> Result<Answer, Failure>;
}

/// A connection that loads, looks and checks.
pub trait Keeper: Send {
    /// `PostgreSQL 15.18`.
    fn version(&mut self) -> Result<String>;
    /// Removes what an earlier `setup` left and makes empty tables.
    fn create(&mut self) -> Result<()>;
    /// Adds rows.
    fn load(&mut self, rows: &Rows) -> Result<()>;
    /// Makes indexes and procedures, and notes that everything is loaded.
    fn finish(&mut self, loaded: &Loaded) -> Result<()>;
    /// What was noted; `None`: there is no complete load.
    fn loaded(&mut self) -> Result<Option<Loaded>>;
    /// What the database has counted so far.
    fn counters(&mut self) -> Result<Counters>;
    /// A number.
    fn number(&mut self, sql: &str) -> Result<u64>;
    /// Rows of whole numbers.
    fn numbers(&mut self, sql: &str) -> Result<Vec<Vec<u64>>>;
    /// What the database's own checker finds wrong.
    fn integrity(&mut self) -> Result<Vec<String>>;
}
