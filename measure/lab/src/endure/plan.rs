//! Which loads there are.

use clap::ValueEnum;
use clap::builder::PossibleValue;
use seawall_load::write::Pattern;

use crate::case::PolicyName;
use crate::side::Preset;

/// Bytes of one write.
pub const BLOCK_BYTES: u64 = 8192;

/// The file of the write load: larger than the log, small enough to stay in the page cache.
pub fn file_bytes(pool: u64) -> u64 {
    2 * pool
}

/// PostgreSQL's preset with a policy.
pub fn preset(policy: PolicyName) -> Preset {
    match policy {
        PolicyName::Tail => Preset::Postgres,
        PolicyName::Atomic => Preset::PostgresAtomic,
    }
}

/// How fast a write load goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// At half of what the disk was just measured to take.
    Steady,
    /// As fast as it can.
    FlatOut,
}

/// One load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// `seawall-load write`: 8 KiB and a sync, in a directory that looks like PostgreSQL's.
    Write(PolicyName, Pattern, Pace),
    /// pgbench, with a checkpoint every 30 seconds and clients that come and go.
    Postgres(PolicyName),
}

impl Load {
    const ALL: [(&'static str, Load); 7] = [
        ("write-tail-sequential-steady", Load::Write(PolicyName::Tail, Pattern::Sequential, Pace::Steady)),
        ("write-tail-sequential-flat-out", Load::Write(PolicyName::Tail, Pattern::Sequential, Pace::FlatOut)),
        ("write-atomic-random-steady", Load::Write(PolicyName::Atomic, Pattern::Random, Pace::Steady)),
        ("write-atomic-random-flat-out", Load::Write(PolicyName::Atomic, Pattern::Random, Pace::FlatOut)),
        (
            "write-atomic-sequential-flat-out",
            Load::Write(PolicyName::Atomic, Pattern::Sequential, Pace::FlatOut),
        ),
        ("postgres-tail", Load::Postgres(PolicyName::Tail)),
        ("postgres-atomic", Load::Postgres(PolicyName::Atomic)),
    ];
    const VALUES: [Load; Self::ALL.len()] = {
        let mut values = [Load::Postgres(PolicyName::Tail); Self::ALL.len()];
        let mut i = 0;
        while i < values.len() {
            values[i] = Self::ALL[i].1;
            i += 1;
        }
        values
    };

    /// Its name, on the command line too.
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, load)| *load == self).map_or("unnamed", |(name, _)| name)
    }

    /// What is logged.
    pub fn policy(self) -> PolicyName {
        match self {
            Load::Write(policy, ..) | Load::Postgres(policy) => policy,
        }
    }

    /// True if it needs PostgreSQL.
    pub fn is_postgres(self) -> bool {
        matches!(self, Load::Postgres(_))
    }
}

impl ValueEnum for Load {
    fn value_variants<'a>() -> &'a [Self] {
        &Self::VALUES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        Some(PossibleValue::new(self.name()))
    }
}

/// The loads that were asked for: all without a word.
pub fn chosen(only: &[Load]) -> Vec<Load> {
    if only.is_empty() { Load::VALUES.to_vec() } else { only.to_vec() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_load_has_a_name_of_its_own() {
        for (name, load) in Load::ALL {
            assert_eq!(load.name(), name);
        }
    }
}
