//! Files that a database itself removes when it starts, before it meets the guard.
//!
//! A server that finds the guard exits, and has by then removed the half-done files of its last run. Recovery no longer
//! finds these files, and need not: no server will ever read them.
//!
//! | file | removed by | known by |
//! |---|---|---|
//! | `pg_wal/xlogtemp.PID` | `RemoveTempXlogFiles()`, before the backup label is read | its name: a segment in the making holds zeros |
//! | `NAME.000001` of MariaDB | `MYSQL_BIN_LOG::open_index_file()`, before the log of DDL is opened | `NAME.index` does not list it |
//!
//! MariaDB lists a binary log durably before the first commit goes into it, and takes it off the list before it removes
//! it. The list is not in the log: the disk's content counts.

use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use seawall_wire::shm::Preset;

use super::below::open_below;
use crate::policy::{is_binary_log, is_new_segment};
use crate::stand_in::base;

/// More than the list of all binary logs that a server can number.
const LONGEST_LIST: u64 = 1 << 30;

/// Why nobody needs the file that was at `path` below `dir`, a directory of that preset, and is gone. `None`: somebody
/// may need it.
pub(super) fn by_its_database(preset: Preset, dir: &File, path: &Path) -> Option<String> {
    let name = path.as_os_str().as_bytes();
    match preset {
        Preset::Postgres if is_new_segment(name) => {
            Some("PostgreSQL has removed this unfinished segment, as it does whenever it starts".into())
        }
        Preset::Mariadb if is_binary_log(name) => {
            let index = path.with_extension("index");
            let mut list = Vec::new();
            open_below(dir, &index).ok()?.take(LONGEST_LIST).read_to_end(&mut list).ok()?;
            let is_dropped = !list.is_empty() && !is_listed(&list, base(name));
            is_dropped.then(|| format!("MariaDB has removed it: {} does not list it", index.display()))
        }
        _ => None,
    }
}

/// A server that finds no list makes an empty one: so an empty list proves nothing.
fn is_listed(list: &[u8], name: &[u8]) -> bool {
    list.split(|byte| *byte == b'\n').any(|line| base(line) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(preset: Preset, list: Option<&str>, path: &str) -> Option<String> {
        let dir = tempfile::tempdir().expect("a directory");
        list.iter().for_each(|list| std::fs::write(dir.path().join("binlog.index"), list).expect("written"));
        by_its_database(preset, &File::open(dir.path()).expect("opened"), Path::new(path))
    }

    #[test]
    fn a_binary_log_that_its_server_does_not_list_is_needed_by_nobody() {
        let list = "./binlog.000003\n/var/lib/mysql/binlog.000004\n";
        let why = |list, name| why(Preset::Mariadb, list, name).is_some();
        assert!(why(Some(list), "binlog.000005") && why(Some(list), "binlog.000002"));
        assert!(!why(Some(list), "binlog.000003") && !why(Some(list), "binlog.000004"));
        assert!(!why(Some(""), "binlog.000005"), "a list that a bare server has just made");
        assert!(!why(None, "binlog.000005") && !why(Some(list), "relay.000005"), "no list");
        assert!(!why(Some(list), "ib_logfile0") && !why(Some(list), "test/t.ibd"), "nothing that is listed");
    }

    #[test]
    fn a_segment_in_the_making_is_needed_by_nobody() {
        assert!(why(Preset::Postgres, None, "pg_wal/xlogtemp.4711").is_some());
        assert!(why(Preset::Postgres, None, "pg_wal/00000001000000000000000A").is_none());
        assert!(why(Preset::Mariadb, None, "pg_wal/xlogtemp.4711").is_none());
    }
}
