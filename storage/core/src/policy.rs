//! Which files are managed: presets as decisions over paths.
//!
//! Input: a real path and the registered roots. Output: what to do with the file. Pure: no file is looked at.

use seawall_stats::Class;
use seawall_wire::shm::{Policy, Preset, ROOT_PATH_MAX, Root, Shm};

use crate::stand_in::{
    NOTE, OWN_SUFFIX, TEMPORARY, base, is_image, is_lmdb, is_redis_file, is_redis_rewrite, redis_log,
    true_name,
};

mod mariadb;
mod names;
mod postgres;

pub use mariadb::is_binary_log;
pub use names::{
    counts_on_order, decide_directory, has_ordered, is_kept_whole, is_ordered, is_ordered_root, keeps_name,
    may_have_directories,
};
pub use postgres::{is_new_segment, is_segment};

/// What to do with a file below a root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manage {
    /// Leave it to the kernel.
    Bypass,
    /// Log it from its first write.
    Now,
    /// Log it once this many fsyncs of one descriptor have been seen: files that are created and deleted for each
    /// transaction would pay for registration and gain nothing.
    AfterSyncs(u8),
    /// Log it once an fsync finds the magic of an SQLite database in it.
    IfSqlite,
    /// Log it once it is synced again, through any descriptor, or opened for syncs with each write: a file that is
    /// synced once and never again would pay and gain nothing.
    Again,
}

/// The first 16 bytes of every SQLite database (<https://sqlite.org/fileformat.html>, §1.2).
pub const SQLITE_MAGIC: [u8; 16] = *b"SQLite format 3\0";
/// How many fsyncs of a refused file ask again, through one descriptor, or while it is open: by then there may be room
/// in the table. The next opening starts anew.
pub const ASK_AGAIN: u8 = 15;

/// The root that `path` lies below, and the decision of its preset and policy. `None`: below no root. If there are
/// several, the surest one decides, and of equals the first: any file may turn out to be an SQLite database, but a name
/// that another preset knows does not.
pub fn decide(shm: &Shm, path: &[u8]) -> Option<(u32, Manage)> {
    let mut surest: Option<(u32, Manage)> = None;
    for i in 0..shm.shape().roots {
        let Some(manage) = decided_by(shm, i, path) else { continue };
        if surest.is_none_or(|(_, other)| manage.sureness() > other.sureness()) {
            surest = Some((i, manage));
        }
    }
    surest
}

/// True if files are managed regardless of their names in their directories: every directory has the preset `any`.
pub fn is_any_alone(shm: &Shm) -> bool {
    let mut roots = (0..shm.shape().roots).filter_map(|i| shm.root(i));
    roots.all(|root| root.kind() == Some(Preset::Any))
}

/// True if a directory may have the preset `any`.
pub fn has_any(shm: &Shm) -> bool {
    (0..shm.shape().roots).filter_map(|i| shm.root(i)).any(|root| root.kind() == Some(Preset::Any))
}

/// [`decide`], by the file's content too: files in a directory of the preset `any` belong to that preset only if they
/// are not SQLite databases, which have guards of their own.
pub fn decide_by_content(shm: &Shm, path: &[u8], is_sqlite: impl FnOnce() -> bool) -> Option<(u32, Manage)> {
    let decided = decide(shm, path)?;
    if decided.1 != Manage::Again {
        return Some(decided);
    }
    let would_be = |manage| (0..shm.shape().roots).find(|i| decided_by(shm, *i, path) == Some(manage));
    let as_sqlite = would_be(Manage::IfSqlite).filter(|_| is_sqlite());
    Some(as_sqlite.map_or(decided, |root| (root, Manage::IfSqlite)))
}

/// The decision of one root; `None`: the path does not lie below it.
fn decided_by(shm: &Shm, root: u32, path: &[u8]) -> Option<Manage> {
    let root = shm.root(root)?;
    let preset = root.kind()?;
    let mut room = [0; ROOT_PATH_MAX];
    let below = relative(root.path(&mut room), path)?;
    Some(by_preset(preset, root.policy(), below))
}

/// True if no page of a file with this decision ([`decide`]) may tear: writes made before the file is in the log can.
pub fn is_atomic(shm: &Shm, (root, manage): (u32, Manage)) -> bool {
    manage == Manage::Now && shm.root(root).is_some_and(|root| root.policy() == Policy::Atomic)
}

impl Manage {
    /// How sure a preset is that the file is one of its own.
    fn sureness(self) -> u8 {
        match self {
            Self::Bypass => 0,
            Self::IfSqlite => 1,
            Self::Again => 2,
            Self::AfterSyncs(_) => 3,
            Self::Now => 4,
        }
    }
}

