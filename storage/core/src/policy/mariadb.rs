//! Which files below a MariaDB data directory, or a directory that holds a part of it, are managed.
//!
//! Input: a path relative to one of these. Output: whether it is one of the logs, or with `atomic` a tablespace (file
//! names: InnoDB's documentation, "System Variables", and `fil0fil.h`). Not managed: Aria's tables and its log, which
//! MariaDB reads and writes before InnoDB has met the guard; the temporary tablespace, which is made anew at each
//! start; text files.

use crate::stand_in::{DDL_LOG, base};

/// The redo log, a binary log, and the log of changes of definitions, which is synced many times for each of them. Directly in
/// the data directory.
pub(super) fn is_log(below: &[u8]) -> bool {
    !below.contains(&b'/') && below.starts_with(b"ib_logfile")
        || below == DDL_LOG.as_bytes()
        || is_binary_log(below)
}

/// A binary log, or a replica's relay log: `NAME.000001`. `NAME.index` lists them.
pub fn is_binary_log(below: &[u8]) -> bool {
    let number = below.rsplit(|byte| *byte == b'.').next().unwrap_or(b"");
    let is_numbered =
        number.len() >= 6 && number.len() < below.len() && number.iter().all(u8::is_ascii_digit);
    !below.contains(&b'/') && is_numbered && !below.starts_with(b"aria_log.")
}

/// A file of pages: the system tablespace, an undo tablespace, a table's own (in the directory of its schema).
pub(super) fn is_tablespace(below: &[u8]) -> bool {
    let file = base(below);
    let numbered = |prefix: &[u8]| {
        let number = file.strip_prefix(prefix).unwrap_or_default();
        !number.is_empty() && number.iter().all(u8::is_ascii_digit)
    };
    file.ends_with(b".ibd") || !below.contains(&b'/') && (numbered(b"ibdata") || numbered(b"undo"))
}

/// True for the directory of a schema: its tables, and their definitions.
pub(super) fn is_schema(below: &[u8]) -> bool {
    !below.contains(&b'/') && !below.starts_with(b"#")
}

/// A file that defines a table, a trigger or a schema: made anew with each change of that definition.
pub(super) fn is_definition(name: &[u8]) -> bool {
    const ENDS: [&[u8]; 5] = [b".frm", b".par", b".TRG", b".TRN", b".isl"];
    name == b"db.opt" || ENDS.iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tablespaces_are_told_by_name() {
        for path in
            ["ibdata1", "ibdata12", "undo001", "test/t.ibd", "test/t#P#p0.ibd", "t.ibd", "mysql/x.ibd"]
        {
            assert!(is_tablespace(path.as_bytes()), "{path}");
        }
        for path in [
            "ibtmp1",
            "ib_buffer_pool",
            "ibdata",
            "ibdata1x",
            "test/ibdata1",
            "aria_log.00000001",
            "mysql/db.MAD",
            "test/t.frm",
            "test/t.isl",
            "ib_logfile0",
        ] {
            assert!(!is_tablespace(path.as_bytes()), "{path}");
        }
    }
}
