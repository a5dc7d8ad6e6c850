//! A small ext4 of our own on a loop device, where we may mount one.

use super::bounded;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// How long mkfs, mount and their like may take.
const LIMIT: Duration = Duration::from_secs(60);

/// A mounted file system; unmounted when dropped.
pub struct Disk {
    image: PathBuf,
    mount: PathBuf,
}

impl Disk {
    /// Makes and mounts one of `megabytes`; `None`, with the reason printed, where that is not allowed.
    pub fn new(directory: &Path, megabytes: u64) -> Option<Disk> {
        // SAFETY: plain call.
        if unsafe { libc::geteuid() } != 0 {
            eprintln!("skipped: mounting a file system of our own needs root");
            return None;
        }
        let disk = Disk { image: directory.join("disk.image"), mount: directory.join("mount") };
        std::fs::create_dir_all(&disk.mount).expect("the work directory is ours");
        let file = std::fs::File::create(&disk.image).expect("the work directory is ours");
        file.set_len(megabytes << 20).expect("a sparse image");
        let made = bounded::run(Command::new("mkfs.ext4").arg("-q").arg(&disk.image), "mkfs.ext4", LIMIT);
        if !made.status.success() || !disk.attach() {
            eprintln!("skipped: no small ext4 here: {}", made.output());
            return None;
        }
        Some(disk)
    }

    /// Where it is mounted.
    pub fn path(&self) -> &Path {
        &self.mount
    }

    fn attach(&self) -> bool {
        // commit=600: nothing reaches the image by itself while a test runs, only by a sync.
        let mut command = Command::new("mount");
        command.args(["-o", "loop,commit=600"]).arg(&self.image).arg(&self.mount);
        bounded::run(&mut command, "mount", LIMIT).status.success()
    }

    /// The kernel lets go of the files of an io_uring a while after its process has ended.
    fn detach(&self) {
        let deadline = Instant::now() + LIMIT;
        loop {
            let done = bounded::run(Command::new("umount").arg(&self.mount), "umount", LIMIT);
            if done.status.success() || Instant::now() > deadline || !done.stderr.contains("busy") {
                done.expect_success("umount");
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// A copy of what the disk holds at this moment: what a power cut would leave.
    pub fn snapshot(&self) -> PathBuf {
        let copy = self.image.with_extension("cut");
        bounded::run(Command::new("cp").arg("--sparse=always").arg(&self.image).arg(&copy), "cp", LIMIT)
            .expect_success("copying the image");
        copy
    }

    /// Puts the snapshot in the disk's place: the machine after the power cut.
    pub fn restore(&self, snapshot: &Path) {
        self.detach();
        std::fs::rename(snapshot, &self.image).expect("the work directory is ours");
        assert!(self.attach(), "the file system does not mount after the power cut");
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = bounded::run(Command::new("umount").arg("-l").arg(&self.mount), "umount", LIMIT);
    }
}
