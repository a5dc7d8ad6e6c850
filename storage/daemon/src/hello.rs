//! What a front gets when it says Hello.

use std::os::fd::BorrowedFd;

use seawall_media::Medium;
use seawall_wire::message::{Reply, Status};

use crate::cache::Zone;
use crate::lend;
use crate::state::Daemon;

/// What every front is answered to Hello.
pub(crate) fn lent(daemon: &Daemon) -> (Reply, Vec<BorrowedFd<'_>>) {
    let mut reply = Reply::new(Status::Ok);
    reply.pool_len = daemon.pool.region.len() as u64;
    reply.shm_len = daemon.lent.memory_len();
    reply.sync_map = u32::from(daemon.pool.medium == Medium::Pmem);
    let (given, journal) = lend::journal(&daemon.engine);
    reply.given = given;
    let mut descriptors = daemon.lent.descriptors().to_vec();
    descriptors.extend(journal);
    if let Some((zone, len)) = daemon.cache.as_ref().map(Zone::lend) {
        reply.cache_len = len;
        descriptors.push(zone);
    }
    (reply, descriptors)
}
