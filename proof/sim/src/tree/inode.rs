//! A file of the simulated file system.

use seawall_core::format::Handle;

use crate::Disk;

/// A file: its number may be used again when nobody has it any more, its generation is not.
#[derive(Clone)]
pub struct Inode {
    /// st_ino.
    pub number: u32,
    /// What tells it from an earlier file with this number.
    pub generation: u32,
    /// Its lower twelve bits of st_mode.
    pub mode: u32,
    /// Its bytes.
    pub disk: Disk,
    /// A recovery made it in place of this file.
    pub mark: Option<Handle>,
    /// The same as a power cut leaves it.
    pub durable_mark: Option<Handle>,
    /// The last file that it was marked as, for the checker: the mark itself is removed when a log is closed.
    pub stood_for: Option<Handle>,
    /// The same as a power cut leaves it.
    pub durable_stood_for: Option<Handle>,
    /// It is a symbolic link that says this.
    pub target: Option<Vec<u8>>,
    /// It is this directory.
    pub folder: Option<usize>,
    /// Descriptors of it.
    pub opens: u32,
    /// Nobody reaches it any more, but the disk may bring it back: its number is free.
    pub is_free: bool,
}

impl Inode {
    /// An empty file.
    pub fn new(number: u32, generation: u32, mode: u32, disk: Disk) -> Self {
        Self {
            number,
            generation,
            mode,
            disk,
            mark: None,
            durable_mark: None,
            stood_for: None,
            durable_stood_for: None,
            target: None,
            folder: None,
            opens: 0,
            is_free: false,
        }
    }

    /// Its identity.
    ///
    /// # Panics
    /// Never: eight bytes fit.
    pub fn handle(&self) -> Handle {
        let bytes = [self.number.to_le_bytes(), self.generation.to_le_bytes()].concat();
        Handle::new(1, &bytes).expect("short")
    }

    /// What everybody reads.
    pub fn content(&self) -> &[u8] {
        self.disk.cache()
    }
}
