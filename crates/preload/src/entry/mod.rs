//! The functions that applications call instead of libc's: one file per family, thin.

mod aio;
mod attributes;
mod close_dup;
mod dprintf;
mod fcntl;
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
/// The body may use the application's pointers as the libc function of that name may.
macro_rules! entry {
    ($($(#[$meta:meta])* fn $($name:ident)|+ ($($args:tt)*) $(-> $ret:ty)? $body:block)+) => {
        $($crate::entry::entry!(@names [$($name)+] [$(#[$meta])*] ($($args)*) [$(-> $ret)?] $body);)+
    };
    (@names [$($name:ident)+] $meta:tt $args:tt $ret:tt $body:block) => {
        $($crate::entry::entry!(@one $name $meta $args $ret $body);)+
    };
    (@one $name:ident [$(#[$meta:meta])*] $args:tt [$(-> $ret:ty)?] $body:block) => {
        $(#[$meta])*
        #[unsafe(no_mangle)]
        unsafe extern "C" fn $name $args $(-> $ret)? {
            #[allow(unused_unsafe)]
            // SAFETY: the caller keeps the contract of the libc function of this name.
            unsafe { $body }
        }
    };
}
pub(crate) use entry;

/// A function that only libc has: calls it, or fails with ENOSYS and this value.
macro_rules! real_or {
    ($fail:expr, $name:expr, fn($($arg:ident: $kind:ty),* $(,)?) -> $ret:ty) => {
        match $crate::real::real!($name, fn($($kind),*) -> $ret) {
            Some(real) => real($($arg),*),
            None => {
                $crate::errno::set(seawall_core::Errno::NOSYS);
                $fail
            }
        }
    };
}
pub(crate) use real_or;
