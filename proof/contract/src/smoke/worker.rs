//! One thread at work on its own bytes.

use super::plan::{LARGEST, Operation, Step, Way};
use super::progress::Progress;
use crate::context::open_quietly;
use crate::{process, trace};
use std::ffi::{CString, c_int};

/// Where a worker's bytes are.
#[derive(Clone)]
pub struct Place {
    pub path: CString,
    pub base: u64,
    pub own_file: bool,
}

/// A worker in one of its lives.
pub struct Worker {
    pub place: Place,
    pub first: Step,
    pub progress: &'static Progress,
    pub stop: &'static Progress,
}

struct Hands {
    fd: c_int,
    append: c_int,
    buffer: Vec<u8>,
}

impl Worker {
    /// Works until told to stop; an error says which step failed and how.
    pub fn work(&self) -> Result<(), String> {
        let mut hands = Hands { fd: -1, append: -1, buffer: vec![0; LARGEST] };
        self.reopen(&mut hands);
        let mut step = self.first;
        while !self.stop.raised() {
            let operation = step.operation(self.place.own_file);
            self.progress.begin(step.index);
            self.perform(&mut hands, step, operation).map_err(|how| {
                format!("worker {} life {} step {}: {operation:?}: {how}", step.worker, step.life, step.index)
            })?;
            self.progress.finish(step.index);
            step.index += 1;
        }
        Ok(())
    }

    /// An error says how it failed.
    fn perform(&self, hands: &mut Hands, step: Step, operation: Operation) -> Result<(), String> {
        // SAFETY: plain calls on this worker's descriptors and buffer.
        let done = unsafe {
            match operation {
                Operation::Fsync => libc::fsync(hands.fd) == 0,
                Operation::Fdatasync => libc::fdatasync(hands.fd) == 0,
                Operation::Reopen => {
                    self.reopen(hands);
                    hands.fd >= 0
                }
                Operation::Truncate { length } => libc::ftruncate(hands.fd, length as i64) == 0,
                Operation::Append { length } => {
                    let bytes = &mut hands.buffer[..length];
                    step.fill(bytes);
                    libc::write(hands.append, bytes.as_ptr().cast(), length) == length as isize
                }
                Operation::Write { offset, length, way, forked } => {
                    step.fill(&mut hands.buffer[..length]);
                    let offset = self.place.base + offset;
                    if forked {
                        return written_by_child(hands, length, offset, way);
                    }
                    write(hands, length, offset, way)
                }
            }
        };
        if done { Ok(()) } else { Err(trace::errno_name(crate::call::errno())) }
    }

    fn reopen(&self, hands: &mut Hands) {
        // SAFETY: closes this worker's own descriptors; -1 at first, which is harmless.
        unsafe {
            libc::close(hands.fd);
            libc::close(hands.append);
        }
        hands.fd = open_quietly(&self.place.path, libc::O_RDWR);
        hands.append = open_quietly(&self.place.path, libc::O_RDWR | libc::O_APPEND);
    }
}

/// The child says by its exit code what its call failed with.
fn written_by_child(hands: &Hands, length: usize, offset: u64, way: Way) -> Result<(), String> {
    let child = process::fork(|| match write(hands, length, offset, way) {
        true => 0,
        false => crate::call::errno().max(1),
    });
    match process::ending(child).as_str() {
        "exit 0" => Ok(()),
        how => Err(format!("its child {child}: {how}")),
    }
}

/// Also runs in a forked child of a process with threads: no allocation, no lock.
fn write(hands: &Hands, length: usize, offset: u64, way: Way) -> bool {
    let address = hands.buffer.as_ptr();
    let half = length / 2;
    // SAFETY: the buffer is at least `length` long and outlives the calls.
    let written = unsafe {
        match way {
            Way::Pwrite => libc::pwrite(hands.fd, address.cast(), length, offset as i64),
            Way::SeekAndWrite => {
                libc::lseek(hands.fd, offset as i64, libc::SEEK_SET);
                libc::write(hands.fd, address.cast(), length)
            }
            Way::Vectored => {
                let parts = [
                    libc::iovec { iov_base: address.cast_mut().cast(), iov_len: half },
                    libc::iovec { iov_base: address.add(half).cast_mut().cast(), iov_len: length - half },
                ];
                libc::pwritev(hands.fd, parts.as_ptr(), 2, offset as i64)
            }
        }
    };
    written == length as isize
}
