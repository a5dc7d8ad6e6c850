//! What somebody else wrote, in the backing directory, is seen at the next open: it lets the kernel's pages go.
//!
//! | nobody has the file open on the mount | nobody ever had: there are no pages | kept |
//! | | it is as the last open saw it, and we changed nothing since | kept |
//! | | anything else | let go, before the open is answered |
//! | somebody has | it is as the last open saw it | kept |
//! | | its content changed, and we changed nothing since | let go, by the open's answer |
//! | | it changed, and so did we: the file does not show whether somebody else did | kept, and let go by the open after all are closed |
//!
//! Not always let go: the kernel has the pages of a write before it sends it to us. Were they let go between the two, and read
//! again, what was there before the write would stay. When nobody has the file open there is no such write; and the next
//! open, whose writes there may be, waits for the one that lets them go.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use seawall_core::Errno;

/// An open that has its answer lets the pages go within this time.
const UNDER_WAY: Duration = Duration::from_secs(1);

/// Our changes of a file's content, or of its times.
#[derive(Default)]
pub struct Changes {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Changes {
    /// Runs one.
    pub fn run<R>(&self, op: impl FnOnce() -> R) -> R {
        self.begun.fetch_add(1, SeqCst);
        let done = op();
        self.ended.fetch_add(1, SeqCst);
        done
    }

    /// Runs a look at the file, and says how many changes had been made before it: `None` if one may have been made beside
    /// it. (As many as have begun after it had ended before it: so none was under way.)
    pub fn before<R>(&self, look: impl FnOnce() -> R) -> (Option<u64>, R) {
        let ended = self.ended.load(SeqCst);
        let seen = look();
        let is_quiet = self.begun.load(SeqCst) == ended;
        (is_quiet.then_some(ended), seen)
    }
}

/// What shows a change of a file's content, whoever made it: its size, and its times, of which the second cannot be set.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Stamp {
    size: i64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Stamp {
    fn of(fd: impl AsFd) -> Result<Self, Errno> {
        let stat = rustix::fs::fstat(fd)?;
        Ok(Self {
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

/// What an open finds of the kernel's pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// There are none: it is the first.
    First,
    /// They are the file's.
    Same,
    /// Somebody else changed the file.
    Changed,
    /// The same, or perhaps; and nobody has it open.
    ChangedWhileClosed,
}

/// What an open saw.
pub struct Seen {
    stamp: Stamp,
    /// How often we had changed the file before that; unknown if we were changing it.
    changes: Option<u64>,
    /// The pages are of this stamp, or later.
    is_certain: bool,
    /// When an open let pages go that somebody else's change had made wrong.
    let_go: Option<Instant>,
}

impl Seen {
    fn lets_go(&self) -> bool {
        self.let_go.is_some_and(|since| since.elapsed() < UNDER_WAY)
    }

    /// What becomes of the kernel's pages at the open whose descriptor this is. To be asked once for each open of a file,
    /// with what the one before saw, whether the file is open still, and our changes.
    ///
    /// # Errors
    /// What the backing file system says when it is asked for the file's times.
    pub fn open(
        last: &mut Option<Self>,
        is_open: bool,
        ours: &Changes,
        fd: impl AsFd,
    ) -> Result<Found, Errno> {
        let (changes, stamp) = ours.before(|| Stamp::of(fd));
        let stamp = stamp?;
        let fresh = |let_go| Self { stamp, changes, is_certain: stamp.is_settled(), let_go };
        let Some(seen) = last else {
            *last = Some(fresh(None));
            return Ok(Found::First);
        };
        let is_ours = changes.is_none() || seen.changes != changes;
        let keep = match (is_open, is_ours) {
            (true, true) => true,
            (true, false) => seen.stamp.has_same_content(&stamp) && !seen.lets_go(),
            (false, _) => seen.stamp == stamp && seen.is_certain,
        };
        match (keep, is_open) {
            (false, _) => *seen = fresh(is_open.then(Instant::now)),
            (true, true) if is_ours => (seen.stamp, seen.changes) = (stamp, changes),
            (true, _) => {}
        }
        // Beside writes that are under way pages are let go in vain; and what somebody else wrote before ours does not show.
        seen.is_certain &= !(is_open && (is_ours || !keep));
        Ok(match (keep, is_open) {
            (true, _) => Found::Same,
            (false, true) => Found::Changed,
            (false, false) => Found::ChangedWhileClosed,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs::File;
    use std::os::unix::fs::FileExt;

    use super::*;

    struct Opened {
        file: File,
        seen: RefCell<Option<Seen>>,
        ours: Changes,
    }

    impl Opened {
        fn new() -> Self {
            let file = tempfile::tempfile_in("/var/tmp").expect("a file");
            Self { file, seen: RefCell::default(), ours: Changes::default() }
        }

        fn open(&self, is_open: bool) -> Found {
            Seen::open(&mut self.seen.borrow_mut(), is_open, &self.ours, &self.file)
                .expect("it can be looked at")
        }

        fn write(&self) {
            // A kernel's times may go by the tick.
            std::thread::sleep(Duration::from_millis(25));
            self.file.write_all_at(b"x", 0).expect("written");
        }
    }

    #[test]
    fn what_somebody_else_wrote_lets_the_pages_go() {
        let file = Opened::new();
        assert_eq!(file.open(false), Found::First);
        assert_eq!(file.open(true), Found::Same);
        file.write();
        assert_eq!(file.open(true), Found::Changed);
        file.write();
        assert_eq!(file.open(false), Found::ChangedWhileClosed);
    }

    #[test]
    fn pages_are_kept_beside_a_write_of_ours_wherever_it_is() {
        let file = Opened::new();
        assert_eq!(file.open(false), Found::First);
        // Two opens in the middle of one, which is published between them.
        file.ours.run(|| {
            assert_eq!(file.open(true), Found::Same);
            file.write();
            assert_eq!(file.open(true), Found::Same);
        });
        assert_eq!(file.open(true), Found::Same, "it has ended meanwhile");
        assert_eq!(file.open(true), Found::Same);
        file.write();
        assert_eq!(file.open(true), Found::Changed, "that was somebody else");
    }

    #[test]
    fn a_write_that_begins_during_a_look_is_not_somebody_elses() {
        let ours = Changes::default();
        assert_eq!(ours.before(|| ()), (Some(0), ()));
        assert_eq!(ours.before(|| ours.run(|| ())).0, None);
        assert_eq!(ours.run(|| ours.before(|| ())).0, None);
        assert_eq!(ours.before(|| ()).0, Some(2));
    }
}
