//! `check`: reads every row and compares it with what was acknowledged.
//!
//! In a row: each column's checksum, its place, and that the operation it names covered this row; that the columns
//! an update changes together name the same operation. Over the table: that every row is there once, that the
//! index finds as many, and that each was updated exactly as often as the ledger says.
//!
//! Of a run that was cut (the server killed), operations that nobody saw acknowledged may be there too: wholly.
//! They are counted, not held against the database; half of one is.
//!
//! Not seen: an acknowledged update whose rows were all overwritten by later ones *and* counted all the same.

mod table;

use std::collections::HashSet;
use std::path::Path;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use self::table::TableCheck;
use super::ledger::Sums;
use super::store::{Keeper, Loaded, Table};
use super::targets;
use crate::progress::Progress;
use crate::target::Target;

/// How many problems a report describes in words; it counts all of them.
const TOLD: usize = 20;

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CheckReport {
    /// `postgres`, `mariadb`, `sqlite`.
    pub database: String,
    /// Schemas that were read.
    pub schemas: u32,
    /// Rows that were read.
    pub rows: u64,
    /// Blocks that hold them, where the database can tell.
    pub blocks: Option<u64>,
    /// Updates that were acknowledged since the setup.
    pub acknowledged: u64,
    /// Updates of cut runs that are there although nobody saw them acknowledged.
    pub unacknowledged: u64,
    /// How much is wrong.
    pub problems: u64,
    /// The first of it, in words.
    pub examples: Vec<String>,
}

impl CheckReport {
    /// Nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.problems == 0
    }

    fn problem(&mut self, text: String) {
        self.problems += 1;
        if self.examples.len() < TOLD {
            self.examples.push(text);
        }
    }
}

/// Checks the tables of the last setup against the ledger that it began.
pub fn check(target: &Target, ledger: &Path, progress: &dyn Progress) -> Result<CheckReport> {
    let database = targets::open(target);
    let mut keeper = database.keeper()?;
    let Some(loaded) = keeper.loaded()? else { bail!("the tables are not loaded: `setup` makes them") };
    let mut sums = Sums::read(ledger, loaded.setup, loaded.rows)?;
    let mut report = CheckReport {
        database: target.name().to_owned(),
        schemas: loaded.schemas,
        acknowledged: sums.updates,
        ..CheckReport::default()
    };
    progress.begin("rows checked", u64::from(loaded.schemas) * (loaded.rows + loaded.scan_rows));
    let mut found = HashSet::new();
    for schema in 1..=loaded.schemas {
        check_data(keeper.as_mut(), schema, &loaded, &mut sums, &mut found, &mut report)?;
        progress.advance(loaded.rows);
        check_scan(keeper.as_mut(), schema, &loaded, &mut report)?;
        progress.advance(loaded.scan_rows);
    }
    report.unacknowledged = found.len() as u64;
    for said in keeper.integrity(loaded.schemas)? {
        report.problem(said);
    }
    Ok(report)
}

fn check_data(
    keeper: &mut dyn Keeper,
    schema: u32,
    loaded: &Loaded,
    sums: &mut Sums,
    found: &mut HashSet<(u32, table::Operation)>,
    report: &mut CheckReport,
) -> Result<()> {
    let mut table = TableCheck::new(schema, loaded.rows, report);
    keeper.each_row(schema, Table::Data, &mut |row| table.see(row, sums))?;
    let (updates, surprising) = table.finish();
    for operation in surprising {
        sums.add(schema, operation, loaded.rows);
        found.insert((schema, operation));
    }
    for ((custid, is), wanted) in (1..).zip(updates).zip(sums.expected(schema, loaded.rows)) {
        // Where a run was cut, later updates may cover all that one left of another's rows.
        let is_explained = is.is_none_or(|is| is == wanted || (is > wanted && !sums.cut.is_empty()));
        if !is_explained {
            let is = is.unwrap_or_default();
            let word = if is < wanted { "updates are lost" } else { "no session asked for so many" };
            report.problem(format!("schema {schema} row {custid}: updated {is} times, not {wanted}: {word}"));
        }
    }
    let indexed = keeper.indexed_rows(schema)?;
    if indexed != loaded.rows {
        report.problem(format!("schema {schema}: the index finds {indexed} rows, not {}", loaded.rows));
    }
    report.rows += loaded.rows;
    let blocks = keeper.blocks(schema)?;
    report.blocks = blocks.map(|blocks| report.blocks.unwrap_or_default() + blocks);
    Ok(())
}

/// Nothing ever changes a scan table.
fn check_scan(keeper: &mut dyn Keeper, schema: u32, loaded: &Loaded, report: &mut CheckReport) -> Result<()> {
    let untouched = Sums::default();
    let mut table = TableCheck::new(schema, loaded.scan_rows, report);
    keeper.each_row(schema, Table::Scan, &mut |row| table.see(row, &untouched))?;
    let (updates, _) = table.finish();
    if updates.iter().any(|updates| updates.is_some_and(|updates| updates > 0)) {
        report.problem(format!("schema {schema}: the scan table was updated"));
    }
    Ok(())
}
