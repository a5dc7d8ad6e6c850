//! What somebody else wrote, in the backing directory, is seen at the next open: it lets the kernel's pages go.
//!
//! | nobody has the file open on the mount | it is as the last open saw it, and we changed nothing since | kept |
//! | | anything else | let go |
//! | somebody has | it is as the last open saw it | kept |
//! | | its content changed, and we changed nothing since | let go |
//! | | it changed, and so did we: the file does not show who else | kept, and let go by the open after all are closed |
//!
//! Not always let go: the kernel has the pages of a write before it sends it to us. Were they let go between the two, and read
//! again, what was there before the write would stay. When nobody has the file open there is no such write.

use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// An open that has its answer lets the pages go within this time.
const UNDER_WAY: Duration = Duration::from_secs(1);

/// What shows a change of a file's content, whoever made it: its size, and its times, of which the second cannot be set.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    size: i64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Stamp {
    fn of(fd: impl AsFd) -> Option<Self> {
        let stat = rustix::fs::fstat(fd).ok()?;
        Some(Self {
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        })
    }

    /// True if any change from now on shows: a kernel's times may go by the tick (before Linux 6.13).
    fn is_settled(&self) -> bool {
        const TICKS_NS: i128 = 20_000_000;
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
        let ns = |seconds: i64, ns: i128| i128::from(seconds) * 1_000_000_000 + ns;
        ns(now.tv_sec, now.tv_nsec.into()) - ns(self.changed.0, self.changed.1.into()) > TICKS_NS
    }

    fn has_same_content(&self, other: &Self) -> bool {
        (self.size, self.modified) == (other.size, other.modified)
    }
}

/// What an open saw.
pub struct Seen {
    stamp: Stamp,
    /// How often we had changed the file before that.
    changes: u64,
    /// The pages are of this stamp, or later.
    is_certain: bool,
    /// When an open let pages go that somebody else's change had made wrong.
    let_go: Option<Instant>,
}

impl Seen {
    fn lets_go(&self) -> bool {
        self.let_go.is_some_and(|since| since.elapsed() < UNDER_WAY)
    }

    /// True if the kernel's pages are to be kept by the open whose descriptor this is. Asked once for each open of a file:
    /// with what the one before saw, whether it is open still, and how often we have changed it.
    pub fn are_unchanged(last: &mut Option<Self>, is_open: bool, changes: u64, fd: impl AsFd) -> bool {
        let Some(stamp) = Stamp::of(fd) else {
            *last = None;
            return false;
        };
        let fresh = |let_go| Self { stamp, changes, is_certain: stamp.is_settled(), let_go };
        let Some(seen) = last else {
            *last = Some(fresh(None));
            return false;
        };
        let is_ours = seen.changes != changes;
        let keep = match (is_open, is_ours) {
            (true, true) => true,
            (true, false) => seen.stamp.has_same_content(&stamp) && !seen.lets_go(),
            (false, _) => seen.stamp == stamp && seen.is_certain && !seen.lets_go(),
        };
        match (keep, is_open) {
            (false, _) => *seen = fresh((!is_ours).then(Instant::now)),
            (true, true) if is_ours => (seen.stamp, seen.changes) = (stamp, changes),
            (true, _) => {}
        }
        // Beside writes that are under way pages are let go in vain; and what somebody else wrote before ours does not show.
        seen.is_certain &= !(is_open && (is_ours || !keep));
        keep
    }
}
