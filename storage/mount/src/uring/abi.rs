//! What lies in an entry of the io_uring, as the kernel's `fuse.h` has it.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Give an entry to the kernel for the first time.
pub const REGISTER: u32 = 1;
/// The answer is there; bring the next request.
pub const COMMIT_AND_FETCH: u32 = 2;

/// Operations that are answered here.
pub const READ: u32 = 15;
pub const WRITE: u32 = 16;
pub const FSYNC: u32 = 20;
/// Begins a session.
pub const INIT: u32 = 26;

/// Of a write: it comes from the kernel's cache.
pub const WRITE_CACHE: u32 = 1 << 0;
/// Of a read: not by the kernel's cache, but somebody's own.
pub const PAST: u32 = 1 << 1;
/// Of a write: the caller may not keep set-user-id bits.
pub const WRITE_KILL_SUIDGID: u32 = 1 << 2;
/// Of an fsync.
pub const FSYNC_FDATASYNC: u32 = 1;

/// Bytes for a header, and for what an operation has of fixed size.
pub const ROOM: usize = 128;

/// Before each request.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct InHeader {
    pub len: u32,
    pub opcode: u32,
    pub unique: u64,
    pub node: u64,
    pub uid: u32,
    pub gid: u32,
    pub pid: u32,
    pub extensions: u16,
    pub padding: u16,
}

/// Before each answer.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct OutHeader {
    pub len: u32,
    pub error: i32,
    pub unique: u64,
}

/// Of a read or a write.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Transfer {
    pub handle: u64,
    pub offset: u64,
    pub size: u32,
    pub how: u32,
    pub lock_owner: u64,
    pub flags: u32,
    pub padding: u32,
}

/// Of an fsync.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Sync {
    pub handle: u64,
    pub how: u32,
    pub padding: u32,
}

/// What a write answers.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Written {
    pub size: u32,
    pub padding: u32,
}

/// What the kernel says at the start of a session, and what we say to a session of ours.
#[derive(Clone, Copy, Default, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct InitIn {
    pub major: u32,
    pub minor: u32,
    pub readahead: u32,
    pub flags: u32,
    pub flags2: u32,
    pub unused: [u32; 11],
}

/// What an entry says of its payload.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Place {
    pub flags: u64,
    pub commit: u64,
    pub payload: u32,
    pub padding: u32,
    pub reserved: u64,
}

/// An entry but for its payload.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Header {
    pub in_out: [u8; ROOM],
    pub operation: [u8; ROOM],
    pub place: Place,
}

/// What a command says, in the second half of its 128 bytes.
#[derive(Clone, Copy, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Command {
    pub flags: u64,
    pub commit: u64,
    pub queue: u16,
    pub padding: [u8; 6],
}

const _: () = assert!(size_of::<InHeader>() == 40 && size_of::<OutHeader>() == 16);
const _: () = assert!(size_of::<Transfer>() == 40 && size_of::<Sync>() == 16 && size_of::<InitIn>() == 64);
const _: () = assert!(size_of::<Header>() == 288 && size_of::<Command>() == 24);
