//! Another size while processes go on.

use seawall_cache::advisory::Advisory;
use seawall_media::locks::lock;
use serde::{Deserialize, Serialize};

use super::applying::{apply, zone};
use super::bytes::Bytes;
use super::room::{Room, least_of, ways_of};
use crate::state::Daemon;

/// Another size.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Resize {
    /// Bytes.
    pub size: u64,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Resized {
    /// Bytes before.
    pub before: u64,
    /// Bytes now: what was asked for, rounded down to a sixteenth of what it can have, and the index.
    pub size: u64,
    /// Places for blocks now.
    pub blocks: u64,
    /// Blocks that are there.
    pub blocks_used: u64,
}

/// Gives the cache of this daemon another size.
pub(crate) fn resize(daemon: &Daemon, wanted: Resize) -> Result<Resized, String> {
    let zone = zone(daemon)?;
    if wanted.size > zone.most {
        return Err(format!(
            "this cache can have {} at most: --cache-max sets the size to which it can grow, when its daemon \
             is started",
            Bytes(zone.most)
        ));
    }
    let few = || format!("this cache cannot have less than {}", Bytes(least_of(zone.most)));
    let ways = ways_of(wanted.size, zone.most).ok_or_else(few)?;
    // It is not closed meanwhile, and nothing is brought.
    let _alone = lock(&zone.bringing);
    let before = zone.size();
    let room = Room { file: zone.room(), path: &zone.path, medium: zone.medium, most: zone.most };
    room.resize(&zone.cache, ways).map_err(|e| e.to_string())?;
    zone.policies.forget_arrangement();
    apply(zone);
    *lock(&zone.advisory) = Advisory::new(zone.cache.blocks());
    daemon.log.say(format!("the block cache now has {} bytes; it had {before}", zone.size()));
    let (blocks, blocks_used) = (zone.cache.blocks(), zone.cache.filled());
    Ok(Resized { before, size: zone.size(), blocks, blocks_used })
}
