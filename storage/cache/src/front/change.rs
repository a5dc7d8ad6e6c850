//! Whatever may change a file: announced if the file is entered, counted in its cell if it is not.
//!
//! An append needs no word: it stores behind the end of the file, and a block that the end cuts short is in no cache.
//! For the same reason an allocation that changes nothing but the size needs none.

use core::ops::Range;

use super::word::{Is, Word};
use crate::shared::{Cache, CachedFile, Cell, OperationOwner, Version};

/// A file by device and inode.
pub type Inode = (u64, u64);

/// An open file, as its front remembers it.
pub trait Opened {
    /// What is remembered, found out at first use. Never [`Is::Unknown`].
    fn word(&self, cache: &Cache) -> Word;
    /// Remembers another word; with [`Word::UNKNOWN`] the next use finds it out anew.
    fn remember(&self, word: Word);
    /// The file itself; `None` if it is not open any more.
    fn inode(&self) -> Option<Inode>;
    /// The caller; `None` if nobody could tell whether it lives.
    fn who(&self) -> Option<OperationOwner>;
}

/// What a write touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// Bytes.
    Bytes {
        /// The first.
        from: u64,
        /// How many.
        len: u64,
    },
    /// It stores behind the end of the file.
    End,
    /// Any part of the file.
    Any,
}

/// A longer write than this many blocks takes the whole file out: that is quicker.
const BLOCKS_MAX: u64 = 256;

/// Runs a write to an open file.
#[inline]
pub fn write<R>(cache: &Cache, file: &impl Opened, span: impl FnOnce() -> Span, op: impl FnOnce() -> R) -> R {
    match begin(cache, file) {
        Begun::Not => op(),
        Begun::Counted(cell) => {
            let result = op();
            cache.end_unannounced(cell);
            result
        }
        Begun::Entered(entry) => announced(cache, || file.who(), entry, span(), op),
    }
}

/// How a change begins.
enum Begun {
    /// There is nothing to it.
    Not,
    /// It is counted.
    Counted(Cell),
    /// It is to be announced.
    Entered(CachedFile),
}

#[inline]
fn begin(cache: &Cache, file: &impl Opened) -> Begun {
    let mut word = file.word(cache);
    loop {
        match word.is() {
            Is::Other | Is::Unknown => return Begun::Not,
            Is::Entered(entry) if cache.knows(entry) => return Begun::Entered(entry),
            Is::Entered(_) => {
                file.remember(Word::UNKNOWN);
                word = file.word(cache);
            }
            Is::Plain(cell, version) => match cache.begin_unannounced(cell, version) {
                Ok(()) => return Begun::Counted(cell),
                Err(now) => {
                    let Some(next) = look_again(cache, file, word, now) else { return Begun::Not };
                    word = next;
                }
            },
        }
    }
}

/// Files of its cell were entered: is this one of them? `None` if it is not open any more.
#[cold]
fn look_again(cache: &Cache, file: &impl Opened, word: Word, now: Version) -> Option<Word> {
    let (dev, ino) = file.inode()?;
    let word = match cache.find(dev, ino) {
        Some(entry) => word.entered(entry, 0),
        None => word.seen(now),
    };
    file.remember(word);
    Some(word)
}

fn announced<R>(
    cache: &Cache,
    who: impl FnOnce() -> Option<OperationOwner>,
    file: CachedFile,
    span: Span,
    op: impl FnOnce() -> R,
) -> R {
    if matches!(span, Span::End | Span::Bytes { len: 0, .. }) {
        return op();
    }
    let Some(who) = who() else {
        // Nobody could tell whether we died in the middle.
        cache.distrust(file);
        return op();
    };
    match blocks(cache, span) {
        Some(blocks) => {
            let writing = cache.begin_write(who, file, blocks);
            let result = op();
            cache.end_write(writing);
            result
        }
        None => cache.change(who, file, op),
    }
}

/// The blocks of a span; `None` for all, or for too many.
#[inline]
fn blocks(cache: &Cache, span: Span) -> Option<Range<u32>> {
    let Span::Bytes { from, len } = span else { return None };
    let size = u64::from(cache.layout().block_bytes);
    let (first, end) = (from / size, from.checked_add(len)?.div_ceil(size));
    let is_short = end - first <= BLOCKS_MAX;
    Some(u32::try_from(first).ok()?..u32::try_from(end).ok()?).filter(|_| is_short)
}

/// Runs a change of a file that need not be open: truncated, unlinked, renamed over.
pub fn change<R>(
    cache: &Cache,
    (dev, ino): Inode,
    who: impl FnOnce() -> Option<OperationOwner>,
    op: impl FnOnce() -> R,
) -> R {
    let (cell, mut version) = (cache.cell(dev, ino), Version::default());
    loop {
        match cache.begin_unannounced(cell, version) {
            Ok(()) => {
                let result = op();
                cache.end_unannounced(cell);
                return result;
            }
            Err(now) => version = now,
        }
        if let Some(file) = cache.find(dev, ino) {
            return announced(cache, who, file, Span::Any, op);
        }
    }
}

/// The file is written from now on at times that nobody sees: pins its cell, and distrusts it if it is entered. True if
/// that can be [taken back](unpin).
pub fn pin(cache: &Cache, (dev, ino): Inode) -> bool {
    let is_counted = cache.pin(cache.cell(dev, ino));
    cache.find(dev, ino).into_iter().for_each(|file| cache.distrust(file));
    is_counted
}

/// Nobody writes it unseen any more; once for each [`pin`] that said so.
pub fn unpin(cache: &Cache, (dev, ino): Inode) {
    cache.end_unannounced(cache.cell(dev, ino));
}

/// Runs a real sync of an open file.
///
/// # Errors
/// What the sync says.
#[inline]
pub fn sync<E>(cache: &Cache, file: &impl Opened, op: impl FnOnce() -> Result<(), E>) -> Result<(), E> {
    let entry = match begin(cache, file) {
        Begun::Entered(entry) => entry,
        Begun::Not => return op(),
        Begun::Counted(cell) => {
            cache.end_unannounced(cell);
            return op();
        }
    };
    let number = cache.begin_sync(entry);
    let done = op();
    cache.end_sync(entry, number, done.is_ok());
    done
}