/// `path` without `root` and the slash behind it.
pub fn relative<'p>(root: &[u8], path: &'p [u8]) -> Option<&'p [u8]> {
    match path.strip_prefix(root)? {
        [b'/', below @ ..] if !below.is_empty() => Some(below),
        below if root.ends_with(b"/") && !below.is_empty() => Some(below),
        _ => None,
    }
}

/// The decision of `preset` under `policy` for the path `below` its root.
pub fn by_preset(preset: Preset, policy: Policy, below: &[u8]) -> Manage {
    match (preset, policy) {
        (Preset::Postgres, Policy::Atomic) if postgres::is_data(below) => Manage::Now,
        (Preset::Postgres, Policy::Atomic) => Manage::Bypass,
        (Preset::Postgres, Policy::Tail) if below.contains(&b'/') => Manage::Bypass,
        (Preset::Postgres, Policy::Tail) => Manage::Now,
        (Preset::Sqlite, _) => sqlite(below),
        (Preset::Mariadb, Policy::Tail) => now_if(mariadb::is_log(true_name(below))),
        (Preset::Mariadb, Policy::Atomic) => {
            now_if(mariadb::is_log(true_name(below)) || mariadb::is_tablespace(below))
        }
        (Preset::Redis, _) => redis(below),
        (Preset::Rocksdb, _) => now_if(rocksdb_wal(base(below))),
        (Preset::Lmdb, _) => now_if(is_lmdb(base(true_name(below)))),
        (Preset::Etcd, _) => now_if(etcd_wal(below)),
        // Another daemon may serve images in directories below.
        (Preset::Disk, _) => now_if(!below.contains(&b'/') && is_image(true_name(below))),
        (Preset::Any, _) if is_own(below) => Manage::Bypass,
        (Preset::Any, _) => Manage::Again,
    }
}

/// True if the file at this path, which lies below no root, has a name that some preset in use would manage: a
/// database's files are elsewhere. Any name may be that of an SQLite database; its content decides.
pub fn is_elsewhere(shm: &Shm, path: &[u8], is_sqlite: impl Fn() -> bool) -> bool {
    let kinds = (0..shm.shape().roots).filter_map(|i| shm.root(i));
    let mut kinds = kinds.filter_map(|root| Some((root.kind()?, root.policy())));
    kinds.any(|(preset, policy)| match (preset, by_preset(preset, policy, base(path))) {
        // Copies of segments lie in archives.
        (Preset::Postgres, _) => is_segment(path) && path.windows(8).any(|part| part == b"/pg_wal/"),
        // Any file could be one.
        (Preset::Any, _) | (_, Manage::Bypass) => false,
        (_, Manage::IfSqlite) => is_sqlite(),
        _ => true,
    })
}

/// The database's use of the managed file `below` its root.
pub fn class(preset: Preset, below: &[u8]) -> Class {
    let name = true_name(below);
    match preset {
        Preset::Postgres => postgres::class(below),
        Preset::Mariadb if mariadb::is_tablespace(name) => Class::Data,
        Preset::Mariadb if base(name).starts_with(b"ib_logfile") => Class::Log,
        Preset::Mariadb if is_binary_log(name) => Class::BinaryLog,
        Preset::Mariadb => Class::Other,
        Preset::Sqlite if below.ends_with(b"-wal") || below.ends_with(b"-journal") => Class::Log,
        Preset::Sqlite | Preset::Lmdb | Preset::Disk => Class::Data,
        Preset::Redis | Preset::Rocksdb | Preset::Etcd => Class::Log,
        Preset::Any => Class::Other,
    }
}

/// True if a symbolic link of this name may lead PostgreSQL to a tablespace.
pub fn may_be_tablespace(link: &[u8]) -> bool {
    const AMONG: &[u8] = b"pg_tblspc/";
    link.windows(AMONG.len()).any(|part| part == AMONG)
}

/// True for a file of which nothing has to survive a power cut before its first sync, when it was made anew, and whose every
/// write is logged from then on: a table or an index of PostgreSQL ([`unsynced`](crate::Right)).
pub fn begins_unsynced(shm: &Shm, path: &[u8]) -> bool {
    let mut roots = (0..shm.shape().roots).filter_map(|i| shm.root(i));
    roots.any(|root| {
        let mut room = [0; ROOT_PATH_MAX];
        is_atomic_postgres(&root)
            && relative(root.path(&mut room), path).is_some_and(postgres::is_in_database)
    })
}

/// True if there are databases whose tablespaces must be managed.
pub fn has_tablespaces(shm: &Shm) -> bool {
    (0..shm.shape().roots).filter_map(|i| shm.root(i)).any(|root| is_atomic_postgres(&root))
}

fn is_atomic_postgres(root: &Root<'_>) -> bool {
    root.kind() == Some(Preset::Postgres) && root.policy() == Policy::Atomic
}

