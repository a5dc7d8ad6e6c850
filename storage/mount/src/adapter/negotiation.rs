//! What the kernel and the mount agree on when the mount begins: what the kernel may do by itself, and how much at once.

use std::io;
use std::sync::atomic::Ordering::Relaxed;

use fuser::{InitFlags, KernelConfig};

use crate::fs::Fs;

/// Longest write that arrives in one piece: what policy `atomic` promises to keep whole.
pub const LONGEST_WRITE: u32 = 1 << 20;
/// Requests that the kernel may have under way without anybody waiting, such as readahead.
const BACKGROUND: u16 = 64;

/// Asks the kernel for what the mount needs, and for what makes it faster; notes in `fs` what it has.
///
/// # Errors
/// The kernel is too old.
pub fn negotiate(fs: &Fs, config: &mut KernelConfig) -> io::Result<()> {
    for wanted in [
        InitFlags::FUSE_DO_READDIRPLUS,
        InitFlags::FUSE_READDIRPLUS_AUTO,
        InitFlags::FUSE_PARALLEL_DIROPS,
        InitFlags::FUSE_CACHE_SYMLINKS,
        // Pages stay when a time changes: by an open they are let go, if somebody else wrote.
        InitFlags::FUSE_EXPLICIT_INVAL_DATA,
        // Not FUSE_ASYNC_DIO: `crate::pages`.
    ] {
        // Where the kernel has it not, it does without.
        let _ = config.add_capabilities(wanted);
    }
    // ACLs are checked by the kernel, the umask is applied by the backing file system where it has none.
    let acl = InitFlags::FUSE_POSIX_ACL | InitFlags::FUSE_DONT_MASK;
    config
        .add_capabilities(acl)
        .map_err(|_| io::Error::other("this kernel's FUSE has no ACLs (they need Linux 4.9)"))?;
    // Otherwise the kernel asks for an extended attribute before every write.
    let _ = config.add_capabilities(InitFlags::FUSE_HANDLE_KILLPRIV_V2);
    let _ = config.set_max_write(LONGEST_WRITE);
    let _ = config.set_max_background(BACKGROUND);
    // A kernel that has it switched off does not offer it.
    if fs.by_uring.load(Relaxed) && config.add_capabilities(InitFlags::FUSE_OVER_IO_URING).is_err() {
        fs.by_uring.store(false, Relaxed);
    }
    // Without it a file that is written past the kernel's cache could not be mapped.
    let direct = config.add_capabilities(InitFlags::FUSE_DIRECT_IO_ALLOW_MMAP).is_ok();
    fs.direct.store(direct, Relaxed);
    let root = rustix::process::geteuid().is_root();
    let passes = root
        && config.add_capabilities(InitFlags::FUSE_PASSTHROUGH).is_ok()
        && config.set_max_stack_depth(1).is_ok();
    fs.passthrough.store(passes, Relaxed);
    Ok(())
}
