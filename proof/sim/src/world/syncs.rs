//! Syncs and write-backs, and how they fail: a page that is dropped, a file system's journal that is gone, an error that is
//! reported once.

use std::os::unix::fs::FileExt;

use seawall_core::Scope;

use super::file::FsJournal;
use super::{EIO, World};
use crate::fiber;
use crate::pending::THREADS;

/// The daemon's number among a file's open descriptions: a new daemon counts as the old one.
const DAEMON: usize = THREADS;

impl World {
    /// A real sync of file `index` by the thread that runs; it may fail.
    pub fn real_sync(&self, index: usize, scope: Scope) -> Result<(), i32> {
        self.step();
        self.look(index);
        {
            // Whether the log brings back what a dead process had begun is open until its record is retired.
            let file = &mut self.files.borrow_mut()[index];
            if file.wounded {
                file.found(false);
            }
        }
        let failures = self.failures.get();
        if failures > 0 && fiber::inside() && self.rng.one_in(failures) {
            self.lose_pages(index);
        }
        if let Some(answer) = self.journal(index) {
            self.tell(|| {
                format!("real sync of file {index}: {answer:?}, and the file system's journal is gone")
            });
            self.point();
            return answer;
        }
        let told = self.is_told(index);
        if !told {
            let file = &mut self.files.borrow_mut()[index];
            file.disk.sync();
            file.fresh = false;
            if scope == Scope::Whole {
                file.renamed.is_synced();
                file.touched.is_synced();
            }
        }
        self.tell(|| format!("real sync of file {index}{}", if told { " fails" } else { "" }));
        self.point();
        if self.rng.one_in(4) {
            // Disks are slow: others go on meanwhile.
            self.give_way();
        }
        if told && self.is_stuck(index) {
            let file = &mut self.files.borrow_mut()[index];
            file.model.unpromised =
                Some("its records could not be retired, and whoever lost its lock alive logs one more");
        }
        if told { Err(EIO) } else { Ok(()) }
    }

    /// A sync of the directory that a file is in: its name, and no more.
    pub fn directory_sync(&self, index: usize) -> Result<(), i32> {
        self.step();
        if let Some(answer) = self.journal(index) {
            self.tell(|| {
                format!(
                    "sync of the directory of file {index}: {answer:?}, and the file system's journal is gone"
                )
            });
            return answer;
        }
        self.files.borrow_mut()[index].renamed.is_synced();
        self.tell(|| format!("sync of the directory of file {index}"));
        self.count(|c| c.directories += 1);
        self.point();
        if self.rng.one_in(4) {
            self.give_way();
        }
        Ok(())
    }

    /// The kernel writes a file back by itself, and the disk may refuse.
    pub fn background_write_back(&self, index: usize) {
        if self.failures.get() > 0 {
            self.look(index);
            self.tell(|| format!("a write-back of file {index} fails"));
            self.lose_pages(index);
        }
    }

    /// A write-back fails: the pages are clean from now on, and what of them is on disk nobody knows.
    fn lose_pages(&self, index: usize) {
        self.err(index, "a write-back of its untracked pages failed");
        let file = &mut self.files.borrow_mut()[index];
        file.disk.fail();
        if self.rng.one_in(2) && file.disk.drop_lost(&self.rng) {
            file.cache.write_all_at(file.disk.cache(), 0).expect("room");
            self.count(|c| c.dropped += 1);
        }
        self.count(|c| c.failed += 1);
    }

    /// What a sync says once a commit of the file system's journal has failed: an error to whoever waited for the commit, a lie to
    /// everybody else, until the file system notices. Nothing is put on disk any more.
    fn journal(&self, index: usize) -> Option<Result<(), i32>> {
        let (commits, before) = (self.commits.get(), self.journal.get());
        if before == FsJournal::Whole && commits > 0 && fiber::inside() && self.rng.one_in(commits) {
            self.journal.set(FsJournal::Aborted);
            self.count(|c| c.aborted += 1);
        }
        if self.journal.get() == FsJournal::Whole {
            return None;
        }
        self.err(index, "the file system's journal is gone");
        Some(if before == FsJournal::Aborted { Ok(()) } else { Err(EIO) })
    }

    /// The kernel has an error of a file to report. Nothing is promised any more of what of it may be in no log.
    fn err(&self, index: usize, why: &'static str) {
        let tracked = self.is_tracked(index);
        let file = &mut self.files.borrow_mut()[index];
        file.errors += 1;
        file.model.failed = true;
        if !tracked || file.has_unlogged() {
            file.model.unpromised = Some(why);
        }
    }

    /// As the kernel does since 4.13: an error is reported once to each description that was open then.
    fn is_told(&self, index: usize) -> bool {
        let who = if self.is_daemon(self.thread.get()) { DAEMON } else { self.thread.get() };
        let file = &mut self.files.borrow_mut()[index];
        let errors = file.errors;
        let told = std::mem::replace(file.told.entry(who).or_insert(0), errors) < errors;
        if told {
            file.told_last = Some(self.thread.get());
        }
        told
    }
}
