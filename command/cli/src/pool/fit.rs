//! How large a pool is that is made on demand without a size: the usual size, or what there is room for.
//!
//! A container's memory file system has 64 MB if nobody asked for more. A quarter of what is free is left to others:
//! databases put their own shared memory there.

use std::path::{Path, PathBuf};

use seawall_core::format::Layout;
use seawall_core::pool::block::{Sizes, memory_for};
use seawall_core::{pool, takeover};

use crate::size;

/// Where something lies, and how much of it.
type Need = (PathBuf, u64);

/// The usual size, or what a database of so many files needs to have all of them managed: a quarter more than there are,
/// as far as a table can have them.
pub fn with_room_for(files: usize, usual: u64) -> u64 {
    const LARGEST_TABLE: u64 = 1 << 30;
    let wanted = files + files / 4;
    let mut size = usual;
    while size < LARGEST_TABLE
        && Layout::for_size(size).is_some_and(|layout| (layout.files as usize) < wanted)
    {
        size *= 2;
    }
    size
}

/// The size of a log on a block device at this path.
pub fn block(at: &Path, usual: u64) -> u64 {
    largest(usual, |size| {
        let memory = memory_for(size)? + takeover::bytes_for(size)?;
        Some(vec![(pool::MEMORY.into(), memory), (directory(at), Sizes::of(size).journal)])
    })
}

/// The size of a pool at this path.
pub fn whole(at: &Path, usual: u64) -> u64 {
    largest(usual, |size| {
        Some(vec![(pool::MEMORY.into(), takeover::bytes_for(size)?), (directory(at), size)])
    })
}

/// The usual size, halved until everything fits. If nothing ever does, making the pool fails, with the reason.
fn largest(usual: u64, needs: impl Fn(u64) -> Option<Vec<Need>>) -> u64 {
    let mut short: Option<(PathBuf, u64)> = None;
    let mut size = usual;
    while size >= Layout::MIN_SIZE {
        match needs(size).and_then(|needs| too_much(&needs)) {
            None => {
                if let Some((place, free)) = short {
                    say(&place, free, size);
                }
                return size;
            }
            found => short = found,
        }
        size /= 2;
    }
    usual
}

/// Where there is too little room, and how much.
fn too_much(needs: &[Need]) -> Option<(PathBuf, u64)> {
    let of = |place: &Path| std::fs::metadata(place).map(|m| std::os::unix::fs::MetadataExt::dev(&m)).ok();
    needs.iter().find_map(|(place, _)| {
        let same = needs.iter().filter(|(other, _)| of(other) == of(place));
        let wanted: u64 = same.map(|(_, bytes)| bytes).sum();
        let free = free(place)?;
        (wanted > free / 4 * 3).then(|| (place.clone(), free))
    })
}

fn free(place: &Path) -> Option<u64> {
    let fs = rustix::fs::statvfs(place).ok()?;
    Some(fs.f_bavail.saturating_mul(fs.f_frsize))
}

fn directory(at: &Path) -> PathBuf {
    at.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

fn say(place: &Path, free: u64, size: u64) {
    let more =
        if place == Path::new(pool::MEMORY) { " (in a container --shm-size gives it more)" } else { "" };
    errln!(
        "seawall: making a log of {}, as {} has only {} free{more}; --size sets another size",
        size::human(size),
        place.display(),
        size::human(free)
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_has_room_for_the_databases_files() {
        for (files, size) in [(0, 128), (400, 128), (500, 256), (1600, 512), (3000, 1024), (100_000, 1024)] {
            assert_eq!(with_room_for(files, 128 << 20), size << 20, "{files}");
        }
    }

    #[test]
    fn the_usual_size_is_halved_until_it_fits() {
        let of = |bytes: fn(u64) -> u64| largest(256 << 20, |size| Some(vec![("/".into(), bytes(size))]));
        assert_eq!(of(|_| 0), 256 << 20);
        assert_eq!(of(|size| if size > 64 << 20 { u64::MAX } else { 0 }), 64 << 20);
        assert_eq!(of(|_| u64::MAX), 256 << 20, "whoever makes it says why it cannot be");
    }
}
