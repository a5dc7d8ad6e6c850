//! The kernel's ways to be fast, as far as this kernel, this user and the library have them.
//!
//! | way | needs | without it |
//! |---|---|---|
//! | passthrough: a file that no preset wants is read and written past us | root, Linux 6.9 | it goes through us |
//! | long readahead: fewer requests for a file that is read from end to end | root | 128 KiB at a time |
//! | several threads, each with a queue of its own | Linux 4.5 | – |
//! | requests by an io_uring for each processor (`crate::uring`) | `enable_uring` of the module fuse, Linux 6.14 | a read and a write for each |
//!
//! Never used: the write-back cache. A write(2) that has returned would be neither logged nor published, and the log
//! would not hold the order of writes any more.

use std::fmt;
use std::path::Path;

use seawall_media::mounts;

/// Readahead that we ask for. As much as the longest request.
const READAHEAD_KIB: u32 = 1024;
/// Linux's own.
const USUAL_KIB: u32 = 128;

/// What is in use.
#[derive(Clone, Debug)]
pub struct Ways {
    /// Unmanaged files go past us.
    pub passthrough: bool,
    /// Of the kernel's cache of the mount, in KiB.
    pub readahead: u32,
    /// That read requests.
    pub threads: usize,
    /// How many io_urings requests come by, or why they come by /dev/fuse.
    pub urings: Result<usize, String>,
}

impl fmt::Display for Ways {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let passthrough = match self.passthrough {
            true => "files that no preset manages bypass the mount's process",
            false => "every file goes through the mount's process (bypassing it needs root and Linux 6.9)",
        };
        write!(f, "{passthrough}; readahead {} KiB; ", self.readahead)?;
        match &self.urings {
            Ok(urings) => write!(f, "requests by io_uring, {urings} queues"),
            Err(why) => write!(f, "requests by /dev/fuse, {} threads ({why})", self.threads),
        }
    }
}

/// Asks for a longer readahead of what is mounted at `place`. Returns what there is now, in KiB.
pub fn read_ahead(place: &Path) -> u32 {
    let list = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let Some(device) = device(&list, place) else { return USUAL_KIB };
    let setting = format!("/sys/class/bdi/{device}/read_ahead_kb");
    match std::fs::write(setting, READAHEAD_KIB.to_string()) {
        Ok(()) => READAHEAD_KIB,
        Err(_) => USUAL_KIB,
    }
}

/// Device numbers of what is mounted at exactly this path. stat(2) would ask ourselves.
fn device(list: &[u8], place: &Path) -> Option<String> {
    let mut found = mounts::parse(list).filter(|mount| mount.point == place);
    found.next_back().map(|mount| format!("{}:{}", mount.dev.0, mount.dev.1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_mount_at_a_path_is_meant() {
        let list = b"1 0 0:5 / /a rw - ext4 x rw\n2 0 0:61 / /m\\040p rw shared:1 - fuse.seawall /b rw\n\
                     3 0 0:62 / /m\\040p rw - fuse.seawall /b rw\n";
        assert_eq!(device(list, Path::new("/m p")).as_deref(), Some("0:62"));
        assert_eq!(device(list, Path::new("/m")), None);
    }
}
