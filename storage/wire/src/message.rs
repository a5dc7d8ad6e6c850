//! Control messages between a front and the daemon, over a `SOCK_SEQPACKET` Unix socket.
//!
//! One request, one reply, fixed sizes. The command line speaks the same protocol; its replies carry JSON
//! after the fixed part. Descriptors travel as `SCM_RIGHTS`. The peer is authenticated by `SO_PEERCRED`.

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// "SWL" and the version: anything else on the socket is answered with [`Status::BadVersion`] and closed.
pub const MAGIC: u32 = u32::from_le_bytes(*b"SWL\0") | crate::WIRE_VERSION << 24;

/// Longest message, reply JSON included.
pub const MESSAGE_MAX: usize = 64 * 1024;

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// A front attaches. Reply carries the descriptors of the pool and of the run-time memory; of a pool on a block
    /// device also that of the journal, of a mirrored one those of both copies, by which the front makes durable what it
    /// logs. The last one, if there is a
    /// block cache, is its zone's, to be mapped shared for reading and writing.
    Hello = 1,
    /// Manage the file whose descriptor comes along. Reply: slot and generation.
    Register = 2,
    /// fdatasync the file in the slot given by the body (two little-endian u32: slot, generation). The
    /// caller holds the file's lock and moves the watermark itself; the daemon takes no lock for this.
    SyncFile = 3,
    /// A link was made where a database keeps links to more of its data: register what is new.
    LookForRoots = 4,
    /// Of a front that lost the journal's descriptor: make everything durable that is in the log now. With a body
    /// ([`Retire`]): raise a file's watermark. The reply carries the journal's descriptors once more, or those that took
    /// their place.
    Harden = 5,
    /// Serve the file whose descriptor comes along, of any access mode but O_PATH, from the block cache. Reply: the
    /// file's slot there, and as generation which of the slot's tenants it is; with a descriptor of what holds the cache's
    /// blocks, for reading, if that is a disk. [`Status::Bypass`] is for good, [`Status::Refused`] for now.
    Enter = 6,
    /// Of a front that could not map what Hello gave it: its process goes without Seawall from now on. When the reply is
    /// there, what the process has open for writing is out of the log and the block cache.
    GoWithout = 7,
    /// Are you there? Answered at once by whoever lives, whatever else it is at.
    Ping = 8,
    /// Of a front that is about to rename a managed file whose guard depends on its name: the guard goes up at the new one
    /// first. The body: slot, generation (little-endian u32), the name; with a descriptor of the directory it will be in.
    Rename = 9,
    /// Of a front whose program is about to remove or replace the directory whose descriptor comes along: guards in it that
    /// protect nothing any more are lowered.
    LowerLeft = 10,
    /// Of a front that gives a managed file up, because another machine is about to write it: it leaves the log, and its guard is
    /// lowered. The body: slot, generation (little-endian u32).
    LetGo = 11,
    /// Of a front whose program calls syncfs(2) for the directory whose descriptor comes along: what is below it is made
    /// durable, as far as it is neither in the log nor on the disk. Any other answer than [`Status::Ok`]: the caller has to
    /// make that call itself.
    SyncTree = 12,
    /// Take the new directory whose descriptor comes along into the log, unsynced, because the log has its name. Reply as for
    /// [`Register`](Self::Register); any other answer than [`Status::Ok`]: it is not in the log.
    RegisterNew = 13,
    /// Command line: state as JSON.
    Status = 16,
    /// Command line: destage everything, then reply.
    Drain = 17,
    /// Command line: register a root; the body is JSON.
    AddRoot = 18,
    /// Command line: drain, lower the guards, end.
    Stop = 19,
    /// Command line: what of a database is to be in the block cache; the body is JSON.
    Cache = 20,
    /// Command line: take files out of the log for a copy or a snapshot, or let them back; the body is JSON.
    Freeze = 22,
    /// Command line: rebuild the lost copy of a mirrored log, or how far that is; the body is JSON.
    Mirror = 21,
}

