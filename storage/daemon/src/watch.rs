//! Opens of managed files by processes without Seawall.
//!
//! Such a process may write and fsync. If the file had live records then, a later replay would roll its
//! durable data back. So the file leaves the log first, and stays out until that process has gone.
//!
//! | the daemon has | how an open is seen | what is guaranteed |
//! |---|---|---|
//! | CAP_SYS_ADMIN (root) | fanotify permission event: the open waits for the daemon's answer | the file has no live records before the open returns |
//! | less | inotify, after the fact, then a look at `/proc` | the same within some milliseconds of the open, for processes of the same user |
//!
//! The directory of a guard that steps aside is watched in the first row too: a stranger who reads it does not see the
//! guard (`guarding`). In the second row it is met.
//!
//! A file whose every write is to be logged (policy `atomic`) gets the second row in both cases: a backup that
//! reads it must not take it out of the log, and only an open that is over shows whether it is for writing.
//!
//! The limit of the second row, precisely: data that a foreign process writes *and* syncs within those
//! milliseconds, or as another user, is at risk if the machine loses power before the file has left the log.
//! Writers that were there before the file was registered are found in both rows (`foreign`), and recovery
//! refuses files that changed since the boot.
//!
//! The daemon of another user gets the first row too when root started it (`run --user`): the group is made
//! while still root and handed over as the daemon's stdin. It is handed over, not shared: a second holder
//! would keep the group, and the opens that wait for it, when the daemon dies. The [watchdog](crate::watchdog) shares it,
//! which the kernel ends with the daemon.
//!
//! While no daemon lives nobody watches; `run` starts a new one at once, which looks at every managed file.
//!
//! No deadlock: the thread that reads permission events opens no managed file and takes no lock of one;
//! foreign opens are answered by a thread of their own. It needs the turn of `registering`, and whoever has that opens files,
//! for which other daemons and virus scanners may have to be asked, who ask us. So it waits for five seconds at most, and then
//! takes the file out of the log without. If the daemon dies the kernel lets all opens pass.

use std::collections::{BTreeSet, HashSet};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::fanotify::{Fanotify, FanotifyEvent};
use nix::sys::inotify::{AddWatchFlags, Inotify};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{FileType, Stat};
use seawall_core::file::Flag;
use seawall_media::locks::{Turn, lock};

use crate::asleep::Asleep;
use crate::parts::guards;
use crate::parts::lifetime::Lifetime;
use crate::parts::watch::{COALESCE, Inodes, Watch, allow};
use crate::state::Daemon;
use crate::{cache, guarding, outside, process};

type Inode = (u64, u64);

/// How long an open waits for those who change which files are managed. They sync files meanwhile.
const LIMIT: Duration = Duration::from_secs(5);
/// Pause after a look, in looks: the opens of the database's own processes are reported too.
const PAUSE: u32 = 4;

/// Answers events until everything else has ended.
pub(crate) fn run(daemon: &Arc<Daemon>) {
    if !matches!(daemon.watch, Watch::Blind) {
        cache::announce(daemon);
    }
    match &daemon.watch {
        Watch::Fanotify(fanotify) => permissions(daemon, fanotify),
        Watch::Inotify(inotify, inodes) => reports(daemon, inotify, inodes),
        Watch::Blind => {}
    }
}

/// Between looks whether the end has come, once it is near.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };
/// The same before, should the event of the end be missing.
const TICK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// Waits for events. False when everything else has ended.
fn is_called(lifetime: &Lifetime, group: impl AsFd) -> bool {
    while !lifetime.is_finished() {
        let mut fds = vec![PollFd::new(&group, PollFlags::IN)];
        let is_near = lifetime.is_ending();
        let end = lifetime.end_event().filter(|_| !is_near);
        let limit = match (is_near, &end) {
            (true, _) => Some(&LOOK),
            (false, Some(_)) => None,
            (false, None) => Some(&TICK),
        };
        fds.extend(end);
        if rustix::event::poll(&mut fds, limit).is_ok() && !fds[0].revents().is_empty() {
            return true;
        }
    }
    false
}

