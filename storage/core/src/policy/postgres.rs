//! Which files below PGDATA, a tablespace or a WAL directory hold data that a crash must not tear.
//!
//! Input: a path relative to any of these three; their contents cannot be mistaken for one another. Output:
//! whether it is a data file (storage layout: PostgreSQL's documentation, chapter "Database Physical Storage").
//! Files that are made anew at each start, or read as text, are not data files: temporary relations, `pgsql_tmp`,
//! statistics, `pg_subtrans`, `pg_notify`, settings, logs, lock files.

use seawall_stats::Class;

use crate::stand_in::base;

/// True for a data file.
pub(super) fn is_data(below: &[u8]) -> bool {
    let mut parts = below.split(|byte| *byte == b'/');
    let path = [parts.next(), parts.next(), parts.next()].map(Option::unwrap_or_default);
    if parts.next().is_some() {
        return false;
    }
    match path {
        [file, b"", b""] | [b"pg_wal", file, b""] => is_wal(file),
        [b"global", file, b""] => file == b"pg_control" || is_relation(file),
        [b"base", _, file] => is_relation(file),
        [tablespace, _, file] if tablespace.starts_with(b"PG_") => is_relation(file),
        [b"pg_xact" | b"pg_commit_ts" | b"pg_twophase", file, b""] => is_hex(file),
        [b"pg_multixact", b"members" | b"offsets", file] => is_hex(file),
        _ => false,
    }
}

/// True for a directory that holds a database's relations: of the default tablespace, or of another one.
pub(super) fn has_relations(below: &[u8]) -> bool {
    let mut parts = below.split(|byte| *byte == b'/');
    let (above, database) = (parts.next().unwrap_or_default(), parts.next().unwrap_or_default());
    let is_number = !database.is_empty() && database.iter().all(u8::is_ascii_digit);
    parts.next().is_none() && is_number && (above == b"base" || above.starts_with(b"PG_"))
}

/// True for a relation's file in such a directory.
pub(super) fn is_in_database(below: &[u8]) -> bool {
    let file = base(below);
    let above = below.len().checked_sub(file.len() + 1).map_or(&[][..], |end| &below[..end]);
    has_relations(above) && file.first().is_some_and(u8::is_ascii_digit)
}

/// True for a name in there that outlives a crash of the server: not that of a temporary relation, and not that of the
/// catalog's cache, which any start removes.
pub(super) fn keeps_name(name: &[u8]) -> bool {
    is_relation(name) || name == b"PG_VERSION"
}

/// The use of such a file: the log, a table or an index, or one of the rest (transaction status, the control file).
pub(super) fn class(below: &[u8]) -> Class {
    let file = base(below);
    let is_in = |directory: &[u8]| below.starts_with(directory);
    match below {
        _ if (is_in(b"pg_wal/") || !below.contains(&b'/')) && is_wal(file) => Class::Log,
        _ if (is_in(b"base/") || is_in(b"global/") || is_in(b"PG_")) && is_relation(file) => Class::Data,
        _ => Class::Other,
    }
}

/// A segment, one in the making, or a time line's history.
fn is_wal(file: &[u8]) -> bool {
    let stem = file.split(|byte| *byte == b'.').next().unwrap_or_default();
    let is_numbered = matches!(stem.len(), 8 | 24) && is_hex(stem);
    is_numbered || is_new_segment(file)
}

/// A segment of the log.
pub fn is_segment(below: &[u8]) -> bool {
    let file = base(below);
    file.len() == 24 && is_hex(file)
}

/// A segment in the making: filled with zeros, synced, and renamed into place while commits wait for it.
pub fn is_new_segment(below: &[u8]) -> bool {
    base(below).starts_with(b"xlogtemp.")
}

/// A relation's fork and segment (`16384_fsm.1`), or the map of the catalog's relations. Temporary ones begin with `t`.
fn is_relation(file: &[u8]) -> bool {
    file.first().is_some_and(u8::is_ascii_digit) || file.starts_with(b"pg_filenode.map")
}

