//! Files that were synced without the log, one of each kind: for `seawall run`, which tells why nothing was gained.
//!
//! Whoever syncs such a file first notes it; later ones cost a look at a word.

use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::{Header, ROOT_PATH_MAX};

/// Why a file that was synced is not in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stray {
    /// By its name a preset in use would have it, and it lies below no registered directory.
    Elsewhere = 0,
    /// No preset knows it.
    Unknown = 1,
}

/// Nobody has noted one.
const FREE: u32 = 0;
/// Somebody is about to.
const TAKEN: u32 = 1;
/// It can be read.
const NOTED: u32 = 2;

impl Stray {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Elsewhere, Self::Unknown];

    const fn path_at(self) -> usize {
        1024 + self as usize * ROOT_PATH_MAX
    }
}

impl Header<'_> {
    /// True unless a file of this kind is noted already.
    #[inline]
    pub fn wants_stray(&self, kind: Stray) -> bool {
        self.stray_state(kind).load(Relaxed) == FREE
    }

    /// Notes a file, unless somebody was quicker, or its path is too long.
    pub fn note_stray(&self, kind: Stray, path: &[u8]) {
        let state = self.stray_state(kind);
        let fits = path.len() <= ROOT_PATH_MAX;
        if fits && state.compare_exchange(FREE, TAKEN, Acquire, Relaxed).is_ok() {
            self.region.store(kind.path_at(), path);
            self.stray_len(kind).store(path.len() as u32, Relaxed);
            state.store(NOTED, Release);
        }
    }

    /// The file that was noted; `into` gets its path.
    pub fn stray<'b>(&self, kind: Stray, into: &'b mut [u8; ROOT_PATH_MAX]) -> Option<&'b [u8]> {
        if self.stray_state(kind).load(Acquire) != NOTED {
            return None;
        }
        let len = (self.stray_len(kind).load(Relaxed) as usize).min(ROOT_PATH_MAX);
        self.region.read(kind.path_at(), &mut into[..len]);
        Some(&into[..len])
    }

    /// Begins anew, for whoever names a directory now. A note that is being made, or that its maker died of, is left.
    pub fn forget_strays(&self) {
        self.told_torn().store(0, Relaxed);
        for kind in Stray::ALL {
            let _ = self.stray_state(kind).compare_exchange(NOTED, FREE, Acquire, Relaxed);
        }
    }

    fn stray_state(&self, kind: Stray) -> &core::sync::atomic::AtomicU32 {
        match kind {
            Stray::Elsewhere => self.elsewhere_state(),
            Stray::Unknown => self.unknown_state(),
        }
    }

    fn stray_len(&self, kind: Stray) -> &core::sync::atomic::AtomicU32 {
        match kind {
            Stray::Elsewhere => self.elsewhere_len(),
            Stray::Unknown => self.unknown_len(),
        }
    }
}
