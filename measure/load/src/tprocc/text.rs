//! Results for people.

use std::fmt;

use super::input::Kind;
use super::{CheckReport, Outcome, SetupReport};
use crate::counters::redo_line;
use crate::latency::Summary;

impl fmt::Display for SetupReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scale = &self.scale;
        write!(
            f,
            "{}: {} warehouses with {} items and {} customers in each of ten districts, loaded in {:.1} s",
            self.database, scale.warehouses, scale.items, scale.customers, self.seconds
        )
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "TPROC-C-like (not a result of TPC-C)")?;
        let keying = if self.keying { "with" } else { "without" };
        writeln!(
            f,
            "{}: {} warehouses, {} virtual users {keying} keying and thinking time, {:.1} s",
            self.version, self.scale.warehouses, self.users, self.seconds
        )?;
        let or_lost = |figure: Option<f64>| figure.map_or("lost".to_owned(), |figure| format!("{figure:.0}"));
        writeln!(
            f,
            "NOPM {}   TPM {}   acknowledged a minute {:.0}",
            or_lost(self.nopm),
            or_lost(self.tpm),
            self.acknowledged_per_minute
        )?;
        if let Some(redo) = self.redo_bytes {
            writeln!(f, "{}", redo_line(redo, self.seconds))?;
        }
        writeln!(f, "{}", Summary::HEADER)?;
        for kind in Kind::ALL {
            writeln!(f, "{}", self.kinds.of(kind).latency.line(kind.name()))?;
        }
        writeln!(f, "{}", self.latency.line("all"))?;
        if let Some(open) = &self.open_loop {
            writeln!(f, "{}\n{open}", self.service.line("from sending"))?;
        }
        writeln!(
            f,
            "{} new orders rolled back as they should, {} conflicts",
            self.rolled_back, self.conflicts
        )?;
        self.errors.iter().try_for_each(|error| writeln!(f, "CUT SHORT: {error}"))
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for condition in &self.conditions {
            let broken = match condition.broken {
                0 => "holds".to_owned(),
                rows => format!("BROKEN in {rows} places"),
            };
            writeln!(f, "{:>2}  {:<80} {broken}", condition.number, condition.says)?;
        }
        writeln!(f, "{} orders and payments were acknowledged, {} missing", self.acknowledged, self.missing)?;
        self.missing_examples.iter().try_for_each(|example| writeln!(f, "  {example}"))?;
        self.integrity_errors.iter().try_for_each(|error| writeln!(f, "  {error}"))?;
        f.write_str(if self.is_clean() {
            "consistent, and nothing acknowledged is missing"
        } else {
            "DAMAGE"
        })
    }
}
