//! The disk that takes its time over each flush.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

use seawall_faulty_disk::Disk;

#[test]
fn a_slowed_disk_takes_its_time_over_a_flush() {
    if !nix::unistd::geteuid().is_root() {
        eprintln!("skipped: only root mounts");
        return;
    }
    let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let disk = Disk::mount(dir.path(), 1 << 20).expect("a disk");
    let file = File::options().read(true).write(true).open(disk.file()).expect("opened");
    let flush = Duration::from_millis(300);
    disk.slow_down(flush);
    let begin = Instant::now();
    file.write_all_at(&[7; 4096], 0).expect("written");
    file.sync_data().expect("flushed");
    assert!(begin.elapsed() >= flush);
    assert_eq!((disk.counts().flushes, disk.pending_bytes()), (1, 0));
}
