//! Processes without Seawall, and the files that leave the log because of them.

use crate::parts::files::Managed;
use crate::state::Daemon;
use crate::{cache, foreign, process};

/// Takes a file out of the log, now, until no foreign process writes to it any more.
pub(crate) fn keep_out(daemon: &Daemon, file: &Managed, pid: u32) {
    let is_new = daemon.held_out.hold(&daemon.engine, daemon.me(), file, pid);
    // 0: the watchdog let somebody open it.
    if !is_new || pid == 0 {
        return;
    }
    let (path, name) = (file.current_path(), process::name(pid));
    daemon.log.say_once(
        &format!("{}{name}", path.display()),
        format!(
            "{} was opened by {name} ({pid}), which runs without Seawall: the file is out of the log \
             meanwhile",
            path.display()
        ),
    );
}

/// Takes every file out of the log that a process writes: the process goes without Seawall.
pub(crate) fn keep_out_of(daemon: &Daemon, pid: u32) {
    cache::suspend_those_of(daemon, pid);
    for file in daemon.files.all().iter().filter(|file| foreign::writes(pid, file.dev, file.ino)) {
        keep_out(daemon, file, pid);
    }
}

/// Looks whether one of these processes, which are foreign, has the file open for writing.
pub(crate) fn look_for_writers(daemon: &Daemon, (dev, ino): (u64, u64), strangers: &[u32]) {
    cache::look_for_writers(daemon, (dev, ino), strangers);
    let known = daemon.engine.find(dev, ino);
    let Some(file) = known.and_then(|file| daemon.files.get(file.slot)) else { return };
    let will_join = |pid| daemon.will_join(pid);
    if let Some(pid) = foreign::writers(dev, ino, strangers.iter().copied(), will_join).next() {
        keep_out(daemon, &file, pid);
    }
}
