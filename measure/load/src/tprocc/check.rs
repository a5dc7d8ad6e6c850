//! `check`: the specification's consistency conditions, the ledger, and the database's own checker.
//!
//! Conditions 1 to 10 and 12 of TPC-C's clause 3.3.2, each as a count of what breaks it. (11 compares numbers of
//! orders with those of the beginning: deliveries change them.) Then: every acknowledged order and payment is there.

mod conditions;

use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use self::conditions::CONDITIONS;
use super::ledger::Acknowledged;
use super::store::Keeper;
use super::targets;
use crate::progress::Progress;
use crate::target::Target;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckReport {
    /// `postgres`, `mariadb`.
    pub database: String,
    /// The consistency conditions.
    pub conditions: Vec<Condition>,
    /// Orders and payments that were acknowledged since the setup.
    pub acknowledged: u64,
    /// Of those, how many are not there: data loss.
    pub missing: u64,
    /// The first of them.
    pub missing_examples: Vec<String>,
    /// What the database's own checker finds wrong.
    pub integrity_errors: Vec<String>,
}

/// A consistency condition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// Its number in the specification.
    pub number: u32,
    /// What it says.
    pub says: String,
    /// How many rows break it.
    pub broken: u64,
}

impl CheckReport {
    /// Nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.missing == 0 && self.integrity_errors.is_empty() && self.conditions.iter().all(|c| c.broken == 0)
    }

    fn miss(&mut self, what: String) {
        self.missing += 1;
        if self.missing_examples.len() < 10 {
            self.missing_examples.push(what);
        }
    }
}

/// Checks the tables of the last setup, and the ledger that it began.
pub fn check(target: &Target, ledger: &Path, progress: &dyn Progress) -> Result<CheckReport> {
    let database = targets::open(target)?;
    let mut keeper = database.keeper()?;
    let loaded = keeper.loaded()?.context("the tables are not loaded: `setup` makes them")?;
    let acknowledged = Acknowledged::read(ledger, loaded.setup)?;
    let mut report = CheckReport {
        database: target.name().to_owned(),
        acknowledged: (acknowledged.orders.len() + acknowledged.payments.len()) as u64,
        ..CheckReport::default()
    };
    progress.begin("conditions checked", CONDITIONS.len() as u64);
    for condition in CONDITIONS {
        let broken = condition.parts.iter().map(|sql| keeper.number(sql)).sum::<Result<u64>>()?;
        let (number, says) = (condition.number, condition.says.to_owned());
        report.conditions.push(Condition { number, says, broken });
        progress.advance(1);
    }
    find_acknowledged(keeper.as_mut(), acknowledged, &mut report)?;
    report.integrity_errors = keeper.integrity()?;
    Ok(report)
}

fn find_acknowledged(
    keeper: &mut dyn Keeper,
    mut acknowledged: Acknowledged,
    report: &mut CheckReport,
) -> Result<()> {
    for row in keeper.numbers("SELECT o_w_id, o_d_id, o_id FROM orders")? {
        if let [warehouse, district, order] = row[..] {
            acknowledged.orders.remove(&(warehouse, district, order));
        }
    }
    for row in keeper.numbers("SELECT h_id FROM history")? {
        acknowledged.payments.remove(&row[0]);
    }
    for (warehouse, district, order) in acknowledged.orders {
        report.miss(format!("order {order} of district {district} of warehouse {warehouse}"));
    }
    acknowledged.payments.into_iter().for_each(|number| report.miss(format!("payment {number}")));
    Ok(())
}
