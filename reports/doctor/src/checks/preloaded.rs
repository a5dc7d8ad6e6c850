//! Libraries that take fsync away from programs.

use crate::finding::{Finding, Sure};
use crate::view::View;

/// Libraries whose fsync does nothing.
const LIARS: [&str; 3] = ["libeatmydata", "libnosync", "libnofsync"];

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let lies = |path: &&String| LIARS.iter().any(|name| path.contains(name));
    let found = view.machine.host.preloaded.iter().filter(lies).map(|path| {
        Finding::durability("fsync-is-taken-away", "/etc/ld.so.preload")
            .what(format!("Every program of this machine loads {path}"))
            .why("With it fsync and the like return at once and do nothing: no database here is durable")
            .sure(Sure::High, "the file says so")
            .type_in(format!("sed -i '\\|{path}|d' /etc/ld.so.preload"))
            .type_in("# then restart every database")
    });
    let process = view.database.as_ref().and_then(|found| found.process.as_ref());
    let loaded = process.and_then(|process| {
        let path = process.mapped.iter().find(lies)?;
        Some(
            Finding::durability("fsync-is-taken-away", format!("process {}", process.pid))
                .what(format!("The server, process {}, has loaded {path}", process.pid))
                .why("With it fsync and the like return at once and do nothing: the database is not durable")
                .sure(Sure::High, "the library is in its memory")
                .type_in(
                    "# start it without eatmydata, and without LD_PRELOAD in its unit or its environment",
                ),
        )
    });
    found.chain(loaded).collect()
}
