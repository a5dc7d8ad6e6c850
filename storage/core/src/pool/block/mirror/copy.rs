//! One copy of a mirrored log: a file or a device, and what its anchors say of the other one.

use std::fs::File;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use seawall_media::block::{Anchor, Mirror, MirrorState, Recovered};

use crate::journal::open;
use crate::pool::block::device::open_locked;
use crate::pool::error::PoolError;
use crate::pool::steps::io as failing;

/// One copy, open and locked.
pub struct Copy {
    pub file: File,
    pub path: PathBuf,
    pub anchor: Anchor,
}

impl Copy {
    pub fn open(path: &Path) -> Result<Self, PoolError> {
        Self::of(open_locked(path)?, path)
    }

    /// The copy in an open file.
    pub fn of(file: File, path: &Path) -> Result<Self, PoolError> {
        let anchor =
            open::anchor_of(&file).map_err(|error| PoolError::Journal { path: path.into(), error })?;
        Ok(Self { file, path: path.into(), anchor })
    }

    /// What it says of itself and the other one. A log that is not mirrored is the first copy, alone.
    pub fn said(&self) -> Mirror {
        self.anchor.mirror().unwrap_or(Mirror { copy: 0, state: MirrorState::Alone, epoch: 0 })
    }

    /// Reads it as a recovery would.
    pub fn read(&self) -> Result<Recovered, PoolError> {
        open::read_only(&self.file).map_err(|error| PoolError::Journal { path: self.path.clone(), error })
    }

    /// True if the copy lies at this path.
    pub fn is_at(&self, path: &Path) -> bool {
        is_at(&self.file, path)
    }

    /// Writes both places of the anchor, the newer one last.
    pub fn say(&mut self, like: &Anchor, sequence: u64, said: Mirror) -> Result<(), PoolError> {
        for sequence in [sequence - 1, sequence] {
            self.anchor = like.with_mirror(Some(said));
            self.anchor.sequence = sequence;
            let written = self.file.write_all_at(&self.anchor.seal(), Anchor::place(sequence));
            let synced = written.and_then(|()| self.file.sync_data());
            synced.map_err(failing(&self.path, "write to"))?;
        }
        Ok(())
    }

    /// From now on it is not believed, until it is made equal to the other one.
    pub fn say_unfinished(&mut self) -> Result<(), PoolError> {
        let (like, sequence) = (self.anchor, self.anchor.sequence + 2);
        let said = Mirror { state: MirrorState::Unfinished, ..self.said() };
        self.say(&like, sequence, said)
    }

    /// From now on it is believed without the other one.
    pub fn say_alone(&mut self) -> Result<(), PoolError> {
        let (like, said) = (self.anchor, self.said());
        let epoch = self.next_epoch()?;
        self.say(&like, like.sequence + 2, Mirror { state: MirrorState::Alone, epoch, ..said })
    }

    /// The epoch of a new statement, above those of all earlier ones.
    pub fn next_epoch(&self) -> Result<u16, PoolError> {
        self.said().epoch.checked_add(1).ok_or_else(|| PoolError::Mirror {
            path: self.path.clone(),
            why: "its copies changed too often: make a new log".into(),
        })
    }
}

/// True if this file or device lies there.
pub fn is_at(file: &File, path: &Path) -> bool {
    let identity = |meta: std::fs::Metadata| match meta.file_type().is_block_device() {
        true => (true, meta.rdev(), 0),
        false => (false, meta.dev(), meta.ino()),
    };
    let [a, b] = [file.metadata(), std::fs::metadata(path)].map(|meta| meta.map(identity).ok());
    a.is_some() && a == b
}

/// The other copy, if both are copies of one log.
pub fn fits(this: &Copy, other: Copy) -> Result<Copy, PoolError> {
    let (a, b) = (&this.anchor, &other.anchor);
    let same = (a.uuid, a.size, a.image, a.block) == (b.uuid, b.size, b.image, b.block);
    let numbers = b.mirror().is_some_and(|said| said.copy != this.said().copy);
    if same && numbers {
        return Ok(other);
    }
    Err(PoolError::Mirror { path: other.path, why: "it holds another log".into() })
}

/// True if both say "both", under the same epoch.
pub fn agreed(this: &Copy, other: &Copy) -> bool {
    let (this, other) = (this.said(), other.said());
    (this.state, other.state) == (MirrorState::Both, MirrorState::Both) && this.epoch == other.epoch
}
