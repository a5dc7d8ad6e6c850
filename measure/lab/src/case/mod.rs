//! A case: a question, the configurations that answer it, the load, the measures, the controls.
//!
//! Input: a small TOML file, one of those built in ([`builtin`]) or the user's own. Output: a [`Case`] that can be
//! run, or an error that names file, line and key and says what is allowed ([`parse()`]). Adding a case is adding a
//! file; nothing here runs anything.

pub mod builtin;
mod check;
mod definition;
mod load;
mod measure;
pub mod page;
mod parse;
mod product;
mod schema;
mod setting;
#[cfg(test)]
mod tests;
mod wrong;

pub use builtin::find;
pub use definition::Case;
pub use load::{
    DbBench, Defined, Definitions, Etcd, Files, Lmdb, Load, Pgbench, RedisBenchmark, Slob, Sqlite, Sysbench,
    Tprocc,
};
pub use measure::Measure;
pub use parse::{CaseError, parse};
pub use product::Product;
pub use schema::{
    Configuration, Crash, Devices, FileSystem, Front, Medium, PolicyName, Role, Slicing, Source, Wal,
};
pub use setting::Setting;