fn now_if(logged: bool) -> Manage {
    if logged { Manage::Now } else { Manage::Bypass }
}

/// The part of the append-only file that is appended to. Before Redis 7 it is a single file, which Redis replaces with
/// a new one that it opened under another name. That name is not managed, so the file is checked again at each fsync.
fn redis(below: &[u8]) -> Manage {
    let base = base(true_name(below));
    match base {
        _ if redis_log(below).is_some() => Manage::Now,
        _ if is_redis_file(base) => Manage::AfterSyncs(1),
        _ if is_redis_rewrite(base) => Manage::AfterSyncs(u8::MAX),
        _ => Manage::Bypass,
    }
}

/// The write-ahead log: `NUMBER.log`.
fn rocksdb_wal(base: &[u8]) -> bool {
    base.strip_suffix(b".log").is_some_and(|n| !n.is_empty() && n.iter().all(u8::is_ascii_digit))
}

/// A segment of the write-ahead log, or one that is being prepared: `wal/N.tmp`, or all segments of a new member in
/// `wal.tmp`. etcd keeps them open when they get their names, so they are in the log from the first write on.
fn etcd_wal(below: &[u8]) -> bool {
    let mut parts = below.rsplit(|byte| *byte == b'/');
    let (name, dir, member) = (parts.next(), parts.next(), parts.next());
    let segment = name.is_some_and(|name| name.ends_with(b".wal") || name.ends_with(b".tmp"));
    segment && matches!(dir, Some(b"wal" | b"wal.tmp")) && member == Some(b"member")
}

fn sqlite(below: &[u8]) -> Manage {
    let inside_guard = below.windows(9).any(|w| w == b"-journal/");
    let name = below.strip_suffix(OWN_SUFFIX).unwrap_or(below);
    match name {
        _ if inside_guard => Manage::Bypass,
        name if name.ends_with(b"-wal") => Manage::Now,
        name if name.ends_with(b"-journal") => Manage::AfterSyncs(3),
        name if name.ends_with(b"-shm") || name.len() != below.len() => Manage::Bypass,
        _ => Manage::IfSqlite,
    }
}

/// True for files that Seawall itself puts into a directory.
fn is_own(below: &[u8]) -> bool {
    below.ends_with(OWN_SUFFIX) || below.ends_with(TEMPORARY) || base(below) == NOTE.as_bytes()
}

