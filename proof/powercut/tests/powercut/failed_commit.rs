//! ext4 tells the failure of a commit of its journal to one sync only. The next one, of another file whose size went
//! down with the same commit, succeeds: records must not be retired on that.

use std::fs::File;
use std::io::Write as _;
use std::os::fd::AsFd;
use std::path::Path;

use crate::common::{Mounted, Scene};
use rustix::fs::{FallocateFlags, fallocate, fdatasync};
use seawall_core::certain;
use seawall_faulty_disk::Request;

/// A file on disk.
fn file(path: &Path) -> File {
    let mut file = File::create(path).expect("a file");
    file.write_all(b"there").and_then(|()| file.sync_all()).expect("a file on disk");
    file
}

/// Makes it longer than it is on disk.
fn grow(file: &File) {
    fallocate(file, FallocateFlags::empty(), 0, 40_000).expect("a longer file");
}

// Holds: R27
#[test]
fn a_sync_after_a_commit_that_failed_retires_nothing() {
    let Some(scene) = Scene::new("A FAILED COMMIT") else { return };
    let mounted = Mounted::new(&scene);
    let Scene { disk, at, .. } = &scene;
    let (one, other) = (file(&at.join("one")), file(&at.join("other")));
    grow(&one);
    grow(&other);
    disk.fail(Request::Flush, u64::MAX);
    fdatasync(&one).expect_err("the disk refuses to flush");
    disk.heal();
    let _ = writeln!(std::io::stderr(), "the kernel about the other file: {:?}", fdatasync(&other));
    certain::fdatasync(other.as_fd()).expect_err("its size went down with the same commit");
    drop((one, other));
    drop(mounted);
}