impl Kind {
    /// The kind with this number.
    pub const fn from_u32(n: u32) -> Option<Self> {
        Some(match n {
            1 => Self::Hello,
            2 => Self::Register,
            3 => Self::SyncFile,
            4 => Self::LookForRoots,
            5 => Self::Harden,
            6 => Self::Enter,
            7 => Self::GoWithout,
            8 => Self::Ping,
            9 => Self::Rename,
            10 => Self::LowerLeft,
            11 => Self::LetGo,
            12 => Self::SyncTree,
            13 => Self::RegisterNew,
            16 => Self::Status,
            17 => Self::Drain,
            18 => Self::AddRoot,
            19 => Self::Stop,
            20 => Self::Cache,
            21 => Self::Mirror,
            22 => Self::Freeze,
            _ => return None,
        })
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Status {
    /// Done.
    Ok = 0,
    /// The peer speaks another version.
    BadVersion = 1,
    /// The peer's credentials are not the owner's.
    Denied = 2,
    /// The file is not to be managed: the caller passes it through.
    Bypass = 3,
    /// The file cannot be managed (no stable handle, table full, foreign writer): it passes through.
    Refused = 4,
    /// The request itself is malformed.
    BadRequest = 5,
    /// It failed; the JSON body says how.
    Failed = 6,
    /// There is no room for it in the journal now.
    Full = 7,
    /// The file is not managed for now, while its database is frozen or the daemon is stopped: ask again at its next
    /// change or sync.
    Later = 8,
    /// The file is not managed for now, and is not to be changed either: a copy is taken of its database, which relies on pages
    /// that cannot be torn. Ask again in a moment.
    Suspended = 9,
}

impl Status {
    /// The status with this number; unknown ones are [`Status::BadRequest`].
    pub const fn from_u32(n: u32) -> Self {
        match n {
            0 => Self::Ok,
            1 => Self::BadVersion,
            2 => Self::Denied,
            3 => Self::Bypass,
            4 => Self::Refused,
            6 => Self::Failed,
            7 => Self::Full,
            8 => Self::Later,
            9 => Self::Suspended,
            _ => Self::BadRequest,
        }
    }
}

/// The fixed part of a request; a body of `body_len` bytes follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Request {
    /// [`MAGIC`].
    pub magic: u32,
    /// [`Kind`].
    pub kind: u32,
    /// Bytes that follow.
    pub body_len: u32,
    /// Zero.
    pub reserved: u32,
}

impl Request {
    /// A request of this kind.
    pub const fn new(kind: Kind, body_len: u32) -> Self {
        Self { magic: MAGIC, kind: kind as u32, body_len, reserved: 0 }
    }
}

/// The fixed part of a reply; a body of `body_len` bytes follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Reply {
    /// [`MAGIC`].
    pub magic: u32,
    /// [`Status`].
    pub status: u32,
    /// File slot (Register, Enter).
    pub slot: u32,
    /// Generation of the slot (Register), its tenant (Enter).
    pub generation: u32,
    /// Length of the pool's mapping (Hello).
    pub pool_len: u64,
    /// Length of the run-time memory (Hello).
    pub shm_len: u64,
    /// Length of the block cache's zone; 0 without a cache (Hello).
    pub cache_len: u64,
    /// 1 if the pool is to be mapped with MAP_SYNC (Hello).
    pub sync_map: u32,
    /// Bytes that follow.
    pub body_len: u32,
    /// [`Desk::given`](crate::desk::Desk::given) of the journal's descriptors (Hello, Harden).
    pub given: u32,
    /// The keepers whose connections come along, a bit each, by their place in the roster (Harden).
    pub keepers: u32,
}

impl Reply {
    /// A reply without content.
    pub const fn new(status: Status) -> Self {
        Self {
            magic: MAGIC,
            status: status as u32,
            slot: 0,
            generation: 0,
            pool_len: 0,
            shm_len: 0,
            cache_len: 0,
            sync_map: 0,
            body_len: 0,
            given: 0,
            keepers: 0,
        }
    }

    /// The reply that a message begins with. One of another version may be shorter: it is known by its magic, and
    /// what it lacks is zero. `None` if it is no reply.
    pub fn of(message: &[u8]) -> Option<Self> {
        let mut reply = Self::new_zeroed();
        let len = message.len().min(size_of::<Self>());
        reply.as_mut_bytes()[..len].copy_from_slice(&message[..len]);
        let is_whole = len == size_of::<Self>() || (len >= size_of::<[u32; 2]>() && reply.magic != MAGIC);
        is_whole.then_some(reply)
    }
}

/// The body of a [`Kind::Harden`] that retires records of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Retire {
    /// The file's slot.
    pub slot: u32,
    /// Its generation.
    pub generation: u32,
    /// Its records up to this LSN are on its disk. The caller holds the file's lock.
    pub lsn: u64,
}

const _: () = assert!(size_of::<Request>() == 16 && size_of::<Reply>() == 56);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_reply_is_one_of_another_version_or_none() {
        let whole = Reply { cache_len: 7, ..Reply::new(Status::Full) };
        assert_eq!(Reply::of(whole.as_bytes()), Some(whole));
        let older = Reply { magic: MAGIC - (1 << 24), ..Reply::new(Status::BadVersion) };
        assert_eq!(Reply::of(&older.as_bytes()[..40]), Some(older));
        assert_eq!(Reply::of(&whole.as_bytes()[..40]), None, "ours is never short");
        assert_eq!(Reply::of(&older.as_bytes()[..4]), None);
    }
}
