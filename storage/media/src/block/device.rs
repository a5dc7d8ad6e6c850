//! Durable writes to a device or a preallocated file.

use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::io::{Errno, IoSlice, ReadWriteFlags, pwritev2};

use crate::{Region, sim};

/// Where a journal lies: an open descriptor, with O_DIRECT where the file system has it.
pub struct Device {
    fd: OwnedFd,
}

impl Device {
    /// Takes a descriptor that was opened for writing.
    pub fn new(fd: OwnedFd) -> Self {
        Self { fd }
    }

    /// Writes `len` bytes of memory to `position`. On the device when this returns success, as far as it
    /// honours its flush: one system call, which the kernel makes one FUA write where the device has that, and a
    /// write and a flush where it has not. All three numbers are multiples of the device's block.
    ///
    /// # Errors
    /// What the kernel said. What is on the device at that place is unknown then, and no later success makes it
    /// known: the caller must not write again as if nothing was.
    pub fn write(
        fd: BorrowedFd<'_>,
        memory: &Region,
        at: usize,
        len: usize,
        position: u64,
    ) -> Result<(), Errno> {
        // SAFETY: the caller has this stretch to itself (see `Draft`): nothing stores to it meanwhile.
        let mut rest = unsafe { memory.bytes(at, len) };
        if let Some(simulated) = sim::writes_block(fd.as_raw_fd(), position, rest) {
            return simulated.map_err(Errno::from_raw_os_error);
        }
        let mut position = position;
        while !rest.is_empty() {
            match pwritev2(fd, &[IoSlice::new(rest)], position, ReadWriteFlags::DSYNC) {
                Ok(0) => return Err(Errno::IO),
                Ok(n) => {
                    rest = &rest[n..];
                    position += n as u64;
                }
                Err(Errno::INTR) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

impl AsFd for Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
