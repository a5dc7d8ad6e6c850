//! The place where the writers of a pool's journal meet.

use seawall_core::pool::Pool;
use seawall_wire::desk::Desk;

/// The desk, if the pool has a journal.
pub(crate) fn of(pool: &Pool) -> Option<Desk<'_>> {
    let image = &pool.region;
    image.journal().map(|journal| journal.desk(image))
}
