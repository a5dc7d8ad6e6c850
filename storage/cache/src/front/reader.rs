//! A read of whole blocks: the zone, the page cache without waiting, the disk; and what came from the disk is offered.
//!
//! ```text
//! look ─ all there ─▶ done
//!   │ some missed
//!   ▼
//! without waiting ─▶ the disk ─▶ offered ─ admitted ─▶ given up by the page cache
//! ```
//!
//! What the zone holds is never asked of the page cache again, so it would grow old there, in the room of blocks that are
//! nowhere else.
//!
//! A front that must not wait goes only as far as [`Reader::without_waiting`], and has another thread do the rest with what
//! that returns.

use seawall_stats::{Class, Event, ticks};

use crate::set::Policy;
use crate::shared::{Cache, CachedFile, Lookup, Offered, OperationOwner, Token, is_counted};

/// The most blocks of a read that goes through the cache.
pub const BLOCKS_MAX: usize = 32;
/// From this length on a read is a scan's, and passes by.
pub const LONG: usize = 256 << 10;
/// The smallest block there is.
pub const SMALLEST: usize = 4096;

/// Blocks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The first one's number.
    pub first: u32,
    /// How many.
    pub count: usize,
}

/// The blocks of a read, if it is one for the cache: whole ones, not too many.
#[inline]
pub fn blocks(cache: &Cache, offset: u64, len: usize) -> Option<Run> {
    let size = cache.layout().block_bytes as usize;
    let is_fit = may_be(offset, len) && len.is_multiple_of(size) && offset.is_multiple_of(size as u64);
    let run = || Some(Run { first: u32::try_from(offset / size as u64).ok()?, count: len / size });
    run()
        .filter(|run| is_fit && run.count <= BLOCKS_MAX && run.first.checked_add(BLOCKS_MAX as u32).is_some())
}

/// False if such a read is for no cache, whatever its blocks.
#[inline]
pub fn may_be(offset: u64, len: usize) -> bool {
    (SMALLEST..LONG).contains(&len) && len.is_multiple_of(SMALLEST) && offset.is_multiple_of(SMALLEST as u64)
}

/// How the kernel is to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// Only what need not be waited for.
    NoWait,
    /// All of it.
    Wait,
}

/// Where blocks come from, and go.
pub trait Source {
    /// What goes wrong.
    type Error;
    /// The memory of the read's block number `i`, one block long.
    fn block(&mut self, i: usize) -> &mut [u8];
    /// Reads the read's blocks from number `from` to before `to` into their memory. How many bytes.
    ///
    /// # Errors
    /// The kernel's.
    fn kernel(&mut self, from: usize, to: usize, how: How) -> Result<usize, Self::Error>;
    /// Has the page cache drop the read's blocks from number `from` to before `to`, as far as they are clean. That is
    /// advice: nothing depends on it.
    fn give_up(&self, from: usize, to: usize);
    /// Nanoseconds of so many ticks.
    fn ns(&self, ticks: u64) -> u64;
    /// Records so many waits, each of so many nanoseconds.
    fn record(&self, event: Event, class: Class, ns: u64, count: usize);
}

/// A read.
pub struct Reader<'a> {
    /// The zone.
    pub cache: &'a Cache,
    /// The reader.
    pub who: OperationOwner,
    /// What.
    pub file: CachedFile,
    /// Of it.
    pub run: Run,
    /// It is part of a [stream](super::sequential).
    pub is_stream: bool,
}

/// What the zone had.
pub enum Looked {
    /// Everything.
    All,
    /// This many blocks at the beginning; for none of the others there is anything to offer to.
    Only(usize),
    /// Not everything, and what comes from the disk may be offered.
    Some,
}

/// What is left to read when what was in memory has been.
#[derive(Clone, Copy)]
pub struct Rest {
    /// The first block that is not there; what ends within a block is read again from that block's beginning.
    from: usize,
    /// The first one that may have come from the disk.
    offered_from: usize,
}

