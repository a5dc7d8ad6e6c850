//! Traces: which blocks were read and written, in order; recorded ones and made ones.

mod compact;
mod strace;
pub mod synthetic;

use std::collections::HashSet;

use seawall_cache::access::Access;

pub use compact::{DamagedTrace, decode, encode};
pub use strace::{Recording, RecordingError};

/// Accesses in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Its name in tables.
    pub name: String,
    /// What happened.
    pub accesses: Vec<Access>,
}

/// The recorded ones, name and content ([`encode`]). `traces/record.sh` made them.
const RECORDED: [(&str, &[u8]); 5] = [
    ("pgbench select-only", include_bytes!("../../traces/pgbench-select.trace")),
    ("pgbench tpcb", include_bytes!("../../traces/pgbench-tpcb.trace")),
    ("pgbench Zipf + scans", include_bytes!("../../traces/pgbench-zipf-scan.trace")),
    ("SLOB on PostgreSQL", include_bytes!("../../traces/slob-postgres.trace")),
    ("SLOB on SQLite", include_bytes!("../../traces/slob-sqlite.trace")),
];

impl Trace {
    /// The recorded traces of the tree.
    ///
    /// # Errors
    /// The name of one that is damaged.
    pub fn recorded() -> Result<Vec<Self>, String> {
        let read = |(name, bytes): (&str, &[u8])| {
            let accesses = decode(bytes).map_err(|e| format!("{name}: {e}"))?;
            Ok(Self { name: name.to_owned(), accesses })
        };
        RECORDED.into_iter().map(read).collect()
    }

    /// How many different blocks it reads.
    pub fn blocks(&self) -> usize {
        let reads = self.accesses.iter().filter_map(|access| match access {
            Access::Read(block) => Some(*block),
            Access::Write(_) => None,
        });
        reads.collect::<HashSet<_>>().len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_traces_read_blocks_more_than_once() {
        for trace in Trace::recorded().expect("traces that can be read") {
            let reads = trace.accesses.iter().filter(|a| matches!(a, Access::Read(_))).count();
            assert!(reads > 2 * trace.blocks(), "{}: {reads} of {}", trace.name, trace.blocks());
        }
    }
}
