//! What SLOB needs of a database. One implementation for each.

use anyhow::Result;

use super::pick::Rows;
use super::stamp::COLUMNS;
use super::{CommitMode, RedoStress};
use crate::counters::Counters;
use crate::failure::Failure;

/// One of a schema's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// What operations touch, through an index on `custid`.
    Data,
    /// What is read whole: no index.
    Scan,
}

impl Table {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Table::Data => "data",
            Table::Scan => "scan",
        }
    }
}

/// In PostgreSQL the schema, in MariaDB the database of what belongs to no schema of SLOB's.
pub const HOME: &str = "seawall_slob";

/// The name of one of SLOB's schemas there.
pub fn schema_name(schema: u32) -> String {
    format!("{HOME}{schema}")
}

/// A table's name there, with its schema's.
pub fn table_name(schema: u32, table: Table) -> String {
    format!("{}.{}", schema_name(schema), table.name())
}

/// What `setup` leaves behind, so that a run can tell whether the tables are those of its configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// A random number, in the ledger too.
    pub setup: u64,
    /// How many schemas there are.
    pub schemas: u32,
    /// Rows of each.
    pub rows: u64,
    /// Rows of each scan table.
    pub scan_rows: u64,
}

/// As every database keeps it: in columns of this order.
impl From<[u64; 4]> for Loaded {
    fn from([setup, schemas, rows, scan_rows]: [u64; 4]) -> Self {
        Loaded { setup, schemas: schemas as u32, rows, scan_rows }
    }
}

/// A row, as `check` reads it.
#[derive(Clone, Debug)]
pub struct Row<'a> {
    /// The key.
    pub custid: u64,
    /// How often it was updated.
    pub updates: u64,
    /// c2 to c20.
    pub columns: [&'a str; COLUMNS],
}

/// A database.
pub trait Database: Sync {
    /// Opens a session for a run. What it commits is durable as `mode` says.
    fn session(&self, mode: CommitMode, stress: RedoStress) -> Result<Box<dyn Session>, Failure>;
    /// Opens a connection to load, look and check.
    fn keeper(&self) -> Result<Box<dyn Keeper>>;
    /// How many connections may load at once.
    fn loaders_max(&self) -> u32 {
        u32::MAX
    }
}

/// One session of a run. Outside a transaction each call is one.
pub trait Session: Send {
    /// Counts the rows of a stretch through the index.
    fn read(&mut self, schema: u32, rows: Rows) -> Result<u64, Failure>;
    /// Gives the rows of a stretch new texts and returns how many there were.
    fn update(&mut self, schema: u32, rows: Rows, columns: &[String]) -> Result<u64, Failure>;
    /// Counts the rows of the scan table, reading each.
    fn scan(&mut self, schema: u32) -> Result<u64, Failure>;
    /// Begins a transaction.
    fn begin(&mut self) -> Result<(), Failure>;
    /// Commits it.
    fn commit(&mut self) -> Result<(), Failure>;
    /// Waits until everything this session committed is durable.
    fn wait_durable(&mut self) -> Result<(), Failure>;
}

/// A connection that loads, looks and checks.
pub trait Keeper: Send {
    /// `PostgreSQL 15.18`.
    fn version(&mut self) -> Result<String>;
    /// Bytes of a block.
    fn block_bytes(&mut self) -> Result<u64>;
    /// Removes what an earlier `setup` left and makes empty tables.
    fn create(&mut self, schemas: u32) -> Result<()>;
    /// Adds rows to a table, in the order given.
    fn load(&mut self, schema: u32, table: Table, custids: &mut dyn Iterator<Item = u64>) -> Result<()>;
    /// Makes the index, and whatever else makes a loaded table ready.
    fn finish(&mut self, schema: u32) -> Result<()>;
    /// Notes that everything is loaded, and makes it durable.
    fn note_loaded(&mut self, loaded: &Loaded) -> Result<()>;
    /// What was noted; `None`: there is no complete load.
    fn loaded(&mut self) -> Result<Option<Loaded>>;
    /// What the database has counted so far.
    fn counters(&mut self) -> Result<Counters>;
    /// Reads every row of a table, not through its index.
    fn each_row(&mut self, schema: u32, table: Table, see: &mut dyn FnMut(&Row<'_>)) -> Result<()>;
    /// How many rows the index finds.
    fn indexed_rows(&mut self, schema: u32) -> Result<u64>;
    /// How many blocks hold the rows, if the database can tell.
    fn blocks(&mut self, schema: u32) -> Result<Option<u64>>;
    /// What the database's own checker finds wrong.
    fn integrity(&mut self, schemas: u32) -> Result<Vec<String>>;
}
