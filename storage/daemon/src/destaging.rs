//! The destage thread: rounds as often as the log needs them, seldom when it does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Acquire, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rustix::thread::futex;
use seawall_core::Engine;
use seawall_core::destage::{Destager, Round};
use seawall_media::locks::lock;

use crate::ages::Ages;
use crate::descriptors::Descriptors;
use crate::forget::forget_unlinked;
use crate::state::Daemon;

/// Pause after a round that found something while there is room: as between the looks of the kernel's own
/// write-back (`vm.dirty_writeback_centisecs`).
const BUSY: Duration = Duration::from_secs(5);
/// Pause after a round that found nothing. The bell cuts it short.
const IDLE: Duration = Duration::from_secs(1);
/// How often removed files are looked for meanwhile.
const LOOK: Duration = Duration::from_secs(1);
/// Longest time a drain tries to catch up with writers.
const DRAIN: Duration = Duration::from_secs(60);

/// Runs until the daemon ends.
pub(crate) fn run(daemon: &Arc<Daemon>) {
    let mut ages = Ages::of_this_machine();
    loop {
        // Read first: whoever ends the daemon rings it then.
        let bell = daemon.engine.shm().header().bell().load(Acquire);
        if daemon.lifetime.is_ending() {
            return;
        }
        let files = Descriptors::new(&daemon.files);
        let files =
            if is_short(&daemon.engine) { files.when_pressed(&mut ages) } else { files.when_old(&mut ages) };
        let round = make_round(daemon, files);
        forget_unlinked(daemon);
        if is_short(&daemon.engine) && round.freed > 0 {
            continue;
        }
        let found = round.synced > 0 || round.dirty > 0;
        wait_and_look(daemon, bell, if found { BUSY } else { IDLE });
    }
}

/// One round over all files; the daemon's log names what could not be synced, once.
pub(crate) fn round(daemon: &Daemon) -> Round {
    make_round(daemon, Descriptors::new(&daemon.files))
}

fn make_round(daemon: &Daemon, mut files: Descriptors<'_>) -> Round {
    let _alone = lock(&daemon.destaging);
    let step = daemon.fill.step(&daemon.engine);
    let round = Destager::new(&daemon.engine, daemon.me()).round(&mut files);
    if round.synced > 0 || round.dirty > 0 {
        daemon.fill.count(step);
    }
    if round.readmitted > 0 {
        let n = round.readmitted;
        daemon
            .log
            .say(format!("{n} files under the policy atomic were outside the log, and are in it again"));
    }
    for (slot, error) in &round.failed {
        let path =
            daemon.files.get(*slot).map_or_else(|| format!("slot {slot}").into(), |f| f.current_path());
        let text = format!("cannot sync {}, so its records stay in the log: {error}", path.display());
        daemon.log.say_once(&text, &text);
    }
    round
}

/// Syncs the directories in the log, if they are many. True if their entries are free to be given up.
pub(crate) fn directories(daemon: &Daemon) -> bool {
    let Ok(_alone) = daemon.destaging.try_lock() else { return false };
    let mut files = Descriptors::new(&daemon.files);
    !Destager::new(&daemon.engine, daemon.me()).sync_directories(&mut files).is_empty()
}

/// Rounds until nothing is left, or writers are faster for too long.
pub(crate) fn drain(daemon: &Daemon) -> Round {
    let begin = Instant::now();
    loop {
        let round = round(daemon);
        if round.dirty == 0 || !round.failed.is_empty() || begin.elapsed() > DRAIN {
            return round;
        }
    }
}

fn is_short(engine: &Engine) -> bool {
    engine.shm().header().free_segments().load(Relaxed) < engine.backed() / 2
}

/// Until the bell rings. Whoever removed a file to get its space back does not wait for the next round.
fn wait_and_look(daemon: &Daemon, bell: u32, pause: Duration) {
    let begin = Instant::now();
    while daemon.engine.shm().header().bell().load(Acquire) == bell && begin.elapsed() < pause {
        wait(daemon.engine.shm().header().bell(), bell, LOOK.min(pause.saturating_sub(begin.elapsed())));
        forget_unlinked(daemon);
    }
}

fn wait(bell: &AtomicU32, rung: u32, pause: Duration) {
    let time = futex::Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: i64::from(pause.subsec_nanos()) };
    // Woken, timed out, or rung already: in every case the caller looks.
    let _ = futex::wait(bell, futex::Flags::empty(), rung, Some(&time));
}
