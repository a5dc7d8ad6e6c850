//! Whose changes of names are logged, and which names are worth it.

use seawall_wire::shm::{Policy, Preset, ROOT_PATH_MAX, Shm};

use super::{mariadb, postgres, relative};

/// The root whose program may have changes of names logged in the directory at `path`, which is that root or lies below
/// it.
pub fn decide_directory(shm: &Shm, path: &[u8]) -> Option<u32> {
    (0..shm.shape().roots).find(|i| {
        let root = shm.root(*i);
        root.and_then(|root| root.kind().zip(Some(root))).is_some_and(|(preset, root)| {
            let mut room = [0; ROOT_PATH_MAX];
            let above = root.path(&mut room);
            let is_root = above == path;
            let below = relative(above, path);
            (is_root || below.is_some()) && logs_names(preset, root.policy(), below)
        })
    })
}

/// True if some root may have such a directory.
pub fn may_have_directories(shm: &Shm) -> bool {
    let mut roots = (0..shm.shape().roots).filter_map(|i| shm.root(i));
    roots.any(|root| root.kind().is_some_and(|preset| may_log_names(preset, root.policy())))
}

fn may_log_names(preset: Preset, policy: Policy) -> bool {
    match preset {
        Preset::Any | Preset::Mariadb => true,
        Preset::Postgres => policy == Policy::Atomic,
        _ => false,
    }
}

/// True if changes of names in a directory are logged: `below` its root, or `None` for the root itself. For a database
/// with a preset of its own this is true where the database makes and removes many files, and where no guard stands and
/// a server that is about to meet one removes nothing.
fn logs_names(preset: Preset, policy: Policy, below: Option<&[u8]>) -> bool {
    may_log_names(preset, policy)
        && match (preset, below) {
            (Preset::Any, _) => true,
            (Preset::Postgres, Some(below)) => postgres::has_relations(below),
            (Preset::Mariadb, Some(below)) => mariadb::is_schema(below),
            _ => false,
        }
}

/// True for a program that relies on the order kept by a file system with a journal: names that it changes are durable
/// with the next sync of any file, and it never syncs their directory. MariaDB removes and renames tables this way, and
/// its next syncs, of the binary log and the redo log, are records here that wait for no journal. (`DROP TABLE a;
/// RENAME TABLE b TO a`, and a power cut that leaves both files: InnoDB refuses to start.)
pub fn counts_on_order(preset: Preset) -> bool {
    preset == Preset::Mariadb
}

/// True if files of such a program may exist.
pub fn has_ordered(shm: &Shm) -> bool {
    let mut kinds = (0..shm.shape().roots).filter_map(|i| shm.root(i)?.kind());
    kinds.any(counts_on_order)
}

/// True for a directory at this path in which such a program changes names, and whose names belong in the log.
pub fn is_ordered(shm: &Shm, path: &[u8]) -> bool {
    let root = decide_directory(shm, path).and_then(|root| shm.root(root));
    root.and_then(|root| root.kind()).is_some_and(counts_on_order)
}

/// True for the data directory of such a program, whose own names are not in the log.
pub fn is_ordered_root(shm: &Shm, path: &[u8]) -> bool {
    let mut roots = (0..shm.shape().roots).filter_map(|i| shm.root(i));
    roots.any(|root| root.kind().is_some_and(counts_on_order) && root.path(&mut [0; ROOT_PATH_MAX]) == path)
}

/// True if a name in such a directory must survive a power cut. For other names nothing is logged: they are left to the
/// file system, and the database does without them.
pub fn keeps_name(preset: Preset, name: &[u8]) -> bool {
    preset != Preset::Postgres || postgres::keeps_name(name)
}

/// True for a small file, synced once and for all, whose whole content may be logged as a change of names, although its
/// writes are not.
pub fn is_kept_whole(preset: Preset, name: &[u8]) -> bool {
    match preset {
        Preset::Any => true,
        Preset::Postgres => name == b"PG_VERSION",
        Preset::Mariadb => mariadb::is_definition(name),
        _ => false,
    }
}
