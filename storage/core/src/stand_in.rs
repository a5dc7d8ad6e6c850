//! Stand-ins: while a guard is up (promise P5), something else stands where a database without Seawall looks first.
//!
//! | stands there | at | it is known by |
//! |---|---|---|
//! | a text | the places of [`has`] | an extended attribute, [`MARK`] |
//! | a directory | the places of [`is_directory`] | the file [`MARKER`] in it |
//!
//! Input: a preset and a path. Output: which file has a stand-in, and whether some preset's guard may stand at a path.
//! Pure: the daemon puts stand-ins up, and the preload directs its own process to the true file beside them.

use core::ffi::CStr;

use seawall_wire::shm::Preset;

/// Suffix of the names that Seawall itself puts into managed directories.
pub const OWN_SUFFIX: &[u8] = b".seawall";

/// The extended attribute that tells a text from the file it stands for. It comes and goes with the file's name, in one
/// rename, and no chmod or chown removes it. A copy without it still has the text, which also identifies it; [`MARK`]
/// only makes the check quicker.
pub const MARK: &CStr = c"user.seawall.guard";

/// The file in a directory that makes it a guard.
pub const MARKER: &str = ".seawall";

/// Suffix of a text that is being made.
pub const TEMPORARY: &[u8] = b".seawall.tmp";

/// PostgreSQL's note of where a backup's recovery begins: the server reads it when it starts, and backups leave it out.
pub const BACKUP_LABEL: &str = "backup_label";

/// MariaDB's log of DDL under way (10.6 and later): the server opens it when it starts, and backups leave it out.
pub const DDL_LOG: &str = "ddl_recovery.log";

/// InnoDB's redo log.
pub const REDO_LOG: &str = "ib_logfile0";

/// etcd's store, in `member/snap`: the first file that it opens.
pub const ETCD_STORE: &[u8] = b"db";

/// The text beside files of the preset `any`: no program looks for it; it is for people and the next daemon.
pub const NOTE: &str = "SEAWALL-UNREPLAYED";

/// True if some preset's guard may be at `path`.
pub fn may_stand_at(path: &[u8]) -> bool {
    is_directory(path) || Preset::ALL.into_iter().any(|preset| has(preset, path))
}

/// True if the guard that may be at `path` is a directory: the last part of the name decides.
pub fn is_directory(path: &[u8]) -> bool {
    let base = base(path);
    base == DDL_LOG.as_bytes() || is_journal(base)
}

fn is_journal(base: &[u8]) -> bool {
    base.strip_suffix(b"-journal").is_some_and(|database| !database.is_empty())
}

/// True if the directory that is a guard of `preset` may be at `path`.
pub fn has_directory(preset: Preset, path: &[u8]) -> bool {
    let base = base(path);
    match preset {
        Preset::Sqlite => is_journal(base),
        Preset::Mariadb => base == DDL_LOG.as_bytes(),
        _ => false,
    }
}

/// True if a text of `preset` may be at `path`: the last part of the name decides.
pub fn has(preset: Preset, path: &[u8]) -> bool {
    let base = base(path);
    match preset {
        Preset::Postgres => base == BACKUP_LABEL.as_bytes(),
        Preset::Sqlite => false, // its guard is a directory
        Preset::Mariadb => base == REDO_LOG.as_bytes(),
        Preset::Redis => base.ends_with(b".manifest") || is_redis_file(base),
        Preset::Rocksdb => base == b"CURRENT",
        Preset::Lmdb => is_lmdb(base),
        Preset::Etcd => base == ETCD_STORE,
        Preset::Any => base == NOTE.as_bytes(),
        Preset::Disk => is_image(base),
    }
}

/// True if the guard's place depends on where the managed file is, and not on its database's directory alone.
pub fn is_beside(preset: Preset) -> bool {
    !matches!(preset, Preset::Postgres | Preset::Mariadb)
}

/// True if a new database of `preset` may write to its log before it has the file.
pub fn may_be_absent(preset: Preset) -> bool {
    matches!(preset, Preset::Redis | Preset::Postgres | Preset::Any)
}

