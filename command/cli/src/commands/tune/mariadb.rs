//! MariaDB: InnoDB's doublewrite buffer, its asynchronous requests, and when commits are durable.

use seawall_media::Medium;
use seawall_wire::shm::Policy;

use super::advice::{Advice, Pages, Setting};

const DOUBLEWRITE_OFF: Setting = Setting {
    name: "innodb_doublewrite",
    value: "OFF",
    why: "no page can tear: every write of a tablespace is in the log before it is in the file, so InnoDB no \
          longer gains any protection from the copy that it writes of each page before the page itself",
};
const DOUBLEWRITE_ON: Setting = Setting {
    name: "innodb_doublewrite",
    value: "ON",
    why: "leave it on: under --policy tail tablespaces are the kernel's, and a power cut can tear their pages",
};
const DOUBLEWRITE_EMULATED: Setting = Setting {
    name: "innodb_doublewrite",
    value: "OFF",
    why: "only on a medium that survives a power cut: on this one the log is gone with the power, and torn \
          pages stay torn. You may set it to measure what it would bring, on data that you can lose",
};
const NATIVE_AIO_OFF: Setting = Setting {
    name: "innodb_use_native_aio",
    value: "OFF",
    why: "this happens anyway: under --policy atomic the server gets no io_uring and no libaio, whose writes \
          would go around the log, and falls back to threads by itself. The setting avoids the warning in \
          its log",
};
const NATIVE_AIO_ON: Setting = Setting {
    name: "innodb_use_native_aio",
    value: "ON",
    why: "the default: tablespaces stay out of the log, the redo log and the binary logs stay in it",
};

/// The same on every medium and with every policy.
fn always() -> Vec<Setting> {
    vec![
        Setting {
            name: "innodb_flush_log_at_trx_commit",
            value: "1",
            why: "the default: Seawall takes its wait for the disk away, so 2 or 0 gain nothing any more",
        },
        Setting {
            name: "sync_binlog",
            value: "1",
            why: "not the default: with a binary log, a commit is durable only if the binary log is too, and \
                  now that costs next to nothing",
        },
    ]
}

const REQUIRES: [&str; 6] = [
    "the server always runs under `seawall run --policy atomic`, its crash recovery too: after a crash start it \
     that way, not bare after `seawall recover`",
    "switch innodb_doublewrite off only for a server that is started that way (it is read at the start), and \
     only after a clean shutdown",
    "`seawall status` shows no file outside the log; a daemon that is gone, a full log whose disk refuses, or a \
     mapped file puts one outside, and its pages can tear until it is back. Keep an eye on that line",
    "tablespaces are in the data directory, in innodb_data_home_dir, in innodb_undo_directory, or where a \
     table's .isl file points; a table made elsewhere (DATA DIRECTORY) is covered from the next start on",
    "the pool has room for every table that is written: 256 files in the smallest, 4096 from 1 GiB on; the \
     daemon's log and stderr name a file that finds no room",
    "Aria and MyISAM tables are as safe as they ever were: neither setting is theirs",
];

const WAY_BACK: [&str; 3] = [
    "SET GLOBAL innodb_fast_shutdown = 0, then shut the server down in an orderly way, still under Seawall",
    "innodb_doublewrite = ON in the option file",
    "now it may start without Seawall",
];

const PAGES: Pages = Pages {
    database: "mariadb",
    off: DOUBLEWRITE_OFF,
    on: DOUBLEWRITE_ON,
    emulated: DOUBLEWRITE_EMULATED,
    requires: &REQUIRES,
    way_back: &WAY_BACK,
};

/// The advice.
pub fn advise(policy: Policy, medium: Option<Medium>) -> Advice {
    let mut settings = always();
    settings.push(if policy == Policy::Atomic { NATIVE_AIO_OFF } else { NATIVE_AIO_ON });
    PAGES.advise(policy, medium, settings)
}