impl Reader<'_> {
    fn size(&self) -> usize {
        self.cache.layout().block_bytes as usize
    }

    /// All its bytes.
    pub fn len(&self) -> usize {
        self.run.count * self.size()
    }

    /// False for a read of anything.
    pub fn is_empty(&self) -> bool {
        self.run.count == 0
    }

    /// True if some of it is there on a disk: then the page cache is quicker, if it has all of it. A front that can ask
    /// without a read being begun asks there first, unless it reads past the page cache: that is for blocks which are not in
    /// it.
    #[inline]
    pub fn is_stored(&self) -> bool {
        let is_there = |i: usize| self.cache.look(self.file, self.run.first + i as u32) == Lookup::Hit;
        self.cache.layout().is_on_disk() && (0..self.run.count).any(is_there)
    }

    /// Looks for each block in the zone. Those that are not there are `missed`.
    #[inline]
    pub fn look(&self, missed: &mut Missed, source: &mut impl Source) -> Looked {
        let start = ticks();
        *missed = Missed::NOTHING;
        for i in 0..self.run.count {
            let number = self.run.first + i as u32;
            if let Lookup::Miss(token) = self.cache.look_up(self.file, number, source.block(i)) {
                missed.add(i, token);
            }
        }
        if missed.end == 0 {
            self.record(source, Event::CacheRead, start, self.run.count);
            return Looked::All;
        }
        if missed.has_tokens() { Looked::Some } else { Looked::Only(missed.first) }
    }

    /// Reads what was missed as far as it can be had without waiting: how many whole blocks, and whether they can have been
    /// in memory. That such a read has them proves nothing, for it begins to read from the disk, and finds what a fast one
    /// has brought by then.
    pub fn without_waiting(&self, missed: &Missed, source: &mut impl Source) -> Rest {
        const CALL_NS: u64 = 8_000;
        const BLOCK_NS: u64 = 2_000;
        let start = ticks();
        let blocks = source.kernel(missed.first, missed.end, How::NoWait).unwrap_or(0) / self.size();
        let is_quick = source.ns(ticks().wrapping_sub(start)) < CALL_NS + BLOCK_NS * blocks as u64;
        if !is_quick && blocks > 0 {
            self.record(source, Event::FileRead, start, 1);
        }
        let from = missed.first + blocks;
        Rest { from, offered_from: if is_quick { from } else { missed.first } }
    }

    /// Reads the rest from the disk, and offers what came from there. How many bytes the whole read has.
    ///
    /// # Errors
    /// The kernel's, if there is nothing to show for it.
    pub fn disk<S: Source>(&self, missed: &Missed, rest: Rest, source: &mut S) -> Result<usize, S::Error> {
        let (from, to, size) = (rest.from, missed.end, self.size());
        let read = if from == to { Ok(0) } else { self.wait(from, to, source) };
        let done = match read {
            Ok(done) => done,
            Err(e) if from == 0 => return Err(e),
            Err(_) => return Ok(from * size),
        };
        let passes = self.is_stream && self.cache.policy(self.file.slot) != Policy::Keep;
        if !passes {
            self.offer(missed, rest.offered_from, from + done / size, source);
        }
        let is_whole = done == (to - from) * size;
        Ok(if is_whole { self.len() } else { from * size + done })
    }

    /// Offers these blocks, and has the page cache give up those that were admitted.
    fn offer(&self, missed: &Missed, from: usize, to: usize, source: &mut impl Source) {
        let mut admitted = from;
        for i in from..to {
            let token = missed.tokens[i].as_ref();
            let offered = token.map(|token| self.cache.offer(self.who, token, source.block(i)));
            // One that is on its way to a disk is quicker had from the page cache.
            if offered == Some(Offered::Admitted) {
                continue;
            }
            if admitted < i {
                source.give_up(admitted, i);
            }
            admitted = i + 1;
        }
        if admitted < to {
            source.give_up(admitted, to);
        }
    }

    /// All from block `from` on, by the kernel alone: what came before is there already.
    pub fn by_the_kernel(&self, from: usize, source: &mut impl Source) -> usize {
        from * self.size() + source.kernel(from, self.run.count, How::Wait).unwrap_or(0)
    }

    fn wait<S: Source>(&self, from: usize, to: usize, source: &mut S) -> Result<usize, S::Error> {
        let start = ticks();
        let done = source.kernel(from, to, How::Wait)?;
        self.record(source, Event::FileRead, start, 1);
        Ok(done)
    }

    /// Records so many waits that took the time since `start` together.
    #[inline]
    fn record(&self, source: &impl Source, event: Event, start: u64, count: usize) {
        let ns = source.ns(ticks().wrapping_sub(start)) / count.max(1) as u64;
        source.record(event, Class::from_word(self.cache.class(self.file)), ns, count);
        if is_counted(start) {
            let (hits, misses) = if event == Event::CacheRead { (count, 0) } else { (0, count) };
            self.cache.count_read(self.file, hits as u64, misses as u64);
        }
    }
}

/// The blocks of a read that were not in the zone.
pub struct Missed {
    first: usize,
    end: usize,
    tokens: [Option<Token>; BLOCKS_MAX],
}

impl Missed {
    /// None.
    pub const NOTHING: Self = Self { first: 0, end: 0, tokens: [const { None }; BLOCKS_MAX] };

    /// All of them are to be read from the disk: nothing was looked for in memory.
    pub fn rest(&self) -> Rest {
        Rest { from: self.first, offered_from: self.first }
    }

    /// True if nothing is left but to offer.
    pub fn is_there(&self, rest: Rest) -> bool {
        rest.from == self.end
    }

    #[inline]
    fn add(&mut self, i: usize, token: Option<Token>) {
        if self.end == 0 {
            self.first = i;
        }
        self.end = i + 1;
        self.tokens[i] = token;
    }

    fn has_tokens(&self) -> bool {
        self.tokens[self.first..self.end].iter().any(Option::is_some)
    }
}
