//! What its tables and indexes are called.

use crate::slob::store::{Table, schema_name};

/// The table of what belongs to no schema.
pub const LOADED: &str = "seawall_slob_loaded";
/// What is written to wait for everything before it.
pub const WAITS: &str = "seawall_slob_waits";
/// A table's name.
pub fn table_name(schema: u32, table: Table) -> String {
    format!("{}_{}", schema_name(schema), table.name())
}

/// The name of the index on `custid`.
pub fn index_name(schema: u32) -> String {
    format!("{}_custid", schema_name(schema))
}
