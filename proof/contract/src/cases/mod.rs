//! The cases, in one file per family of calls. A case is a small function: it makes its files
//! through the [`Context`], makes calls, and everything it saw is in the trace.

/// `family!("append" => [case_one, case_two])`: the table at the end of every family's file.
macro_rules! family {
    ($family:literal => [$($case:ident),* $(,)?]) => {
        /// The cases of this family.
        pub fn cases() -> Vec<$crate::cases::Case> {
            vec![$($crate::cases::Case {
                family: $family,
                name: concat!($family, "/", stringify!($case)),
                on_request: false,
                body: $case,
            }),*]
        }
    };
}

mod append;
mod bad_descriptor;
mod bad_pointers;
mod cancel;
mod close;
mod direct;
mod dup;
mod fallocate;
mod holes;
mod kernel_aio;
mod library;
mod limits;
mod locks;
mod mapping;
mod metadata;
mod names;
mod open;
mod passing;
mod permission;
mod posix_aio;
mod process;
mod seek;
mod set_id;
mod signals;
mod space;
mod stdio;
mod sync;
mod sync_flags;
mod syscalls;
mod threads;
mod tools;
mod transfer;
mod truncate;
mod unlink;
mod uring;
mod vectored;
mod write;

use crate::context::Context;

/// One named case.
pub struct Case {
    /// The file it lives in.
    pub family: &'static str,
    /// `family/case`.
    pub name: &'static str,
    /// Needs a directory of its own kind: runs only when named.
    pub on_request: bool,
    /// What it does.
    pub body: fn(&Context),
}

/// Every case, family by family.
pub fn all() -> Vec<Case> {
    [
        open::cases(),
        write::cases(),
        vectored::cases(),
        append::cases(),
        seek::cases(),
        sync_flags::cases(),
        direct::cases(),
        truncate::cases(),
        fallocate::cases(),
        names::cases(),
        unlink::cases(),
        dup::cases(),
        close::cases(),
        bad_descriptor::cases(),
        bad_pointers::cases(),
        process::cases(),
        threads::cases(),
        cancel::cases(),
        signals::cases(),
        mapping::cases(),
        metadata::cases(),
        transfer::cases(),
        sync::cases(),
        kernel_aio::cases(),
        uring::cases(),
        posix_aio::cases(),
        syscalls::cases(),
        stdio::cases(),
        passing::cases(),
        permission::cases(),
        set_id::cases(),
        locks::cases(),
        limits::cases(),
        holes::cases(),
        library::cases(),
        space::cases(),
    ]
    .into_iter()
    .flatten()
    .collect()
}
