//! One snapshot: machine, Seawall, database, as near to one instant as three questions allow.

use std::path::Path;
use std::time::Instant;

use crate::database::Database;
use crate::model::{Cost, Snapshot, Target};
use crate::{clock, machine, seawall};

/// Takes it. If Seawall or the database does not answer, that is a note in the snapshot. The database's error is
/// also returned beside it, because its connection is of no use any more.
pub fn take(
    target: &Target,
    label: &str,
    database: Option<&mut dyn Database>,
    pool: Option<&Path>,
) -> (Snapshot, Option<anyhow::Error>) {
    let (begin, cpu) = (Instant::now(), clock::cpu_us());
    let mut snapshot =
        Snapshot { at: clock::now(), target: target.clone(), label: label.into(), ..Snapshot::default() };
    // The quick ones first: the database may take its time, and says itself how long it counted.
    machine::capture(&mut snapshot);
    if let Some(Err(e)) = pool.map(|pool| seawall::capture(pool, &mut snapshot)) {
        snapshot.notes.push(format!("Seawall: {e:#}"));
    }
    let failed = database.and_then(|database| database.capture(&mut snapshot).err());
    if let Some(e) = &failed {
        snapshot.notes.push(format!("the database did not answer: {e:#}"));
    }
    let span_us = begin.elapsed().as_micros() as u64;
    snapshot.cost = Cost { cpu_us: clock::cpu_us().saturating_sub(cpu), span_us };
    (snapshot, failed)
}

/// The target of a snapshot without a database.
pub fn machine_only() -> Target {
    let host = machine::host_name();
    Target {
        product: "machine".into(),
        id: format!("machine {host}"),
        name: host.clone(),
        host,
        ..Target::default()
    }
}

#[cfg(test)]
mod tests {
    use anyhow::{Result, bail};

    use super::*;

    struct Vanished;

    impl Database for Vanished {
        fn target(&mut self) -> Result<Target> {
            bail!("gone")
        }
        fn capture(&mut self, _: &mut Snapshot) -> Result<()> {
            bail!("the server closed the connection")
        }
    }

    #[test]
    fn what_can_be_read_is_kept_when_the_database_has_vanished() {
        let pool = Path::new("/nowhere/x.pool");
        let (snapshot, failed) = take(&machine_only(), "x", Some(&mut Vanished), Some(pool));
        assert!(failed.is_some() && snapshot.one("cpu").is_some());
        let notes = snapshot.notes.join("\n");
        assert!(notes.contains("closed the connection") && notes.contains("/nowhere/x.pool"), "{notes}");
    }
}
