//! The cases, in one file per family of calls. A case is a small function: it has a file, or makes
//! its files through the [`Context`], makes calls, and everything it saw is in the trace.

/// `family!("append" => on_a_file [case_one, case_two], others [case_three])`: the table at the end of every family's
/// file.
macro_rules! family {
    ($family:literal => on_a_file [$($on_a_file:ident),* $(,)?] $(, others [$($other:ident),* $(,)?])?) => {
        family!(@ $family, $($on_a_file: OnAFile,)* $($($other: Other,)*)?);
    };
    ($family:literal => [$($other:ident),* $(,)?]) => {
        family!(@ $family, $($other: Other,)*);
    };
    (@ $family:literal, $($case:ident: $kind:ident,)*) => {
        /// The cases of this family.
        pub fn cases() -> Vec<$crate::cases::Case> {
            vec![$($crate::cases::Case {
                family: $family,
                name: concat!($family, "/", stringify!($case)),
                on_request: false,
                body: $crate::cases::Body::$kind($case),
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
use std::ffi::c_int;

/// One named case.
pub struct Case {
    /// The file it lives in.
    pub family: &'static str,
    /// `family/case`.
    pub name: &'static str,
    /// Needs a directory of its own kind: runs only when named.
    pub on_request: bool,
    /// What it does.
    pub body: Body,
}

/// What a case does.
pub enum Body {
    /// It has the file `a`, and in the end a write and an fsync of it must still work, and be seen.
    OnAFile(fn(&Context, c_int)),
    /// It has what it makes.
    Other(fn(&Context)),
}

impl Body {
    /// Does it.
    pub fn run(&self, cx: &Context) {
        match self {
            Body::OnAFile(body) => {
                let fd = cx.file("a");
                body(cx, fd);
                cx.write_sync_show(fd);
            }
            Body::Other(body) => body(cx),
        }
    }
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
