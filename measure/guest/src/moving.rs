//! A guest that QEMU moves: its memory on the other side has what it was when that began, what the guest has written since, and the
//! pages that the backend has marked. What the backend wrote and did not mark is lost there.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use vhost::VhostBackend;
use vhost::VhostUserDirtyLogRegion;
use vm_memory::{Bytes, GuestAddress};

use crate::front::{Guest, memory_of};
use crate::ring::{BYTES, Ring};
use crate::trouble::{Trouble, other};

/// VHOST_F_LOG_ALL.
pub const LOG_ALL: u64 = 1 << 26;
/// Bytes of memory for which there is one bit.
const PAGE: u64 = 4096;

/// A move that has begun.
pub struct Move {
    bits: File,
    /// The memory, when it began.
    before: Vec<u8>,
}

impl Guest {
    /// Has the backend mark what it writes from now on, and copies what there is.
    ///
    /// # Errors
    /// The backend cannot, or is gone.
    pub fn begin_to_move(&mut self) -> Result<Move, Trouble> {
        let bytes = self.memory_bytes().div_ceil(8 * PAGE).next_multiple_of(PAGE);
        let bits = File::from(memfd_create("dirty", MemfdFlags::CLOEXEC).map_err(other)?);
        ftruncate(&bits, bytes).map_err(other)?;
        let region =
            VhostUserDirtyLogRegion { mmap_size: bytes, mmap_offset: 0, mmap_handle: bits.as_raw_fd() };
        let features = self.features() | LOG_ALL;
        let front = self.connected()?;
        front.set_log_base(0, Some(region)).map_err(other)?;
        front.set_features(features).map_err(other)?;
        Ok(Move { bits, before: self.content()? })
    }

    /// Stops, and goes on with other memory and the backend at this socket.
    ///
    /// # Errors
    /// A backend is gone, or refuses.
    pub fn arrive(self, Move { bits, before }: Move, socket: &Path) -> Result<Self, Trouble> {
        let (rings, unwanted) = self.stop()?;
        let memory = memory_of(before.len() as u64)?;
        memory.write_slice(&before, GuestAddress(0)).map_err(other)?;
        let mut marked = vec![0; before.len().div_ceil(8 * PAGE as usize)];
        bits.read_exact_at(&mut marked, 0)?;
        let is_marked = |at: u64| marked[(at / PAGE / 8) as usize] >> (at / PAGE % 8) & 1 == 1;
        let mut page = [0; PAGE as usize];
        for ring in &rings {
            for at in (ring.begin()..ring.begin() + BYTES).step_by(PAGE as usize) {
                if is_marked(at) || ring.writes(at) {
                    ring.memory().read_slice(&mut page, GuestAddress(at)).map_err(other)?;
                    memory.write_slice(&page, GuestAddress(at)).map_err(other)?;
                }
            }
        }
        let rings: Vec<Ring> = rings.into_iter().map(|ring| ring.over(memory.clone())).collect();
        Self::go_on(socket, memory, rings, unwanted)
    }
}
