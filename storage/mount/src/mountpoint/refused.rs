//! Why something was not mounted or unmounted, and what to do.

use std::fs::File;
use std::io;
use std::path::PathBuf;

/// What is wrong.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs)] // Each variant's text is its documentation.
pub enum Refused {
    #[error("{path}: {error}")]
    Missing { path: PathBuf, error: io::Error },
    #[error("{0} is not a directory")]
    NoDirectory(PathBuf),
    #[error("the mountpoint {0} is not empty: the mount would hide what is in it. Use an empty directory")]
    NotEmpty(PathBuf),
    #[error(
        "{at} is already a mountpoint, of {by}: unmount that first (`seawall umount` if it is Seawall's)"
    )]
    Mounted { at: PathBuf, by: String },
    #[error("Seawall has mounted nothing at {0}")]
    NotOurs(PathBuf),
    #[error(
        "{backing} and {mountpoint} lie within each other: the mount would serve itself. Use a mountpoint elsewhere"
    )]
    Nested { backing: PathBuf, mountpoint: PathBuf },
    #[error(
        "{0} is already mounted: two mounts of one directory would not see each other's cached pages. \
         `seawall umount` the other one first"
    )]
    InUse(PathBuf),
    #[error("/dev/fuse: {error}. {help}", error = .0, help = no_fuse(.0))]
    NoFuse(io::Error),
    #[error("{error}. {}", no_permission(*.allow_other))]
    NoPermission { error: io::Error, allow_other: bool },
    #[error("{0} is in use: end the programs that have files open there (`fuser -vm {0}` shows them)")]
    Busy(PathBuf),
    #[error("{what}: {error}")]
    Failed { what: &'static str, error: io::Error },
}

fn no_fuse(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "This user may not open it: mount as root, or let every user open it, as udev does \
             (`chmod 666 /dev/fuse`)"
        }
        _ => {
            "The mount needs FUSE: `modprobe fuse`; start a container with --device /dev/fuse --cap-add \
             SYS_ADMIN"
        }
    }
}

fn no_permission(allow_other: bool) -> &'static str {
    match allow_other {
        true => {
            "To let other users use the mount, mount as root, or put the line user_allow_other into \
             /etc/fuse.conf"
        }
        false => "Mounting needs root, or the program fusermount3 (Debian: fuse3)",
    }
}

/// What a failed mount means.
pub(crate) fn explain(error: io::Error, allow_other: bool) -> Refused {
    match error.kind() {
        _ if File::options().read(true).write(true).open("/dev/fuse").is_err() => Refused::NoFuse(error),
        io::ErrorKind::PermissionDenied => Refused::NoPermission { error, allow_other },
        _ if !rustix::process::geteuid().is_root() => Refused::NoPermission { error, allow_other },
        _ => Refused::Failed { what: "cannot mount", error },
    }
}