/// The database that an SQLite file belongs to: its path without `-wal`, `-journal`, `-journal.seawall`.
pub fn sqlite_database(path: &[u8]) -> &[u8] {
    let path = path.strip_suffix(OWN_SUFFIX).unwrap_or(path);
    [&b"-wal"[..], b"-journal", b"-shm"].iter().find_map(|s| path.strip_suffix(*s)).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_decide_by_name() {
        let pg = |p: &[u8]| by_preset(Preset::Postgres, Policy::Tail, p);
        assert_eq!(pg(b"000000010000000000000001"), Manage::Now);
        assert_eq!(pg(b"xlogtemp.12"), Manage::Now);
        assert_eq!(pg(b"archive_status/000000010000000000000001.ready"), Manage::Bypass);
        let sqlite = |p: &[u8]| by_preset(Preset::Sqlite, Policy::Tail, p);
        assert_eq!(sqlite(b"a.db-wal"), Manage::Now);
        assert_eq!(sqlite(b"a.db-journal"), Manage::AfterSyncs(3));
        assert_eq!(sqlite(b"a.db-journal.seawall"), Manage::AfterSyncs(3));
        assert_eq!(sqlite(b"a.db-journal/.seawall"), Manage::Bypass);
        assert_eq!(sqlite(b"a.db-journal/README"), Manage::Bypass);
        assert_eq!(sqlite(b"a.db-shm"), Manage::Bypass);
        assert_eq!(sqlite(b"sub/a.db"), Manage::IfSqlite);
    }

    #[test]
    fn of_the_others_only_the_logs_are_managed() {
        let managed = |preset, p: &[u8]| by_preset(preset, Policy::Tail, p) == Manage::Now;
        for (preset, logs, others) in [
            (
                Preset::Mariadb,
                [&b"ib_logfile0"[..], b"ib_logfile0.seawall", b"bin.000001"],
                [&b"aria_log.00000001"[..], b"bin.index", b"db/t.000001"],
            ),
            (
                Preset::Mariadb,
                [&b"ddl_recovery.log"[..], b"ddl_recovery.log.seawall", b"ib_logfile0"],
                [&b"ddl_recovery-backup.log"[..], b"db/ddl_recovery.log", b"aria_log_control"],
            ),
            (
                Preset::Redis,
                [&b"appendonlydir/appendonly.aof.1.incr.aof"[..], b"a.2.incr.aof", b"x/y/a.10.incr.aof"],
                [&b"dump.rdb"[..], b"appendonlydir/a.1.base.rdb", b"temp-rewriteaof-1.aof"],
            ),
            (
                Preset::Rocksdb,
                [&b"000004.log"[..], b"archive/000004.log", b"db/12.log"],
                [&b"LOG"[..], b"000005.sst", b"x.log"],
            ),
            (
                Preset::Lmdb,
                [&b"data.mdb"[..], b"data.mdb.seawall", b"env/a.mdb"],
                [&b"lock.mdb"[..], b"data.mdb.seawall.tmp", b"a.mdb-lock"],
            ),
            (
                Preset::Disk,
                [&b"vm.img"[..], b"vm.img.seawall", b"a.raw"],
                [&b"vm.qcow2"[..], b"below/vm.img", b".img"],
            ),
            (
                Preset::Etcd,
                [&b"member/wal/0-0.wal"[..], b"member/wal.tmp/0-0.wal", b"n/member/wal/1.tmp"],
                [&b"member/snap/db"[..], b"member/wal/0-0.wal.broken", b"other/wal/0-0.wal"],
            ),
        ] {
            logs.iter().for_each(|p| assert!(managed(preset, p), "{}", p.escape_ascii()));
            others.iter().for_each(|p| assert!(!managed(preset, p), "{}", p.escape_ascii()));
        }
    }

    #[test]
    fn an_append_only_file_that_is_a_single_one_is_managed_by_its_last_name() {
        let redis = |p: &[u8]| by_preset(Preset::Redis, Policy::Tail, p);
        assert_eq!(redis(b"appendonly.aof"), Manage::AfterSyncs(1));
        assert_eq!(redis(b"appendonly.aof.seawall"), Manage::AfterSyncs(1));
        assert_eq!(redis(b"temp-rewriteaof-bg-7.aof"), Manage::AfterSyncs(u8::MAX));
        assert_eq!(redis(b"temp-rewriteaof-7.aof"), Manage::Bypass);
        assert_eq!(redis(b"appendonlydir/a.1.base.aof"), Manage::Bypass);
    }

    #[test]
    fn a_tablespaces_link_is_told_by_its_name() {
        for link in [&b"pg_tblspc/16399"[..], b"./pg_tblspc/16399", b"/d/pg_tblspc/1"] {
            assert!(may_be_tablespace(link), "{}", link.escape_ascii());
        }
        for link in [&b"pg_wal"[..], b"pg_tblspc", b"/d/base/5"] {
            assert!(!may_be_tablespace(link), "{}", link.escape_ascii());
        }
    }

    #[test]
    fn a_root_contains_what_is_below_it_and_nothing_else() {
        assert_eq!(relative(b"/data", b"/data/x"), Some(&b"x"[..]));
        assert_eq!(relative(b"/", b"/x"), Some(&b"x"[..]));
        assert_eq!(relative(b"/data", b"/data"), None);
        assert_eq!(relative(b"/data", b"/database/x"), None);
        assert_eq!(relative(b"/data", b"/other/x"), None);
    }

    #[test]
    fn a_name_that_is_known_is_surer_than_a_guess() {
        let sure = |preset, p: &[u8]| by_preset(preset, Policy::Tail, p).sureness();
        let segment = b"member/wal/0-0.wal";
        assert!(sure(Preset::Etcd, segment) > sure(Preset::Sqlite, segment));
        assert!(sure(Preset::Sqlite, b"a.db") > sure(Preset::Etcd, b"a.db"));
    }

    #[test]
    fn of_any_program_every_file_may_be_logged_but_for_our_own() {
        let any = |p: &[u8]| by_preset(Preset::Any, Policy::Tail, p);
        for path in [&b"store.dat"[..], b"a/b/journal.log", b"x-wal", b"CURRENT"] {
            assert_eq!(any(path), Manage::Again, "{}", path.escape_ascii());
        }
        for path in [&b"a.db-journal.seawall"[..], b"a/x.seawall.tmp", b"a/SEAWALL-UNREPLAYED"] {
            assert_eq!(any(path), Manage::Bypass, "{}", path.escape_ascii());
        }
        let sure = |preset, p: &[u8]| by_preset(preset, Policy::Tail, p).sureness();
        assert!(sure(Preset::Any, b"a.db") > sure(Preset::Sqlite, b"a.db"));
        assert!(sure(Preset::Sqlite, b"a.db-wal") > sure(Preset::Any, b"a.db-wal"));
    }

    #[test]
    fn companions_name_their_database() {
        for name in ["a.db", "a.db-wal", "a.db-journal", "a.db-journal.seawall", "a.db-shm"] {
            assert_eq!(sqlite_database(name.as_bytes()), b"a.db");
        }
    }
}
