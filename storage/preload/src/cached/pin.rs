//! Files that are written at times that nobody sees: their cells are pinned, so that the cache does not serve them.

use core::ffi::c_int;

use seawall_cache::front::change as front;
use seawall_cache::front::word::mark;
use seawall_cache::shared::Cache;

use super::table;
use super::zone::{Known, known};
use crate::sys;

/// From now on the file behind `fd` is written at times that nobody sees, if it can be written at all.
pub fn pin(cache: &Cache, fd: c_int) {
    let word = table::known(cache, fd);
    if word.is_other() || word.has(mark::PINNED) || !word.has(mark::WRITES) {
        return;
    }
    let Ok(stat) = sys::fstat(fd) else { return };
    front::pin(cache, (stat.dev, stat.ino));
    table::set(fd, word.with(mark::PINNED));
}

/// The same for whatever is open.
pub fn pin_open() {
    if let Known::Yes(cache) = known() {
        sys::each_open(|fd| pin(cache, fd));
    }
}
