//! Alone: too few keepers of the log can be reached, and this host goes on with its own disk.
//!
//! ```text
//!           the daemon: everything that was acknowledged is made durable on the disk, and a mark beside it says so
//!   NO ────────▶ GOES ─────────────────────────────────────────────▶ IS ────────▶ NO
//!                nobody is acknowledged anything                      syncs are the disk's, until enough have the log again
//! ```
//!
//! A thread that looks here before its sync counts either finds NO, and then its writes were in its file before the
//! daemon began to make files durable; or it waits, and its file leaves the log as it leaves a full one. So nothing is
//! acknowledged that exists only in copies which nobody reads any more.

use core::sync::atomic::{Ordering::SeqCst, fence};

use rustix::thread::futex;
use seawall_wire::desk::{Desk, alone};

const NAP: futex::Timespec = futex::Timespec { tv_sec: 0, tv_nsec: 10_000_000 };
/// After this many naps nobody seems to decide: half a minute.
const NAPS: u32 = 3000;

/// True while syncs go to the disk.
pub(super) fn is_alone(desk: Desk<'_>) -> bool {
    desk.alone().load(SeqCst) == alone::IS
}

/// Whose copy of the log counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Counts {
    /// The keepers' copies.
    Keepers,
    /// The disk's content: files leave the log.
    Disk,
    /// Neither any more.
    Nothing,
    /// It takes too long to find out.
    Unknown,
}

/// Waits until it is known what counts.
pub(super) fn wait(desk: Desk<'_>) -> Counts {
    // Orders this thread's stores into a mapping before the load.
    fence(SeqCst);
    for _ in 0..NAPS {
        match desk.alone().load(SeqCst) {
            alone::NO => return Counts::Keepers,
            alone::IS => return Counts::Disk,
            _ if desk.failed().load(SeqCst) != 0 => return Counts::Nothing,
            // Woken, timed out or interrupted: it looks again.
            now => drop(futex::wait(desk.alone(), futex::Flags::empty(), now, Some(&NAP))),
        }
    }
    Counts::Unknown
}

/// Notes whether this host is alone, in [the desk's numbers](seawall_wire::desk::alone); threads that wait for that
/// look again.
#[cfg(feature = "std")]
pub fn set_alone(desk: Desk<'_>, how: u32) {
    desk.alone().store(how, SeqCst);
    let _ = futex::wake(desk.alone(), futex::Flags::empty(), u32::MAX >> 1);
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use std::time::{Duration, Instant};

    use super::super::desk_memory::desk_memory;
    use super::*;

    #[test]
    fn whoever_comes_while_files_are_made_durable_waits_until_it_is_decided() {
        let region = desk_memory();
        let desk = Desk::new(&region, 0);
        assert_eq!(wait(desk), Counts::Keepers);
        for (decided, expected) in [(alone::IS, Counts::Disk), (alone::NO, Counts::Keepers)] {
            set_alone(desk, alone::GOES);
            std::thread::scope(|scope| {
                let waits = scope.spawn(|| (wait(desk), Instant::now()));
                std::thread::sleep(Duration::from_millis(30));
                let before = Instant::now();
                set_alone(desk, decided);
                let (waited, at) = waits.join().expect("it ends");
                assert!(waited == expected && at >= before, "{waited:?}");
            });
        }
        set_alone(desk, alone::GOES);
        desk.failed().store(5, SeqCst);
        assert_eq!(wait(desk), Counts::Nothing, "nobody decides any more");
    }
}
