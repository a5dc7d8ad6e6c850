//! How a process becomes a client: what each front makes of the daemon's answer to Hello.
//!
//! Input: the answer, the two descriptors that came with it, and a way to the pool's journal, if the pool has one.
//! Output: an engine on the pool and its run-time memory. The descriptors are only borrowed: the mappings outlive them.

use core::fmt;

use rustix::fd::BorrowedFd;
use seawall_media::Region;
use seawall_wire::message::{MAGIC, Reply, Status};
use seawall_wire::shm::Shm;

use super::attach::{AttachError, Engine};
use crate::format::Superblock;
use crate::journal::{Journal, Way};
use crate::store::Store;

/// Why a process is no client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // Each variant's text is its documentation.
pub enum JoinError {
    OtherVersion,
    Denied,
    Refused,
    NoDescriptors,
    NotMapped,
    RunTimeMemory,
    Attach(AttachError),
}

impl JoinError {
    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::OtherVersion => "the daemon is of another version",
            Self::Denied => "the daemon belongs to another user",
            Self::Refused => "the daemon refused to serve this process",
            Self::NoDescriptors => "the daemon sent no descriptors",
            Self::NotMapped => "the daemon's memory cannot be mapped",
            Self::RunTimeMemory => "the run-time memory is damaged",
            Self::Attach(AttachError::Superblock(_)) => "the pool is damaged or of another version",
            Self::Attach(AttachError::NoJournal) => {
                "the log lies on a device that this process cannot write to"
            }
            Self::Attach(AttachError::Foreign) => "the run-time memory belongs to another pool",
        }
    }
}

impl fmt::Display for JoinError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl core::error::Error for JoinError {}

impl Engine {
    /// Joins the pool of the daemon that has answered. `journal` is for a pool on a block device; any other pool
    /// ignores it.
    ///
    /// # Errors
    /// [`JoinError`] if it refused, or its answer makes no sense.
    pub fn join(
        reply: &Reply,
        pool: Option<BorrowedFd<'_>>,
        shm: Option<BorrowedFd<'_>>,
        journal: Option<Way>,
    ) -> Result<Self, JoinError> {
        match Status::from_u32(reply.status) {
            _ if reply.magic != MAGIC => return Err(JoinError::OtherVersion),
            Status::Ok => {}
            Status::BadVersion => return Err(JoinError::OtherVersion),
            Status::Denied => return Err(JoinError::Denied),
            _ => return Err(JoinError::Refused),
        }
        let (Some(pool), Some(shm)) = (pool, shm) else { return Err(JoinError::NoDescriptors) };
        let map = |fd, len, sync| Region::map(fd, len, sync).map_err(|_| JoinError::NotMapped);
        let pool = map(pool, reply.pool_len, reply.sync_map == 1)?;
        let shm = Shm::open(map(shm, reply.shm_len, false)?).map_err(|_| JoinError::RunTimeMemory)?;
        let sb = Superblock::read(&pool).map_err(|e| JoinError::Attach(AttachError::Superblock(e)))?;
        let store = match journal.filter(|_| sb.is_journaled()) {
            Some(way) => Store::journaled(pool, Journal::new(way, sb.size as usize)),
            None => Store::from(pool),
        };
        Self::attach(store, shm).map_err(JoinError::Attach)
    }
}
