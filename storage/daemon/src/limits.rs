//! Limits of this process: raised as far as we may, and named where they are too small. A daemon that can open nothing
//! more accepts nobody, and whoever waits for it hears nothing.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::errors::DaemonError;

/// What a daemon needs without any file.
const DESCRIPTORS: u64 = 64;
/// Its program, its libraries and its threads' stacks, beside the log: with a third less a thread cannot be started.
const ADDRESSES: u64 = 96 << 20;

/// As many descriptors as we may have, two for each managed file; and files as long: a log on a disk is written for
/// those who may not.
pub(crate) fn raise() {
    for resource in [Resource::Nofile, Resource::Fsize] {
        let limit = getrlimit(resource);
        // With fewer, files too many are left to the kernel.
        let _ = setrlimit(resource, Rlimit { current: limit.maximum, ..limit });
    }
}

/// How many arenas the C library may make for our threads. Under a limit of addresses it makes none: for one of 64 MiB it
/// takes 128 for a moment, in which a thread that is just being started has no room for its stack.
pub(crate) fn arenas() -> i32 {
    if getrlimit(Resource::As).current.is_some() { 1 } else { 2 }
}

/// Refuses what would end in the middle of a start.
pub(crate) fn check(pool: u64) -> Result<(), DaemonError> {
    let needs = [
        (Resource::Nofile, "open files (ulimit -Hn)", DESCRIPTORS),
        (Resource::As, "address space (ulimit -v)", ADDRESSES.saturating_add(pool)),
    ];
    for (resource, what, needs) in needs {
        if let Some(has) = getrlimit(resource).current.filter(|has| *has < needs) {
            return Err(DaemonError::Limit { what, has, needs });
        }
    }
    Ok(())
}
