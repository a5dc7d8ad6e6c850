//! A TPROC-C-like mix: the transactions of HammerDB's TPROC-C and their weights, on PostgreSQL and MariaDB.
//!
//! HammerDB's TPROC-C is itself derived from the TPC-C specification; **no figure from here is a result of TPC-C**, and
//! none may be compared with one. New-order, payment, order-status, delivery and stock-level come 10:10:1:1:1, each
//! one call of a procedure in the database, committed before it returns. TPM counts the transactions the database
//! says it ended, NOPM the new orders, both as HammerDB counts them.
//!
//! - [`setup()`] loads the warehouses and begins a ledger of acknowledged orders and payments.
//! - [`run()`] lets virtual users work, without keying and thinking time unless asked for.
//! - [`check()`] tests the specification's consistency conditions, and that nothing acknowledged is missing.

pub mod input;

mod check;
mod ledger;
mod load;
mod mariadb;
mod names;
mod outcome;
mod postgres;
mod run;
mod scale;
mod store;
mod targets;
mod text;

pub use check::{CheckReport, Condition, check};
pub use load::{SetupOptions, SetupReport, setup};
pub use outcome::{Kinds, Outcome};
pub use run::{RunOptions, run};
pub use scale::{DISTRICTS, Scale};
