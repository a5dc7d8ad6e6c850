//! The load profile, and instance efficiency.

mod mariadb;
mod postgres;
mod redis;

use super::elapsed::intervals;
use super::figures::Period;
use crate::delta::Deltas;
use crate::model::Snapshot;

pub use mariadb::mariadb_transactions;

/// Fills in what the database counted.
pub fn fill(period: &mut Period, deltas: &Deltas) {
    match period.target.product.as_str() {
        "PostgreSQL" => postgres::fill(period, deltas),
        "MariaDB" => mariadb::fill(period, deltas),
        "Redis" => redis::fill(period, deltas),
        _ => {}
    }
}

/// Transactions a second between each snapshot and the next, where counters did not begin again.
pub fn rates(snapshots: &[Snapshot]) -> Vec<f64> {
    let rate = |(last, deltas, passed): (&Snapshot, Deltas, f64)| {
        let mut period = Period { target: last.target.clone(), ..Period::default() };
        fill(&mut period, &deltas);
        period.transactions.map(|n| n / passed)
    };
    intervals(snapshots).filter_map(rate).collect()
}
