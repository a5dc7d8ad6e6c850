//! The format on the medium. `docs/internals/FORMAT.md` draws it; the layout tables there are generated from here.
//!
//! Every struct states its size and has its offsets and the absence of padding checked at compile time
//! (`IntoBytes` refuses padding). Integers are little-endian: big-endian machines are not supported and do
//! not compile.

mod cell;
mod change;
mod entry;
mod handle;
mod layout;
mod names;
mod record;
mod root;
mod segment;
mod spill;
mod superblock;

pub use cell::Cell;
pub use change::{Across, Elsewhere, NameChange, Replaced};
pub use entry::{Descriptor, EntryState, FILE_PATH_MAX, FOREVER, watermark};
pub use handle::{Attributes, Handle, NAMED_HANDLE_MAX};
pub use layout::{FILE_ENTRY_BYTES, Layout, ROOT_ENTRY_BYTES, ROOTS, Zone};
pub use names::{CHANGE_MAX, EncodedChange, NAME_MAX, NameHead};
pub use record::{RecordFlags, RecordHeader, RecordKind};
pub use root::{RootDescriptor, RootSlot};
pub use segment::SegmentHeader;
pub use spill::{
    AREA_MAGIC, AREA_PATH_MAX, AREA_SLOTS_AT, AreaHeader, SpillDescriptor, SpillEntry, Spilled, bytes_for,
    slot_at,
};
pub use superblock::{FORMAT_VERSION, NAMES_VERSION, SPILL_VERSION, Superblock, SuperblockError};

#[cfg(target_endian = "big")]
compile_error!("the pool's format is little-endian");
