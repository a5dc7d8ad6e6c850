//! How much there is of everything.

use serde::{Deserialize, Serialize};

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
