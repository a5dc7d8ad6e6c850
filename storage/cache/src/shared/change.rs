//! A change of a whole file: truncated, punched, unlinked, replaced by another of its name. All its blocks die at
//! once, by a new incarnation, and none is served or filled until the change has ended.

use super::operation::{Doing, Operation, OperationOwner};
use super::word::FileWord;
use super::{Cache, CachedFile};

/// A change that is under way. It must be [ended](Cache::end_change).
#[must_use = "its file is not served until it has ended"]
pub struct Changing<'a> {
    file: CachedFile,
    /// `None`: there was no room to note it, and the file is not served any more.
    operation: Option<Operation<'a>>,
}

impl Cache {
    /// Runs `change`, which changes a file by other means than writes of whole blocks. What it returns.
    pub fn change<R>(&self, owner: OperationOwner, file: CachedFile, change: impl FnOnce() -> R) -> R {
        let changing = self.begin_change(owner, file);
        let result = change();
        self.end_change(changing);
        result
    }

    /// Announces a change. From its return until [`end_change`](Self::end_change) nothing of the file is served or
    /// filled, and nothing that was in the cache ever again.
    pub fn begin_change(&self, owner: OperationOwner, file: CachedFile) -> Changing<'_> {
        let operation = self.begin(owner, Doing::Change { slot: file.slot });
        if operation.is_some() {
            let incarnation = self.new_incarnation();
            self.change_file(file, |word| word.marked(incarnation));
        } else {
            self.distrust(file);
        }
        Changing { file, operation }
    }

    /// The change is visible, or failed.
    pub fn end_change(&self, changing: Changing<'_>) {
        let Some(operation) = changing.operation else { return };
        self.change_file(changing.file, FileWord::unmarked);
        operation.end();
    }

    /// Nothing of this file is served or filled until it is [resumed](Self::resume): somebody without a word has it
    /// open, perhaps for writing. The daemon's alone.
    #[cfg(feature = "std")]
    pub fn suspend(&self, file: CachedFile) {
        self.change_file(file, |word| word.flagged(FileWord::SUSPENDED, true));
    }

    /// True while it is [suspended](Self::suspend).
    #[cfg(feature = "std")]
    pub fn is_suspended(&self, file: CachedFile) -> bool {
        self.file(file).has(FileWord::SUSPENDED)
    }

    /// It is served again; unless `is_same`, without the blocks that were there. The daemon's alone.
    #[cfg(feature = "std")]
    pub fn resume(&self, file: CachedFile, is_same: bool) {
        let reborn = (!is_same).then(|| self.new_incarnation());
        self.change_file(file, |word| {
            reborn.map_or(word, |incarnation| word.reborn(incarnation)).flagged(FileWord::SUSPENDED, false)
        });
    }

    /// Nothing of this file is served or filled any more, until nobody uses it and it is entered anew: somebody
    /// writes it unseen, or a sync of it failed.
    pub fn distrust(&self, file: CachedFile) {
        let incarnation = self.new_incarnation();
        self.change_file(file, |word| word.reborn(incarnation).flagged(FileWord::DISTRUSTED, true));
    }

    /// True if blocks of it are served and filled.
    pub fn is_served(&self, file: CachedFile) -> bool {
        self.file(file).is_open() && self.is_serving()
    }
}