fn permissions(daemon: &Arc<Daemon>, fanotify: &Fanotify) {
    while is_called(&daemon.lifetime, fanotify) {
        let events = match fanotify.read_events() {
            Ok(events) => events,
            // The watchdog has read them.
            Err(Errno::EAGAIN) => continue,
            Err(_) => {
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        for event in events {
            if is_ours(daemon, event.pid()) {
                allow(fanotify, &event);
                continue;
            }
            let daemon = Arc::clone(daemon);
            // The event closes its descriptor, and so lets the open pass, however the thread ends.
            std::thread::spawn(move || foreign_open(&daemon, &event));
        }
    }
}

fn is_ours(daemon: &Daemon, pid: i32) -> bool {
    let Ok(pid) = u32::try_from(pid) else { return false };
    pid == std::process::id() || daemon.is_client(pid) || daemon.will_join(pid)
}

fn foreign_open(daemon: &Daemon, event: &FanotifyEvent) {
    let Some(stat) = event.fd().and_then(|fd| rustix::fs::fstat(fd).ok()) else {
        return let_pass(daemon, event);
    };
    let (inode, pid) = ((stat.st_dev, stat.st_ino), event.pid().unsigned_abs());
    let is_seen = cache::opened(daemon, inode, pid, LIMIT);
    // A file is watched before it has a slot: an open in between is judged when it has one.
    let turn = daemon.registering.turn_within(LIMIT).filter(|_| is_seen);
    let Some(turn) = turn else {
        return make_safe_at_last(daemon, event, &stat);
    };
    if is_atomic(daemon, inode) {
        drop(turn);
        let_pass(daemon, event);
        return judge_afterwards(daemon, inode);
    }
    make_safe(daemon, &stat, pid, turn);
    let_pass(daemon, event);
}

fn let_pass(daemon: &Daemon, event: &FanotifyEvent) {
    if let Watch::Fanotify(fanotify) = &daemon.watch {
        allow(fanotify, event);
    }
}

/// Whoever has the turn waits himself, it may be for another daemon, which asks us whether it may open a file as we ask it. So the
/// file leaves the log without the turn, and the open passes. A guard that is in its way steps aside when the turn comes.
fn make_safe_at_last(daemon: &Daemon, event: &FanotifyEvent, stat: &Stat) {
    let (inode, pid) = ((stat.st_dev, stat.st_ino), event.pid().unsigned_abs());
    let is_atomic = is_atomic(daemon, inode);
    if let Some(managed) = daemon.managed(inode.0, inode.1).filter(|file| !file.is_directory && !is_atomic) {
        outside::keep_out(daemon, &managed, pid);
    }
    let_pass(daemon, event);
    cache::opened_unseen(daemon, inode, pid);
    let turn = daemon.registering.turn();
    if !self::is_atomic(daemon, inode) {
        make_safe(daemon, stat, pid, turn);
    }
    judge_afterwards(daemon, inode);
}

/// True if every write of the file is to go through the log.
fn is_atomic(daemon: &Daemon, (dev, ino): Inode) -> bool {
    daemon.engine.find(dev, ino).is_some_and(|file| daemon.engine.state(file).has(Flag::ATOMIC))
}

/// Nearly every foreign open of a database's data file is a backup's or a checker's, for reading: it must not
/// take the file out of the log. Whether it is a writer's shows only when it is open.
fn judge_afterwards(daemon: &Daemon, inode: Inode) {
    std::thread::sleep(COALESCE);
    outside::look_for_writers(daemon, inode, &daemon.strangers());
}

/// What the stranger is about to see is out of the log, and no guard in its way, if that is one that steps aside.
fn make_safe(daemon: &Daemon, stat: &Stat, pid: u32, _alone: Turn<'_>) {
    let inode = (stat.st_dev, stat.st_ino);
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        // Another daemon, or a command, looks for guards: it is to find them.
        let met = if process::is_seawall(pid) { BTreeSet::new() } else { daemon.guards.met_at(inode) };
        return guarding::make_way(daemon, &met, pid);
    }
    let known = daemon.engine.find(inode.0, inode.1);
    let Some(managed) = known.and_then(|file| daemon.files.get(file.slot)) else { return };
    let steps_aside = daemon.roots.get(managed.root).is_some_and(|root| guards::steps_aside(root.preset));
    match steps_aside {
        true => guarding::make_way(daemon, &BTreeSet::from([managed.reference.slot]), pid),
        false => outside::keep_out(daemon, &managed, pid),
    }
}

fn reports(daemon: &Daemon, inotify: &Inotify, inodes: &Mutex<Inodes>) {
    let mut asleep = Asleep::default();
    while is_called(&daemon.lifetime, inotify) {
        std::thread::sleep(COALESCE);
        let opened = opened(inotify, inodes);
        // As above: a file that was opened may not have its slot yet.
        daemon.registering.wait();
        let begin = Instant::now();
        let mut strangers = daemon.strangers();
        let let_off = asleep.look(strangers.iter().copied());
        strangers.retain(|pid| !let_off.contains(pid));
        for inode in opened {
            outside::look_for_writers(daemon, inode, &strangers);
        }
        std::thread::sleep(begin.elapsed() * PAUSE);
    }
}

/// What was opened until now: all of it, since a process that had not run lately is let off.
fn opened(inotify: &Inotify, inodes: &Mutex<Inodes>) -> HashSet<Inode> {
    let mut opened = HashSet::new();
    loop {
        match inotify.read_events() {
            Ok(events) => {
                let inodes = lock(inodes);
                opened.extend(events.iter().filter_map(|event| inodes.get(event.wd)));
                // The kernel dropped some.
                if events.iter().any(|event| event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW)) {
                    opened.extend(inodes.all());
                }
            }
            Err(Errno::EINTR) => {}
            Err(_) => return opened,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::process::Command;

    use super::*;
    use crate::roots::AddRoot;
    use crate::{closing, register, roots, start};

    /// Two daemons that registered files in one directory at once waited for each other, and so did all who opened these.
    #[test]
    fn regression_an_open_does_not_wait_for_ever_for_whoever_has_the_turn() {
        let ram = tempfile::tempdir_in("/dev/shm").expect("a directory");
        let data = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let daemon = Arc::new(start::without_threads(&ram));
        let ends = || {
            closing::forget_boot(&daemon);
            start::release(&daemon);
        };
        if !matches!(daemon.watch, Watch::Fanotify(_)) {
            ends();
            return eprintln!("skipped: opens do not wait for an answer here");
        }
        let path = data.path().to_owned();
        let (preset, policy) = ("any".into(), "tail".into());
        let wanted = AddRoot { preset, policy, path: path.clone(), data: path.clone(), recovery: None };
        roots::add(&daemon, &wanted, None).expect("added");
        std::thread::scope(|threads| {
            // It answers this process's own opens too.
            threads.spawn(|| run(&daemon));
            let file = File::create(path.join("a.dat")).expect("created");
            let registered = register::register(&daemon, &file.into()).ok().expect("managed");
            let turn = daemon.registering.turn();
            let mut cat = Command::new("cat").arg(path.join("a.dat")).spawn().expect("started");
            let begin = Instant::now();
            let mut has_passed = false;
            while !has_passed && begin.elapsed() < 6 * LIMIT {
                std::thread::sleep(Duration::from_millis(20));
                has_passed = cat.try_wait().expect("a child").is_some();
            }
            let was_out = daemon.engine.state(registered).has(Flag::FOREIGN);
            drop(turn);
            cat.wait().expect("it ends now");
            daemon.lifetime.end();
            daemon.lifetime.finish();
            assert!(has_passed && was_out, "{has_passed} {was_out}");
        });
        ends();
    }
}
