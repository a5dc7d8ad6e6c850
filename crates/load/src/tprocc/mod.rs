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
mod store;
mod text;

use serde::{Deserialize, Serialize};

pub use check::{CheckReport, Condition, check};
pub use load::{SetupOptions, SetupReport, setup};
pub use outcome::{Kinds, Outcome};
pub use run::{RunOptions, run};

/// Districts of a warehouse.
pub const DISTRICTS: u32 = 10;

/// How much there is of everything.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scale {
    /// Warehouses; everything but the items grows with them.
    pub warehouses: u32,
    /// Items, and stock of each in every warehouse: 100000 as specified.
    pub items: u32,
    /// Customers of a district, and orders it starts with: 3000 as specified.
    pub customers: u32,
}

impl Scale {
    /// As specified.
    pub fn of(warehouses: u32) -> Self {
        Scale { warehouses, items: 100_000, customers: 3000 }
    }

    /// The first order of a district that is not delivered yet: of 3000, the last 900.
    pub fn first_open_order(&self) -> u32 {
        self.customers - self.customers * 3 / 10 + 1
    }

    /// How many different last names customers have for certain.
    pub fn last_names(&self) -> u32 {
        self.customers.min(1000)
    }
}
