//! Calls as a program makes them, by the steps that a front takes.

use std::os::fd::BorrowedFd;

use seawall_core::{At, Change, Engine, Errno, FileRef, Out, Owner, Scope, Syncing};

pub trait Calls {
    fn write<'d>(
        &self,
        who: Owner,
        file: FileRef,
        fd: BorrowedFd<'_>,
        at: At,
        data: impl Iterator<Item = &'d [u8]> + Clone,
        publish: impl FnOnce() -> Result<usize, Errno>,
    ) -> Result<usize, Errno>;

    fn truncate(
        &self,
        who: Owner,
        file: FileRef,
        fd: BorrowedFd<'_>,
        len: u64,
        publish: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno>;

    fn allocate(
        &self,
        who: Owner,
        file: FileRef,
        fd: BorrowedFd<'_>,
        end: u64,
        publish: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno>;

    fn sync_scope(
        &self,
        who: Owner,
        file: FileRef,
        scope: Scope,
        real: impl FnMut(Scope) -> Result<(), Errno>,
        name: impl FnOnce() -> Result<bool, Errno>,
    ) -> Result<(), Errno>;

    fn fsync(&self, who: Owner, file: FileRef, real: impl FnMut() -> Result<(), Errno>) -> Result<(), Errno>;

    fn pass<R>(
        &self,
        who: Owner,
        file: FileRef,
        sync: impl Fn() -> Result<(), Errno>,
        op: impl FnOnce() -> R,
    ) -> R;

    fn unlink(
        &self,
        who: Owner,
        file: FileRef,
        sync: impl Fn() -> Result<(), Errno>,
        op: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno>;

    fn give_away(
        &self,
        who: Owner,
        file: FileRef,
        sync: impl Fn() -> Result<(), Errno>,
        op: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno>;
}

impl Calls for Engine {
    fn write<'d>(
        &self,
        who: Owner,
        file: FileRef,
        fd: BorrowedFd<'_>,
        at: At,
        data: impl Iterator<Item = &'d [u8]> + Clone,
        publish: impl FnOnce() -> Result<usize, Errno>,
    ) -> Result<usize, Errno> {
        let change = self.begin(who, file, fd).log_write(at, data.clone())?;
        let done = publish();
        change.finish(done == Ok(data.map(<[u8]>::len).sum()));
        done
    }

    fn truncate(
        &self,
        who: Owner,
        file: FileRef,
        fd: BorrowedFd<'_>,
        len: u64,
        publish: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        published(self.begin(who, file, fd).log_truncate(len)?, publish)
    }

    fn allocate(
        &self,
        who: Owner,
        file: FileRef,
        fd: BorrowedFd<'_>,
        end: u64,
        publish: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        published(self.begin(who, file, fd).log_allocate(end)?, publish)
    }

    fn sync_scope(
        &self,
        who: Owner,
        file: FileRef,
        scope: Scope,
        mut real: impl FnMut(Scope) -> Result<(), Errno>,
        name: impl FnOnce() -> Result<bool, Errno>,
    ) -> Result<(), Errno> {
        match self.sync(who, file, scope) {
            Syncing::Name(due) => due.synced(name()).by(real),
            syncing => syncing.by(&mut real),
        }
    }

    fn fsync(
        &self,
        who: Owner,
        file: FileRef,
        mut real: impl FnMut() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        self.sync(who, file, Scope::Whole).by(|_| real())
    }

    fn pass<R>(
        &self,
        who: Owner,
        file: FileRef,
        sync: impl Fn() -> Result<(), Errno>,
        op: impl FnOnce() -> R,
    ) -> R {
        let out = self.take_out(who, file, &sync);
        let done = op();
        out.finish(sync);
        done
    }

    fn unlink(
        &self,
        who: Owner,
        file: FileRef,
        sync: impl Fn() -> Result<(), Errno>,
        op: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        ended(self.take_out(who, file, &sync), sync, op, Out::unlinked)
    }

    fn give_away(
        &self,
        who: Owner,
        file: FileRef,
        sync: impl Fn() -> Result<(), Errno>,
        op: impl FnOnce() -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        ended(self.take_out(who, file, &sync), sync, op, Out::given_away)
    }
}

fn published(change: Change<'_>, publish: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
    let done = publish();
    change.finish(done.is_ok());
    done
}

fn ended<'e>(
    out: Out<'e>,
    sync: impl Fn() -> Result<(), Errno>,
    op: impl FnOnce() -> Result<(), Errno>,
    for_good: fn(Out<'e>),
) -> Result<(), Errno> {
    let done = op();
    if done.is_ok() {
        for_good(out)
    } else {
        out.finish(sync)
    }
    done
}
