//! Persist: what was appended becomes durable.
//!
//! | medium | what is done before the publish | when the record is durable |
//! |---|---|---|
//! | persistent memory | a fence | before the publish |
//! | a log on a block device, most records | a fence, which makes nothing durable: it orders what the next leader reads | after a sync of the file |
//! | the same, truncates and records of policy `atomic` | the leader's device write | before the publish |

use seawall_media::fence;
use seawall_stats::ticks;

use crate::append::Log;
use crate::file::{Flag, Slot, State};
use crate::format::RecordKind;
use crate::journal::Unhardened;

/// True if a record is durable before its publish.
///
/// On a block device a record is durable after a sync, with two exceptions. A page that must be whole after a power cut
/// must not be dirty in the page cache before its record is safe. And a file system may make a new size durable on its
/// own, and older records would then be replayed over it.
#[inline]
pub(crate) fn is_first(log: &Log, slot: Slot<'_>, kind: RecordKind) -> bool {
    log.pool.journal().is_none() || kind == RecordKind::Truncate || slot.state().has(Flag::ATOMIC)
}

/// True for a file each of whose records was durable before its publish: a sync of it has nothing to wait for. The
/// journal itself would learn that only from the next capture, which would be useless here, and behind the device write
/// under way.
///
/// Not for a file whose name is only in its directory's log: how it began is in a record as well. Nor for a directory,
/// whose records are names.
#[inline]
pub(crate) fn was_first(state: State) -> bool {
    state.has(Flag::ATOMIC) && !state.has(Flag::UNBORN | Flag::DIRECTORY)
}

/// The result of persisting a record.
pub(crate) struct Persisted {
    /// When it was done, in ticks.
    pub at: u64,
    /// How many ticks of that time this thread waited for the medium.
    pub spent: u64,
}

/// Waits for the records that this thread appended since `start`, up to `lsn`.
///
/// # Errors
/// [`Unhardened`]: the record is whole, and a recovery may find it or not.
#[inline]
pub(crate) fn records(
    log: &Log,
    slot: Slot<'_>,
    kind: RecordKind,
    (start, lsn): (u64, u64),
) -> Result<Persisted, Unhardened> {
    fence();
    let spent = match log.pool.journal() {
        None => {
            let at = ticks();
            return Ok(Persisted { at, spent: at.wrapping_sub(start) });
        }
        Some(journal) if is_first(log, slot, kind) => journal.harden(log, lsn)?.unwrap_or(0),
        Some(_) => 0,
    };
    Ok(Persisted { at: ticks(), spent })
}