fn is_hex(file: &[u8]) -> bool {
    !file.is_empty() && file.iter().all(u8::is_ascii_hexdigit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_crash_must_not_tear_is_data() {
        for path in [
            "base/5/16384",
            "base/5/16384.1",
            "base/5/16384_fsm",
            "base/5/pg_filenode.map",
            "global/pg_control",
            "global/1262",
            "pg_wal/00000001000000000000000A",
            "pg_wal/xlogtemp.4711",
            "pg_wal/00000002.history",
            "pg_xact/0000",
            "pg_multixact/offsets/0000",
            "pg_twophase/000002F1",
            "PG_15_202209061/5/16400",
            "00000001000000000000000A",
        ] {
            assert!(is_data(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn directories_of_relations_and_what_is_kept_in_them() {
        assert!(
            ["base/5", "base/16384", "PG_15_202209061/5"].iter().all(|path| has_relations(path.as_bytes()))
        );
        let others =
            ["base", "base/pgsql_tmp", "base/5/6", "global", "pg_wal", "pg_xact/5", "PG_15_202209061"];
        assert!(!others.iter().any(|path| has_relations(path.as_bytes())));
        let kept = ["16384", "16384_fsm.1", "pg_filenode.map", "PG_VERSION"];
        assert!(kept.iter().all(|name| keeps_name(name.as_bytes())));
        assert!(
            !["t3_16384", "pg_internal.init", "pg_internal.init.7"]
                .iter()
                .any(|name| keeps_name(name.as_bytes()))
        );
    }

    #[test]
    fn tables_and_indexes_of_a_database_are_told_from_its_other_files() {
        for path in ["base/5/16384", "base/5/16384.1", "base/5/16384_fsm", "PG_15_202209061/5/16400"] {
            assert!(is_in_database(path.as_bytes()), "{path}");
        }
        for path in
            ["base/5/pg_filenode.map", "base/5/PG_VERSION", "base/5/t3_1", "global/1262", "5/1", "1", ""]
        {
            assert!(!is_in_database(path.as_bytes()), "{path}");
        }
    }

    #[test]
    fn files_have_classes() {
        let all: [(Class, &[&str]); 3] = [
            (
                Class::Log,
                &["pg_wal/00000001000000000000000A", "00000001000000000000000A", "pg_wal/xlogtemp.4711"],
            ),
            (Class::Data, &["base/5/16384", "base/5/12345678", "global/12345678", "PG_15_202209061/5/16400"]),
            (Class::Other, &["global/pg_control", "pg_xact/0000", "pg_twophase/000002F1"]),
        ];
        for (wanted, paths) in all {
            paths.iter().for_each(|path| assert_eq!(class(path.as_bytes()), wanted, "{path}"));
        }
    }

    #[test]
    fn segments_and_those_in_the_making_are_told_by_their_names() {
        assert!(is_new_segment(b"xlogtemp.4711") && is_new_segment(b"pg_wal/xlogtemp.4711"));
        assert!(is_segment(b"00000001000000000000000A") && is_segment(b"pg_wal/00000001000000000000000A"));
        for other in [&b"0000000A.history"[..], b"pg_wal/00000001000000000000000A.partial"] {
            assert!(!is_new_segment(other) && !is_segment(other), "{}", other.escape_ascii());
        }
        assert!(!is_new_segment(b"00000001000000000000000A") && !is_segment(b"xlogtemp.4711"));
    }

    #[test]
    fn what_is_made_anew_or_read_as_text_is_not() {
        for path in [
            "PG_VERSION",
            "base/5/PG_VERSION",
            "base/5/t3_16390",
            "base/5/pg_internal.init",
            "base/pgsql_tmp/pgsql_tmp12.0",
            "global/pg_internal.init",
            "pg_stat/pgstat.stat",
            "pg_stat_tmp/global.stat",
            "pg_subtrans/0000",
            "pg_wal/archive_status/00000001000000000000000A.ready",
            "pg_notify/0000",
            "postgresql.conf",
            "postgresql.auto.conf",
            "postmaster.pid",
            "postmaster.opts",
            "backup_label",
            "log/postgresql.log",
            "current_logfiles",
            "base/5",
            "pg_tblspc/16399/PG_15_202209061/5/16400",
        ] {
            assert!(!is_data(path.as_bytes()), "{path}");
        }
    }
}
