//! The file system's operations on the backing directory, with no FUSE in them: `crate::adapter` speaks to the
//! kernel, this does the work.
//!
//! | module | operations |
//! |---|---|
//! | [`open`](self) | open, create, release |
//! | `read` | read |
//! | `content` | write, copy_file_range, lseek |
//! | `sync` | fsync, fdatasync |
//! | `size` | truncate, fallocate |
//! | `names` | lookup, mkdir, mknod, symlink, link, unlink, rmdir |
//! | `rename` | rename |
//! | `attributes` | getattr, setattr, extended attributes, statfs |
//! | `directory` | opendir, readdir, readdirplus, fsyncdir |

mod attributes;
mod content;
mod directory;
mod names;
mod open;
mod read;
mod rename;
mod shared;
mod size;
mod sync;

pub use attributes::Change;
pub use content::{How, Way};
pub use shared::Fs;
