//! Wait events by the names DBAs know, and their classes.
//!
//! The database's own name stays beside it everywhere: a name is a help to read, not a claim that the two
//! databases wait for exactly the same.

/// A name and a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// The name DBAs know, or the nearest.
    pub name: &'static str,
    /// The class it is in there.
    pub class: &'static str,
}

const fn name(name: &'static str, class: &'static str) -> Name {
    Name { name, class }
}

/// What a statement does when it waits for nothing.
pub const CPU: Name = name("DB CPU", "CPU");

/// PostgreSQL's type and event, in lower case (versions differ in that); `*`: all others of the type.
const POSTGRES: [(&str, &str, Name); 37] = [
    ("", "", CPU),
    ("io", "datafileread", name("db file sequential read", "User I/O")),
    ("io", "datafileprefetch", name("db file prefetch", "User I/O")),
    ("io", "datafilewrite", name("db file parallel write", "System I/O")),
    ("io", "datafileextend", name("db file extend", "User I/O")),
    ("io", "datafilesync", name("db file sync", "System I/O")),
    ("io", "datafileimmediatesync", name("db file sync", "System I/O")),
    ("io", "datafileflush", name("db file sync", "System I/O")),
    ("io", "buffileread", name("direct path read temp", "User I/O")),
    ("io", "buffilewrite", name("direct path write temp", "User I/O")),
    ("io", "walsync", name("log file sync", "Commit")),
    ("io", "walwrite", name("log file sync", "Commit")),
    ("io", "walsyncmethodassign", name("log file sync", "Commit")),
    ("io", "walinitwrite", name("log file switch completion", "Configuration")),
    ("io", "walinitsync", name("log file switch completion", "Configuration")),
    ("io", "*", name("other file I/O", "User I/O")),
    ("lwlock", "walwrite", name("log file sync", "Commit")),
    ("lwlock", "walinsert", name("latch: redo copy", "Concurrency")),
    ("lwlock", "buffercontent", name("buffer busy waits", "Concurrency")),
    ("lwlock", "buffermapping", name("latch: cache buffers chains", "Concurrency")),
    ("lwlock", "lockmanager", name("latch: enqueue hash chains", "Concurrency")),
    ("lwlock", "*", name("latch free", "Other")),
    ("lock", "transactionid", name("enq: TX - row lock contention", "Application")),
    ("lock", "tuple", name("enq: TX - row lock contention", "Application")),
    ("lock", "relation", name("enq: TM - contention", "Application")),
    ("lock", "extend", name("enq: HW - contention", "Configuration")),
    ("lock", "*", name("enq: other", "Application")),
    ("bufferpin", "*", name("buffer busy waits", "Concurrency")),
    ("ipc", "syncrep", name("log file sync (standby)", "Commit")),
    ("ipc", "bufferio", name("read by other session", "User I/O")),
    ("ipc", "procarraygroupupdate", name("latch: transaction end", "Concurrency")),
    ("ipc", "xactgroupupdate", name("latch: transaction end", "Concurrency")),
    ("ipc", "*", name("other messages", "Other")),
    ("client", "*", name("SQL*Net message from client", "Network")),
    ("timeout", "spindelay", name("latch: spin", "Concurrency")),
    ("timeout", "*", name("other timeouts", "Other")),
    ("extension", "*", name("extension", "Other")),
];

/// A wait of PostgreSQL.
pub fn postgres(wait_type: &str, wait_event: &str) -> Name {
    let (wait_type, wait_event) = (wait_type.to_lowercase(), wait_event.to_lowercase());
    let found = POSTGRES.iter().find(|(t, e, _)| *t == wait_type && (*e == wait_event || *e == "*"));
    found.map_or(name("other", "Other"), |(_, _, name)| *name)
}

