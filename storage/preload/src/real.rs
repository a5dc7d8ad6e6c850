//! The function that would have been called without us, for what has no system call (stdio above all).

use core::ffi::{CStr, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// A symbol of the libraries loaded after us, looked up once.
pub struct Symbol {
    name: &'static CStr,
    at: AtomicPtr<c_void>,
}

impl Symbol {
    /// The symbol called `name`, not looked up yet.
    pub const fn new(name: &'static CStr) -> Self {
        Self { name, at: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Its address; `None` if no later library has it.
    pub fn find(&self) -> Option<*mut c_void> {
        let known = self.at.load(Relaxed);
        if !known.is_null() {
            return Some(known);
        }
        // SAFETY: the name is a C string. Racing threads find the same address.
        let found = unsafe { libc::dlsym(libc::RTLD_NEXT, self.name.as_ptr()) };
        self.at.store(found, Relaxed);
        (!found.is_null()).then_some(found)
    }
}

/// A symbol's name from a literal that ends in NUL.
pub const fn c_name(name: &'static str) -> &'static CStr {
    match CStr::from_bytes_with_nul(name.as_bytes()) {
        Ok(name) => name,
        Err(_) => panic!(),
    }
}

/// `real!(c"name": fn(A, B) -> R)`: the real function, or `None`.
macro_rules! real {
    ($name:expr, fn($($arg:ty),* $(,)?) -> $ret:ty) => {{
        static SYMBOL: $crate::real::Symbol = $crate::real::Symbol::new($name);
        #[allow(unused_unsafe, clippy::missing_transmute_annotations)]
        // SAFETY: the symbol is the libc function of that name, and this is its prototype.
        SYMBOL.find().map(|at| unsafe {
            core::mem::transmute::<*mut core::ffi::c_void, unsafe extern "C" fn($($arg),*) -> $ret>(at)
        })
    }};
}
pub(crate) use real;
