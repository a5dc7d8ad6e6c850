//! Open files and directories, by the numbers that the kernel gives back to us.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, RwLock};

use fuser::FileHandle;
use seawall_cache::front::sequential::Stream;
use seawall_core::Errno;
use seawall_media::locks;

use crate::node::Node;

/// An open file or directory.
pub struct Handle {
    /// What it is of.
    pub node: Arc<Node>,
    /// The backing file's descriptor. Never with O_APPEND: the kernel tells us where to write.
    pub fd: OwnedFd,
    /// Opened for writing.
    pub writable: bool,
    /// The kernel reads and writes by it past its cache.
    pub direct: bool,
    /// One reader of a directory at a time: it has one position.
    pub reading: Mutex<()>,
    /// Where its reads are, for the block cache.
    pub stream: Stream,
}

#[derive(Default)]
struct Table {
    rows: Vec<Option<Arc<Handle>>>,
    free: Vec<usize>,
}

/// All of them.
#[derive(Default)]
pub struct Handles(RwLock<Table>);

impl Handles {
    /// Keeps one, under a number.
    pub fn add(&self, handle: Handle) -> FileHandle {
        let mut table = locks::write(&self.0);
        let handle = Some(Arc::new(handle));
        let row = match table.free.pop() {
            Some(row) => {
                table.rows[row] = handle;
                row
            }
            None => {
                table.rows.push(handle);
                table.rows.len() - 1
            }
        };
        FileHandle(row as u64)
    }

    /// The one with this number.
    ///
    /// # Errors
    /// EBADF for a number that was not given.
    #[inline]
    pub fn get(&self, number: FileHandle) -> Result<Arc<Handle>, Errno> {
        let table = locks::read(&self.0);
        table.rows.get(number.0 as usize).and_then(Clone::clone).ok_or(Errno::BADF)
    }

    /// Lets one go.
    pub fn remove(&self, number: FileHandle) -> Option<Arc<Handle>> {
        let mut table = locks::write(&self.0);
        let row = number.0 as usize;
        let handle = table.rows.get_mut(row)?.take()?;
        table.free.push(row);
        Some(handle)
    }
}
