//! What no file says, so that the kernel must be asked about one path: its mount, and whether it is accessed directly.
//!
//! Behind a trait, because a recorded machine has recorded answers.

use std::fs::File;
use std::io;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
use seawall_media::{Medium, probe};

/// What the kernel said of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The mount it is on, as /proc/self/mountinfo numbers them.
    pub mount: Option<u64>,
    /// The file system accesses it directly (STATX_ATTR_DAX); `None` if this kernel or file system does not say.
    pub dax: Option<bool>,
}

/// The questions.
pub trait Kernel {
    /// Asks about a path, as the host that runs us names it.
    ///
    /// # Errors
    /// It cannot be asked.
    fn about(&self, path: &Path) -> io::Result<Answer>;

    /// Asks whether a mapping of this file may have `MAP_SYNC`. The file has at least a page.
    ///
    /// # Errors
    /// It cannot be opened or mapped, so nobody knows.
    fn grants_map_sync(&self, file: &Path) -> io::Result<bool>;
}

/// The kernel we run on.
#[derive(Clone, Copy, Debug, Default)]
pub struct Running;

impl Kernel for Running {
    fn about(&self, path: &Path) -> io::Result<Answer> {
        let found = statx(CWD, path, AtFlags::empty(), StatxFlags::MNT_ID | StatxFlags::BASIC_STATS)?;
        let says_mount = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::MNT_ID);
        let says_dax = found.stx_attributes_mask.contains(StatxAttributes::DAX);
        Ok(Answer {
            mount: says_mount.then_some(found.stx_mnt_id),
            dax: says_dax.then(|| found.stx_attributes.contains(StatxAttributes::DAX)),
        })
    }

    fn grants_map_sync(&self, file: &Path) -> io::Result<bool> {
        let probed = probe(&File::open(file)?).map_err(io::Error::other)?;
        Ok(probed.medium == Medium::Pmem)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ordinary_file_is_on_a_mount_and_gets_no_map_sync() {
        let file = tempfile::NamedTempFile::new_in("/var/tmp").expect("a file");
        file.as_file().set_len(4096).expect("room");
        let answer = Running.about(file.path()).expect("an answer");
        assert!(answer.mount.is_some() && answer.dax != Some(true), "{answer:?}");
        assert!(!Running.grants_map_sync(file.path()).expect("an answer"));
        Running.about(Path::new("/nowhere")).expect_err("not there");
    }
}
