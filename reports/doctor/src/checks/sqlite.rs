//! SQLite: what its header allows to say.

use crate::database::Engine;
use crate::finding::{Finding, Sure};
use crate::machine::Mount;
use crate::view::View;

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let Some(found) = view.database(Engine::Sqlite) else { return Vec::new() };
    let on_network = view.data().is_some_and(|place| place.is_on(Mount::on_network));
    let wal = found.settings.value("journal_mode") == Some("wal");
    let shared = (on_network && wal).then(|| {
        Finding::durability("sqlite-wal-on-network", found.data.display().to_string())
            .what("An SQLite database in WAL mode lies on a network file system")
            .why("WAL mode needs memory that all processes share: two hosts that open the file damage it")
            .sure(Sure::Medium, "one host alone does no harm")
            .type_in("sqlite3 FILE 'PRAGMA journal_mode=DELETE'")
    });
    let journal = (!wal).then(|| {
        Finding::information("sqlite-rollback-journal", found.data.display().to_string())
            .what("The database uses a rollback journal")
            .why("A transaction waits for the disk several times; in WAL mode with synchronous=FULL it waits once")
            .sure(Sure::High, "the file's header says so")
            .type_in("sqlite3 FILE 'PRAGMA journal_mode=WAL'")
    });
    shared.into_iter().chain(journal).collect()
}
