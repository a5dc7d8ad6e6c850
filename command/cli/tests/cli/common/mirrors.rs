//! A log on two devices, and a device that fails.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Place, Said};

/// A place whose pool is a log of 16 MiB on a disk, with a second copy.
pub fn mirrored() -> (Place, PathBuf) {
    let mut place = Place::bare();
    let second = make(&mut place);
    (place, second)
}

/// The same in a place that there is. Returns where the second copy is.
pub fn make(place: &mut Place) -> PathBuf {
    place.pool = place.data.path().join("seawall.log");
    let second = place.data.path().join("second.log");
    place.seawall(&["init", "--block", place.pool(), "--size", "16M", "--mirror", text(&second)]).succeeds();
    second
}

pub fn text(path: &Path) -> &str {
    path.to_str().expect("a name")
}

/// From where batches begin to where the label lies.
pub fn ring(path: &Path) -> Vec<u8> {
    let all = fs::read(path).expect("a copy");
    all[8192..all.len() - 4096].to_vec()
}

/// As after a power cut: memory is lost, and the file is as old as its first sync.
pub fn lose_memory(place: &Place, file: &str) {
    place.in_memory().iter().for_each(|path| fs::remove_file(path).expect("removed"));
    let file = File::options().write(true).open(place.file(file)).expect("the file");
    let len = file.metadata().expect("a size").len() as usize;
    file.write_all_at(&vec![0; len.saturating_sub(4096)], 4096).expect("rolled back");
}

/// A file that takes no writes, not even through what is open: a disk that fails. Dropped, it is well again.
pub struct Failing<'a>(&'a Path);

impl<'a> Failing<'a> {
    /// `None`: that cannot be had here.
    pub fn new(path: &'a Path) -> Option<Self> {
        let open = File::options().write(true).open(path).expect("a copy");
        let failing = Command::new("chattr").arg("+i").arg(path).status().is_ok_and(|s| s.success());
        let failing = failing.then_some(Self(path))?;
        let len = open.metadata().expect("a size").len();
        open.write_all_at(&[0], len - 1).is_err().then_some(failing)
    }
}

impl Drop for Failing<'_> {
    fn drop(&mut self) {
        assert!(Command::new("chattr").arg("-i").arg(self.0).status().expect("chattr").success());
    }
}

pub fn recover(place: &Place, pool: &Path) -> Said {
    place.seawall(&["recover", "--replay", "--pool", text(pool)])
}
