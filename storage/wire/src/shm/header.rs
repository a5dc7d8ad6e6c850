//! The first page: who this memory belongs to, and the words everybody shares.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use seawall_media::Region;
use seawall_stats::Clock;

use super::Shape;
use crate::WIRE_VERSION;
use crate::words::words;

/// "SEAWALLR", little-endian.
const MAGIC: u64 = u64::from_le_bytes(*b"SEAWALLR");

/// View of the header.
#[derive(Clone, Copy)]
pub struct Header<'a> {
    pub(super) region: &'a Region,
    at: usize,
}

words!(Header {
    /// "SEAWALLR".
    magic: u64 @ 0,
    /// [`WIRE_VERSION`].
    version: u64 @ 8,
    /// Pool UUID, low half.
    uuid_low: u64 @ 16,
    /// Pool UUID, high half.
    uuid_high: u64 @ 24,
    /// Boot id, low half.
    boot_low: u64 @ 32,
    /// Boot id, high half.
    boot_high: u64 @ 40,
    /// [`Shape::lanes`].
    shape_lanes: u32 @ 48,
    /// [`Shape::files`].
    shape_files: u32 @ 52,
    /// [`Shape::segments`].
    shape_segments: u32 @ 56,
    /// [`Shape::clients`].
    shape_clients: u32 @ 60,
    /// [`Shape::roots`].
    shape_roots: u32 @ 64,
    /// [`Shape::holds`].
    shape_holds: u32 @ 68,
    /// Nanoseconds per 2³² ticks of the time-stamp counter ([`Clock`]).
    ns_per_ticks32: u64 @ 72,
    /// Process id of the daemon, 0 when there is none.
    daemon_pid: u32 @ 80,
    /// Counts take-overs.
    daemon_epoch: u32 @ 84,
    /// Which zone of a block cache the clients have, 0 for none: they may be served from no other.
    cache_zone: u64 @ 88,
    /// How often a directory has entered the table; 0 before the first one.
    directories: u32 @ 96,
    /// 1 once a journal was absent.
    absences: u32 @ 100,
    /// The period in which a new file may be written around the log. Odd while somebody may do so, and even otherwise.
    period: u64 @ 104,
    /// Writes around the log of all periods before this one have ended.
    period_settled: u64 @ 112,
    /// How often guards have come or gone. Odd while one does.
    guard_moves: u64 @ 120,
    /// The next LSN to hand out.
    next_lsn: u64 @ 128,
    /// Futex: incremented and woken when the daemon should look (space is short, a file to forget).
    bell: u32 @ 192,
    /// Free segments, approximately: a hint for back-pressure, not for safety.
    free_segments: u32 @ 256,
    /// Futex: incremented and woken when segments were freed.
    freed: u32 @ 264,
    /// 1 after somebody waited in vain for space. Until some is freed nobody waits.
    exhausted: u32 @ 268,
    /// Where the search for a free segment starts: none below it is likely to be free.
    segment_cursor: u32 @ 260,
    /// The clients' changes of names outside the log that are under way ([`Client`](super::Client)), at least: those of processes
    /// that died are never taken off.
    outside: u32 @ 340,
    /// 1 once a process has said that pages of a data file can tear: the next ones say nothing.
    told_torn: u32 @ 336,
    /// Whether a file that was synced elsewhere is noted ([`Stray`](super::Stray)), and the bytes of its path.
    elsewhere_state: u32 @ 320,
    /// As it says.
    elsewhere_len: u32 @ 324,
    /// The same of a file that no preset knows.
    unknown_state: u32 @ 328,
    /// As it says.
    unknown_len: u32 @ 332,
});

impl<'a> Header<'a> {
    /// Bytes it occupies.
    pub const BYTES: usize = 4096;

    pub(crate) fn new(region: &'a Region) -> Self {
        Self { region, at: 0 }
    }

    /// Writes a header into fresh (zeroed) memory; the magic last.
    pub fn format(region: &'a Region, uuid: u128, boot: u128, shape: Shape, clock: Clock) {
        let h = Self::new(region);
        h.version().store(u64::from(WIRE_VERSION), Relaxed);
        h.uuid_low().store(uuid as u64, Relaxed);
        h.uuid_high().store((uuid >> 64) as u64, Relaxed);
        h.boot_low().store(boot as u64, Relaxed);
        h.boot_high().store((boot >> 64) as u64, Relaxed);
        h.shape_lanes().store(shape.lanes, Relaxed);
        h.shape_files().store(shape.files, Relaxed);
        h.shape_segments().store(shape.segments, Relaxed);
        h.shape_clients().store(shape.clients, Relaxed);
        h.shape_roots().store(shape.roots, Relaxed);
        h.shape_holds().store(shape.holds, Relaxed);
        h.ns_per_ticks32().store(clock.ns_per_ticks32, Relaxed);
        h.magic().store(MAGIC, Release);
    }

    /// True if the memory was made by this version, for this pool, in this boot: only then may it be
    /// taken over.
    pub fn matches(region: &Region, uuid: u128, boot: u128) -> bool {
        let h = Header::new(region);
        region.len() >= Self::BYTES
            && h.magic().load(Acquire) == MAGIC
            && h.version().load(Relaxed) == u64::from(WIRE_VERSION)
            && h.uuid() == uuid
            && h.boot() == boot
    }

    /// The pool this memory belongs to.
    pub fn uuid(&self) -> u128 {
        u128::from(self.uuid_low().load(Relaxed)) | u128::from(self.uuid_high().load(Relaxed)) << 64
    }

    /// The boot it was made in.
    pub fn boot(&self) -> u128 {
        u128::from(self.boot_low().load(Relaxed)) | u128::from(self.boot_high().load(Relaxed)) << 64
    }

    /// The counts.
    pub fn shape(&self) -> Shape {
        Shape {
            lanes: self.shape_lanes().load(Relaxed),
            files: self.shape_files().load(Relaxed),
            segments: self.shape_segments().load(Relaxed),
            clients: self.shape_clients().load(Relaxed),
            roots: self.shape_roots().load(Relaxed),
            holds: self.shape_holds().load(Relaxed),
        }
    }

    /// The clock's factor.
    #[inline]
    pub fn clock(&self) -> Clock {
        Clock { ns_per_ticks32: self.ns_per_ticks32().load(Relaxed) }
    }
}
