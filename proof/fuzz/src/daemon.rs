//! A real daemon in this process, with a pool of its own.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use seawall_core::pool;
use seawall_daemon::{Options, place, serve};

use crate::scratch;

/// What takes longer is a hang.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A pool in this directory of memory. What its daemon leaves elsewhere is removed at exit.
pub fn pool_in(memory: &Path) -> PathBuf {
    let pool = memory.join("pool");
    pool::create(&pool, 16 << 20, true, false).expect("a pool");
    let uuid = pool::open(&pool).expect("it opens").uuid();
    scratch::remove_at_exit(Path::new(&format!("/dev/shm/seawall-{uuid:032x}.rt")));
    for place in place::candidates(&pool).expect("places") {
        [place.socket, place.log].iter().for_each(|path| scratch::remove_at_exit(path));
    }
    pool
}

/// Its daemon, which listens.
pub fn start(pool: &Path) -> JoinHandle<()> {
    let (ready, listens) = mpsc::channel();
    let options = Options {
        pool: pool.to_owned(),
        keep: true,
        journal: false,
        cache: None,
        boot: false,
        watchdog: None,
    };
    let daemon = std::thread::spawn(move || {
        serve(&options, || ready.send(()).expect("somebody waits")).expect("a daemon that serves");
    });
    listens.recv_timeout(PATIENCE).expect("a daemon that listens");
    daemon
}
