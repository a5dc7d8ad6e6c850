//! The sockets by which a daemon is found beside its own: a mirrored log is known by two paths.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use seawall_core::pool::Pool;

use crate::place::{Place, make};

/// Whoever knows a mirrored log by another copy than the daemon does finds its socket too.
pub(crate) fn be_found(pool: &Pool, place: &Place) {
    at_other_places(pool, place, |socket| {
        let _ = std::fs::remove_file(&socket);
        // Without it the daemon is found by its own path.
        let _ = std::os::unix::fs::symlink(&place.socket, &socket);
    });
}

/// Undoes [`be_found`].
pub(crate) fn be_lost(pool: &Pool, place: &Place) {
    at_other_places(pool, place, |socket| drop(std::fs::remove_file(socket)));
}

fn at_other_places(pool: &Pool, place: &Place, each: impl Fn(PathBuf)) {
    let paths = pool.mirror.as_ref().map(|mirror| mirror.paths());
    // The place of another user's is not ours to make.
    let is_ours = |path: &PathBuf| {
        std::fs::metadata(path).is_ok_and(|meta| meta.uid() == rustix::process::geteuid().as_raw())
    };
    let ours = paths.into_iter().flatten().filter(is_ours);
    let sockets = ours.filter_map(|path| Some(make(&path).ok()?.socket));
    sockets.filter(|socket| *socket != place.socket).for_each(each);
}
