//! PostgreSQL: full pages in its log, and how it writes that log.

use seawall_media::Medium;
use seawall_wire::shm::Policy;

use super::advice::{Advice, Pages, Setting};

const FULL_PAGES_OFF: Setting = Setting {
    name: "full_page_writes",
    value: "off",
    why: "no page can tear: every write of a data file is in the log before it is in the file, so PostgreSQL \
          no longer gains any protection from the copy of each page that it puts into its WAL after a \
          checkpoint",
};
const FULL_PAGES_ON: Setting = Setting {
    name: "full_page_writes",
    value: "on",
    why: "leave it on: under --policy tail data files are the kernel's, and a power cut can tear their pages",
};
const FULL_PAGES_EMULATED: Setting = Setting {
    name: "full_page_writes",
    value: "off",
    why: "only on a medium that survives a power cut: on this one the log is gone with the power, and torn \
          pages stay torn. You may set it to measure what it would bring, on data that you can lose",
};

const SYNC_METHOD: Setting = Setting {
    name: "wal_sync_method",
    value: "fdatasync",
    why: "the default on Linux; a tracked segment's fdatasync returns at once. open_datasync writes the same and \
          syncs as often",
};
const SYNC_METHOD_ON_MOUNT: Setting = Setting {
    name: "wal_sync_method",
    value: "open_datasync",
    why: "not the default: with it a commit is one request to the mount, a write that is durable when it is \
          answered. With fdatasync it is two, each with a wait of its own. A reload applies it. Set it back \
          before the database runs without the mount",
};

/// The same on every medium.
fn always(policy: Policy, on_mount: bool) -> Vec<Setting> {
    // Under policy `atomic` the mount has no such way.
    let one_request = on_mount && policy == Policy::Tail;
    vec![
        Setting {
            name: "synchronous_commit",
            value: "on",
            why: "Seawall takes its wait for the disk away: off gains nothing any more",
        },
        if one_request { SYNC_METHOD_ON_MOUNT } else { SYNC_METHOD },
        Setting {
            name: "wal_recycle",
            value: "on",
            why: "the default: a renamed segment is on disk already, and its first fsync after that is the only \
                  real one; a new one needs several",
        },
        Setting {
            name: "wal_init_zero",
            value: "on",
            why: "the default: zeros are logged as a length, and overwriting an allocated file costs the file \
                  system less than extending one",
        },
        Setting {
            name: "commit_delay",
            value: "0",
            why: "the default: it makes commits wait for others to share a sync. In memory there is no sync \
                  to share; on a disk the waiting sessions share a device write without it",
        },
    ]
}

const PAGES: Pages = Pages {
    database: "postgres",
    off: FULL_PAGES_OFF,
    on: FULL_PAGES_ON,
    emulated: FULL_PAGES_EMULATED,
    requires: &REQUIRES,
    way_back: &WAY_BACK,
};

/// The advice.
pub fn advise(policy: Policy, medium: Option<Medium>, on_mount: bool) -> Advice {
    PAGES.advise(policy, medium, always(policy, on_mount))
}

const REQUIRES: [&str; 6] = [
    "the server always runs under `seawall run --policy atomic`, its crash recovery too: after a crash start it \
     that way, not bare after `seawall recover`",
    "switch full_page_writes off only when the server runs that way already, right after a CHECKPOINT",
    "`seawall status` shows no file outside the log; a daemon that is gone, a full log whose disk refuses, or a \
     mapped file puts one outside, and its pages can tear until it is back. Keep an eye on that line",
    "the pool has an entry for every data file that is open for writing at a time (4096 from 1 GiB on), and every \
     tablespace is managed: `seawall status` says neither FULL nor NOT COVERED",
    "data checksums are on (pg_checksums --enable): they reveal a page that is torn all the same",
    "base backups still need full pages: pg_basebackup switches them on by itself while it runs",
];

const WAY_BACK: [&str; 4] = [
    "ALTER SYSTEM SET full_page_writes = on",
    "SELECT pg_reload_conf()",
    "CHECKPOINT: from here on the WAL has full pages of everything that recovery may need",
    "stop the server; now it may start without Seawall",
];