/// Parts of `performance_schema`'s names; the first that fits counts.
const MARIADB: [(&str, Name); 16] = [
    ("innodb/innodb_log_file", name("log file parallel write", "System I/O")),
    ("innodb/innodb_data_file", name("db file sequential read", "User I/O")),
    ("innodb/innodb_temp_file", name("direct path read temp", "User I/O")),
    ("io/file/sql/binlog", name("binary log write", "System I/O")),
    ("io/file/sql/relaylog", name("relay log write", "System I/O")),
    ("wait/io/file/aria", name("temporary and Aria tables", "User I/O")),
    ("wait/io/file", name("other file I/O", "User I/O")),
    ("MYSQL_BIN_LOG::COND", name("log file sync", "Commit")),
    ("MYSQL_BIN_LOG::LOCK_commit", name("log file sync", "Commit")),
    ("COND_wait_commit", name("log file sync", "Commit")),
    ("wait/io/table", name("table access (CPU and waits)", "Other")),
    ("wait/io/socket", name("SQL*Net message from client", "Network")),
    ("wait/lock/table", name("enq: TM - contention", "Application")),
    ("wait/lock/metadata", name("enq: TM - contention", "Application")),
    ("idle", name("SQL*Net message from client", "Idle")),
    ("wait/synch", name("latch free", "Concurrency")),
];

/// A wait of MariaDB.
pub fn mariadb(event: &str) -> Name {
    let found = MARIADB.iter().find(|(part, _)| event.contains(part));
    found.map_or(name("other", "Other"), |(_, name)| *name)
}

/// Parts of the process list's states, in lower case. A state that is none of these is work.
const STATES: [(&str, Name); 10] = [
    ("user sleep", name("other timeouts", "Other")),
    ("waiting for table metadata lock", name("enq: TM - contention", "Application")),
    ("metadata lock", name("enq: TM - contention", "Application")),
    ("table level lock", name("enq: TM - contention", "Application")),
    ("waiting for prior transaction to commit", name("log file sync", "Commit")),
    ("semi-sync ack", name("log file sync (standby)", "Commit")),
    ("commit", name("log file sync", "Commit")),
    ("writing to net", name("SQL*Net more data to client", "Network")),
    ("tmp table", name("direct path write temp", "User I/O")),
    ("waiting for", name("other", "Other")),
];

/// What a sample saw, whatever the database.
pub fn sampled(wait_type: &str, wait_event: &str) -> Name {
    match wait_type {
        "mariadb lock" => name("enq: TX - row lock contention", "Application"),
        "mariadb wait" => mariadb(wait_event),
        "mariadb state" => {
            let state = wait_event.to_lowercase();
            STATES.iter().find(|(part, _)| state.contains(part)).map_or(CPU, |(_, name)| *name)
        }
        "redis" if wait_event.is_empty() => CPU,
        "redis" => name("log file sync", "Commit"),
        _ => postgres(wait_type, wait_event),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_have_the_names_dbas_know() {
        assert_eq!(postgres("IO", "DataFileRead").name, "db file sequential read");
        assert_eq!(postgres("IO", "WALSync"), postgres("IO", "WalSync"));
        assert_eq!(postgres("LWLock", "WALWrite").class, "Commit");
        assert_eq!(postgres("LWLock", "Something").name, "latch free");
        assert_eq!(postgres("", ""), CPU);
        assert_eq!(postgres("New", "Thing").name, "other");
        assert_eq!(mariadb("wait/io/file/innodb/innodb_log_file").name, "log file parallel write");
        assert_eq!(sampled("mariadb lock", "Updating").name, "enq: TX - row lock contention");
        assert_eq!(sampled("mariadb state", "Commit").name, "log file sync");
        assert_eq!(sampled("mariadb state", "Waiting for table metadata lock").class, "Application");
        assert_eq!(sampled("mariadb state", "Updating"), CPU);
        assert_eq!(sampled("mariadb state", "User sleep"), sampled("Timeout", "PgSleep"));
        assert_eq!(sampled("redis", ""), CPU);
        assert_eq!(sampled("redis", "main disk").name, "log file sync");
        assert_eq!(sampled("LWLock", "WALWrite").class, "Commit");
    }
}