/// True if a running database of `preset` may remove the file, to make it anew or for good.
pub fn may_be_removed(preset: Preset) -> bool {
    matches!(preset, Preset::Redis | Preset::Rocksdb | Preset::Postgres | Preset::Any)
}

/// True if guards stand in the directory that a user names, and not below it: it is a single database, or holds images.
pub fn is_one_database(preset: Preset) -> bool {
    matches!(preset, Preset::Postgres | Preset::Mariadb | Preset::Disk)
}

/// The name of a virtual disk's image.
pub fn is_image(base: &[u8]) -> bool {
    [&b".img"[..], b".raw"].iter().any(|end| base.len() > end.len() && base.ends_with(end))
}

/// The name of an LMDB data file: the library's own, or a file of its own (`MDB_NOSUBDIR`).
pub fn is_lmdb(base: &[u8]) -> bool {
    base.ends_with(b".mdb") && base != b"lock.mdb"
}

/// The manifest of the append-only file that `path` is a part of: `NAME.SEQ.incr.aof` → `NAME.manifest`.
/// Returned without `.manifest`.
pub fn redis_log(path: &[u8]) -> Option<&[u8]> {
    let numbered = path.strip_suffix(b".incr.aof")?;
    let dot = numbered.iter().rposition(|byte| *byte == b'.')?;
    let (name, number) = (&numbered[..dot], &numbered[dot + 1..]);
    (!number.is_empty() && number.iter().all(u8::is_ascii_digit) && !base(name).is_empty()).then_some(name)
}

/// The name of an append-only file that is a single one: Redis before 7.
pub fn is_redis_file(base: &[u8]) -> bool {
    let part = [&b".incr.aof"[..], b".base.aof"].iter().any(|end| base.ends_with(end));
    base.ends_with(b".aof") && !part && !base.starts_with(b"temp-")
}

/// The name under which Redis before 7 writes a new file, which is renamed when it is complete.
pub fn is_redis_rewrite(base: &[u8]) -> bool {
    base.starts_with(b"temp-rewriteaof-bg-")
}

/// The part after the last slash.
pub fn base(path: &[u8]) -> &[u8] {
    path.rsplit(|byte| *byte == b'/').next().unwrap_or(path)
}

/// True for a rollback journal beside the guard that has its name. A program without Seawall reaches it only when the
/// guard stands aside, and then none of its database's files is in the log. So nobody needs to wait for a program that
/// opens it, which SQLite does for each transaction.
pub fn is_journal_aside(path: &[u8]) -> bool {
    path.strip_suffix(OWN_SUFFIX).is_some_and(|journal| has_directory(Preset::Sqlite, journal))
}

/// The path without the suffix that the true file has while a stand-in has its name.
pub fn true_name(path: &[u8]) -> &[u8] {
    path.strip_suffix(OWN_SUFFIX).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stand_ins_are_told_by_the_last_part_of_the_name() {
        for path in [
            &b"backup_label"[..],
            b"/d/backup_label",
            b"/d/ddl_recovery.log",
            b"a.db-journal",
            b"CURRENT",
            b"a/b.manifest",
            b"data.mdb",
            b"appendonly.aof",
            b"/d/member/snap/db",
            b"/d/SEAWALL-UNREPLAYED",
        ] {
            assert!(may_stand_at(path), "{}", path.escape_ascii());
        }
        for path in [
            &b"/d/not_backup_label"[..],
            b"-journal",
            b"CURRENT/x",
            b"CURRENT.seawall",
            b"lock.mdb",
            b"ib_logfile1",
            b"a.1.incr.aof",
            b"temp-rewriteaof-bg-7.aof",
        ] {
            assert!(!may_stand_at(path), "{}", path.escape_ascii());
        }
    }

    #[test]
    fn a_redis_log_names_its_manifest() {
        assert_eq!(redis_log(b"/d/appendonly.aof.12.incr.aof"), Some(&b"/d/appendonly.aof"[..]));
        for path in [&b"/d/a.1.base.aof"[..], b"/d/a.x.incr.aof", b"/d/.1.incr.aof", b"/d/temp.incr.aof"] {
            assert_eq!(redis_log(path), None, "{}", path.escape_ascii());
        }
    }
}
