//! Creating in the caller's name: owner, group and umask are the caller's, the rights are ours.
//!
//! The kernel has checked every permission before it asks us (`default_permissions`), with the caller's groups,
//! which we do not learn. So a thread takes the caller's fsuid, fsgid and umask, and keeps its capabilities: the
//! backing file system does the rest, setgid directories and default ACLs among it.
//!
//! Without root there is one caller, the user who mounted, and nothing to change but the umask.

use std::cell::Cell;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{Gid, Uid, setfsgid, setfsuid};
use rustix::fs::Mode;
use rustix::thread::{capabilities, set_capabilities};
use seawall_core::Errno;

/// The caller that asks.
#[derive(Clone, Copy, Debug)]
pub struct Caller {
    /// Its user.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// Its umask, where a file is made.
    pub umask: u32,
}

thread_local! {
    /// True once this thread's umask is its own.
    static APART: Cell<bool> = const { Cell::new(false) };
}

impl Caller {
    /// Runs `op` as the caller.
    ///
    /// # Errors
    /// What `op` said; EPERM if the caller's identity cannot be taken.
    pub fn act<R>(self, op: impl FnOnce() -> Result<R, Errno>) -> Result<R, Errno> {
        if !APART.get() {
            // A umask belongs to all threads that share their fs_struct.
            unshare(CloneFlags::CLONE_FS).map_err(|_| Errno::PERM)?;
            APART.set(true);
        }
        rustix::process::umask(Mode::from_raw_mode(self.umask));
        if !rustix::process::geteuid().is_root() || (self.uid, self.gid) == (0, 0) {
            return op();
        }
        let _back = self.switch()?;
        op()
    }

    fn switch(self) -> Result<Back, Errno> {
        let before = capabilities(None)?;
        let back = Back;
        setfsgid(Gid::from_raw(self.gid));
        setfsuid(Uid::from_raw(self.uid));
        // The calls report no error, but what was set before; an id that no file can have is never set.
        let taken = setfsuid(Uid::from_raw(u32::MAX)).as_raw() == self.uid
            && setfsgid(Gid::from_raw(u32::MAX)).as_raw() == self.gid;
        if !taken {
            return Err(Errno::PERM);
        }
        // Leaving fsuid 0 took those of file systems away.
        set_capabilities(None, before)?;
        Ok(back)
    }
}

/// Root again, when dropped.
struct Back;

impl Drop for Back {
    fn drop(&mut self) {
        setfsuid(Uid::from_raw(0));
        setfsgid(Gid::from_raw(0));
    }
}
