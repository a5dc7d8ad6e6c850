//! Results for people.

use std::fmt;

use super::{CheckReport, CommitMode, Outcome, SetupReport};
use crate::counters::redo_line;
use crate::latency::Summary;

impl fmt::Display for SetupReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SetupReport { database, layout, schemas, rows, seconds } = self;
        write!(
            f,
            "{database}: {rows} rows, schemas: {schemas}; a row in each block of {} bytes, loaded in {seconds:.1} s",
            layout.block_bytes
        )
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let commit = match self.commit {
            CommitMode::PerOperation => "committed and waited for one by one",
            CommitMode::Asynchronous => "committed without waiting, one wait at the end",
            CommitMode::OneTransaction => "one transaction a session",
        };
        writeln!(f, "{}: {} sessions, {:.1} s, {commit}", self.version, self.sessions, self.seconds)?;
        writeln!(
            f,
            "{:.1} operations/s   {:.1} transactions/s   {} operations",
            self.operations_per_second, self.transactions_per_second, self.operations
        )?;
        let rows = &self.rows;
        writeln!(f, "rows: {} updated, {} read, {} scanned", rows.updated, rows.read, rows.scanned)?;
        if let Some(redo) = self.redo_bytes {
            writeln!(f, "{}", redo_line(redo, self.seconds))?;
        }
        if let (Some(logical), Some(physical)) = (self.counters.logical_reads, self.counters.physical_reads) {
            writeln!(f, "blocks: {logical} looked at, {physical} of them not in the database's cache")?;
        }
        writeln!(f, "\n{}", Summary::HEADER)?;
        let lines = [
            ("all", &self.latency),
            ("updates", &self.update_latency),
            ("reads", &self.read_latency),
            ("scans", &self.scan_latency),
            ("last waits", &self.waits),
        ];
        for (name, summary) in lines.into_iter().filter(|(_, summary)| summary.ops > 0) {
            writeln!(f, "{}", summary.line(name))?;
        }
        if let Some(open) = &self.open_loop {
            writeln!(f, "{}\n{open}", self.service.line("from sending"))?;
        }
        if self.conflicts > 0 {
            writeln!(f, "{} operations were undone by a conflict", self.conflicts)?;
        }
        self.errors.iter().try_for_each(|error| writeln!(f, "CUT SHORT: {error}"))
    }
}

impl fmt::Display for CheckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let CheckReport { database, schemas, rows, acknowledged, unacknowledged, problems, .. } = self;
        writeln!(f, "{database}: {rows} rows read, schemas: {schemas}; {acknowledged} acknowledged updates")?;
        if *unacknowledged > 0 {
            writeln!(f, "{unacknowledged} more updates are there, which were under way when a run was cut")?;
        }
        self.examples.iter().try_for_each(|example| writeln!(f, "  {example}"))?;
        match problems {
            0 => write!(f, "every row is right, and no acknowledged update is missing"),
            problems => write!(f, "DAMAGE: {problems} problems"),
        }
    }
}
