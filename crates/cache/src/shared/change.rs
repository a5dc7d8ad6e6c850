//! A change of a whole file: truncated, punched, unlinked, replaced by another of its name. All its blocks die at
//! once, by a new incarnation, and none is served or filled until the change has ended.

use super::operation::{Doing, Owner};
use super::word::FileWord;
use super::{Cache, FileRef};

impl Cache {
    /// Runs `change`, which changes a file by other means than writes of whole blocks. What it returns.
    pub fn change<R>(&self, owner: Owner, file: FileRef, change: impl FnOnce() -> R) -> R {
        let Some(operation) = self.begin(owner, Doing::Change { slot: file.slot }) else {
            self.distrust(file);
            return change();
        };
        let incarnation = self.new_incarnation();
        self.change_file(file, |word| word.marked(incarnation));
        let result = change();
        self.change_file(file, FileWord::unmarked);
        operation.end();
        result
    }

    /// Nothing of this file is served or filled any more, until nobody uses it and it is entered anew: somebody
    /// writes it unseen, or a sync of it failed.
    pub fn distrust(&self, file: FileRef) {
        let incarnation = self.new_incarnation();
        self.change_file(file, |word| word.reborn(incarnation).flagged(FileWord::DISTRUSTED, true));
    }

    /// True if blocks of it are served and filled.
    pub fn is_served(&self, file: FileRef) -> bool {
        self.file(file).is_open() && self.off().is_none()
    }
}
