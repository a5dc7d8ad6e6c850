//! The functions that applications call instead of libc's: one file per family, thin.

mod absent;
mod aio;
mod attributes;
mod close_dup;
mod directory;
mod dprintf;
mod fcntl;
pub mod frame;
mod fts;
mod ftw;
mod glob;
mod look_aside;
mod mmap;
mod names;
mod open;
mod origin;
mod process;
mod read;
mod splice;
mod stdio;
mod sync;
mod syscall;
mod truncate_fallocate;
mod uring;
mod write;

/// Defines exported functions. Several names share one body: the 64-bit and the fortified variants.
///
/// The body may use the application's pointers as the libc function of that name may. Where a call *passes*, libc's own
/// function of the first name goes on with it, and `then` is done what is to be done with its result.
macro_rules! entry {
    ($($rest:tt)+) => { $crate::entry::hooks!(0; $($rest)+); };
}
pub(crate) use entry;

/// The same of cancellation points.
macro_rules! point {
    ($($rest:tt)+) => { $crate::entry::hooks!(1; $($rest)+); };
}
pub(crate) use point;

macro_rules! hooks {
    ($is_point:literal; $(
        $(#[$meta:meta])* fn $($name:ident)|+ ($($arg:ident: $kind:ty),* $(,)?) $(-> $ret:ty)?
        $(, passes if $passes:block $(then |$result:ident| $after:block)?)? $body:block
    )+) => {
        $($crate::entry::hook!($is_point [$($name)+] ($($arg: $kind),*) [$($ret)?]
            [$($passes $(($result) $after)?)?] $body);)+
    };
}
pub(crate) use hooks;

macro_rules! hook {
    ($is_point:literal [$first:ident $($more:ident)*] $args:tt $ret:tt $passes:tt $body:block) => {
        const _: () = {
            $crate::entry::hook!(@body $args $ret $body);
            $crate::entry::hook!(@course $first $args $passes);
            $crate::entry::hook!(@after $args $ret $passes);
            static HOOK: $crate::entry::frame::Hook =
                $crate::entry::frame::Hook { is_point: $is_point, after: AFTER, course };
            $crate::entry::hook!(@export $first $($more)*);
        };
    };
    (@export $($name:ident)+) => {
        $(
            #[unsafe(no_mangle)]
            #[unsafe(naked)]
            unsafe extern "C" fn $name() {
                $crate::entry::frame::enter!(HOOK)
            }
        )+
    };
    (@body ($($arg:ident: $kind:ty),*) [$($ret:ty)?] $body:block) => {
        #[inline(always)]
        unsafe fn body($($arg: $kind),*) $(-> $ret)? {
            #[allow(unused_unsafe)]
            // SAFETY: the caller keeps the contract of the libc function of this name.
            unsafe { $body }
        }
    };
    (@course $first:ident ($($arg:ident: $kind:ty),*) [$($passes:block $($rest:tt)*)?]) => {
        unsafe extern "C" fn course(frame: &mut $crate::entry::frame::Frame) {
            let [$($arg,)* ..] = frame.arguments();
            $(
                #[allow(clippy::unnecessary_cast)]
                let $arg = $arg as $kind;
            )*
            $(
                const NEXT: usize = $crate::entry::frame::index(stringify!($first));
                #[allow(unused_unsafe)]
                // SAFETY: as for the body.
                let passes = || unsafe { $passes };
                if let Some(next) = $crate::entry::frame::next(NEXT)
                    && passes()
                {
                    return frame.pass(next);
                }
            )?
            // SAFETY: the hook's own arguments.
            frame.answer(unsafe { body($($arg),*) });
        }
    };
    (@after ($($arg:ident: $kind:ty),*) [$ret:ty] [$passes:block ($result:ident) $after:block]) => {
        const AFTER: Option<unsafe extern "C" fn(&mut $crate::entry::frame::Frame)> = Some(after);
        unsafe extern "C" fn after(frame: &mut $crate::entry::frame::Frame) {
            let [$($arg,)* ..] = frame.arguments();
            $(
                #[allow(clippy::unnecessary_cast)]
                let $arg = $arg as $kind;
            )*
            let _ = ($($arg,)*);
            #[allow(clippy::unnecessary_cast)]
            let $result = frame.result() as $ret;
            #[allow(unused_unsafe)]
            // SAFETY: as for the body; libc's function has returned this.
            unsafe { $after }
        }
    };
    (@after $args:tt $ret:tt $passes:tt) => {
        const AFTER: Option<unsafe extern "C" fn(&mut $crate::entry::frame::Frame)> = None;
    };
}
pub(crate) use hook;

/// A function that only libc has: calls it, or fails with ENOSYS and this value.
macro_rules! real_or {
    ($fail:expr, $name:expr, fn($($arg:ident: $kind:ty),* $(,)?) -> $ret:ty) => {
        match $crate::real::real!($name, fn($($kind),*) -> $ret) {
            Some(real) => $crate::entry::frame::undisturbed(|| real($($arg),*)),
            None => {
                $crate::errno::set(seawall_core::Errno::NOSYS);
                $fail
            }
        }
    };
}
pub(crate) use real_or;
