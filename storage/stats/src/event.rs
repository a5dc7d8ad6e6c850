//! The one table of wait events: name, stage, help.
//!
//! An absorbed fsync is no wait and is not here: files count those themselves.

/// Something a database's thread waits for, or the daemon does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub enum Event {
    /// Records copied into a lane and fenced; on a block device a write of the log there, as its leader saw it.
    LogFileParallelWrite,
    /// A logged write as its caller saw it: lock, append, persist, publish. On a block device the wait for the log in
    /// a sync, whoever wrote it; and a write that has to be durable at once.
    LogFileSync,
    /// A batch of a log that other hosts keep: sent to all of them, and confirmed by enough, as whoever led saw it.
    LogFileRemoteWrite,
    /// The real write into the page cache.
    Publish,
    /// A real fsync in the caller's path.
    SyncReal,
    /// The log was full: a write went around it, or waited.
    LogFull,
    /// Waiting for another writer of the same file.
    FileLock,
    /// The daemon's fdatasync of one file.
    Destage,
    /// A block that was read from the block cache: a hit of it.
    CacheRead,
    /// A read of blocks that the block cache was asked for and did not have.
    FileRead,
}

/// A row of the table.
pub struct Row {
    /// The event.
    pub event: Event,
    /// The name DBAs know, or the nearest.
    pub name: &'static str,
    /// The stage it belongs to.
    pub stage: &'static str,
    /// One sentence.
    pub help: &'static str,
}

const fn row(event: Event, name: &'static str, stage: &'static str, help: &'static str) -> Row {
    Row { event, name, stage, help }
}

/// Every event, in the order of their numbers.
pub const EVENTS: [Row; 10] = [
    row(
        Event::LogFileParallelWrite,
        "log file parallel write",
        "persist",
        "records copied into the log and fenced; on a block device: the log written there",
    ),
    row(
        Event::LogFileSync,
        "log file sync",
        "engine",
        "a durable write as its caller saw it; on a block device: the time that a sync waited for the log",
    ),
    row(
        Event::LogFileRemoteWrite,
        "log file remote write",
        "persist",
        "a batch of the log sent to keepers on other hosts, until enough of them confirmed it",
    ),
    row(Event::Publish, "publish", "publish", "the write into the page cache"),
    row(Event::SyncReal, "sync real", "engine", "fsync calls that waited for the disk"),
    row(Event::LogFull, "log full", "append", "writes that waited for a full log, or went around it"),
    row(Event::FileLock, "file lock", "engine", "waits for another writer of the same file"),
    row(Event::Destage, "destage write", "destage", "background fdatasync of one file"),
    row(
        Event::CacheRead,
        "db flash cache single block physical read",
        "cache",
        "blocks that were read from the block cache",
    ),
    row(
        Event::FileRead,
        "db file sequential read",
        "cache",
        "reads of blocks that the block cache was asked for and did not have: from the page cache, or the \
         disk",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_the_order_of_the_numbers() {
        for (i, row) in EVENTS.iter().enumerate() {
            assert_eq!(row.event as usize, i, "{}", row.name);
        }
    }
}
