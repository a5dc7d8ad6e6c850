//! Memory for the rest of a log's image, while the log is in use: a start takes it for a few segments only.
//!
//! It is taken ahead of use. The database that has just been started wants the processors too, so they are left to it for
//! most of the time, while there is more than it uses.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, Timespec, poll};

use crate::state::Daemon;

/// Bytes whose memory is taken at once: about a hundredth of a second.
const PIECE: usize = 16 << 20;
/// How long a database that is being started is left alone.
const AT_FIRST: Duration = Duration::from_millis(100);
/// How much longer it is left alone between two pieces than one takes.
const REST: u32 = 3;
/// How long a memory is left alone that had no room.
const WAIT: Duration = Duration::from_secs(1);

/// Takes memory until all of the log has it, or the daemon ends.
pub(crate) fn run(daemon: &Arc<Daemon>) {
    pause(daemon, AT_FIRST);
    while !daemon.lifetime.is_ending() {
        let begin = Instant::now();
        match daemon.pool.back(&daemon.engine, PIECE) {
            Ok(0) => return,
            Ok(_) if is_short(daemon) => {}
            Ok(_) => pause(daemon, begin.elapsed() * REST),
            Err(error) => {
                tell(daemon, &error);
                pause(daemon, WAIT);
            }
        }
    }
}

/// True while half of what the log has by now is in use.
fn is_short(daemon: &Daemon) -> bool {
    daemon.engine.shm().header().free_segments().load(Relaxed) < daemon.engine.backed() / 2
}

fn tell(daemon: &Daemon, error: &std::io::Error) {
    let (has, all) = (daemon.engine.backed(), daemon.engine.layout().segments);
    daemon.log.say_once(
        "memory of the log",
        format!(
            "the log is smaller than it should be: there is no memory for more than {has} of its {all} \
             segments ({error}). Make room in {}; the daemon tries again each second",
            seawall_core::pool::MEMORY
        ),
    );
}

/// Waits so long, or until the daemon ends.
fn pause(daemon: &Daemon, time: Duration) {
    let mut end: Vec<PollFd<'_>> = daemon.lifetime.end_event().into_iter().collect();
    let time = Timespec { tv_sec: time.as_secs() as i64, tv_nsec: i64::from(time.subsec_nanos()) };
    // Whatever comes of it, the next piece is due.
    let _ = poll(&mut end, Some(&time));
}
