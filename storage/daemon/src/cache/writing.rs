//! Blocks that were offered are brought to the cache's disk, one after the other, as long as the day's budget has room.

use std::sync::Arc;

use seawall_media::locks::lock;

use super::aligned::Aligned;
use super::disk::Disk;
use super::owner::me;
use super::zone::Zone;
use crate::state::Daemon;

/// How long it waits at most before it looks whether the daemon ends.
const WAIT_MS: u32 = 200;

/// Runs until the daemon ends.
pub(crate) fn run(daemon: &Arc<Daemon>) {
    let Some(zone) = &daemon.cache else { return };
    let Some(disk) = &zone.disk else { return };
    let mut memory = Aligned::new(zone.cache.layout().block_bytes as usize);
    while !daemon.lifetime.is_ending() {
        if bring_all(daemon, zone, disk, &mut memory) == 0 {
            disk.may_write(&zone.cache);
            zone.cache.wait_for_staged(WAIT_MS);
        }
    }
}

/// Brings what is ready; how many blocks that were.
fn bring_all(daemon: &Daemon, zone: &Zone, disk: &Disk, memory: &mut Aligned) -> usize {
    let (cache, owner) = (&zone.cache, me(&daemon.engine, daemon.slot));
    let (mut from, mut count) = (0, 0);
    while let Some((staged, behind)) = cache.next_staged(from) {
        let _complete = lock(&zone.bringing);
        if disk.may_write(cache) {
            cache.bring(owner, &staged, memory, |at, block| disk.write(cache, &daemon.log, at, block));
        } else {
            cache.drop_staged(&staged);
        }
        (from, count) = (behind, count + 1);
    }
    count
}
