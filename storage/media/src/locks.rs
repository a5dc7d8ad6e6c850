//! std's locks, without what they say of a thread that panicked while it held one: programs here are built with `panic =
//! "abort"`, so nobody is left who could meet such a lock. Only under cargo's tests, which unwind, does somebody: the lock
//! is taken all the same, and the test fails by the panic.

use std::sync::{
    Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};
use std::time::Duration;

use crate::sim;

/// Locks.
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shares. A simulated thread gives way as long as somebody else has it.
pub fn read<T: ?Sized>(shared: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    loop {
        match try_read(shared) {
            Some(held) => return held,
            None if sim::waits() => {}
            None => return shared.read().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

/// Shares, unless that had to be waited for.
pub fn try_read<T: ?Sized>(shared: &RwLock<T>) -> Option<RwLockReadGuard<'_, T>> {
    match shared.try_read() {
        Ok(held) => Some(held),
        Err(TryLockError::Poisoned(held)) => Some(held.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}

/// Locks what others share. A simulated thread gives way as long as they do.
pub fn write<T: ?Sized>(shared: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    loop {
        match shared.try_write() {
            Ok(held) => return held,
            Err(TryLockError::Poisoned(held)) => return held.into_inner(),
            Err(TryLockError::WouldBlock) if sim::waits() => {}
            Err(TryLockError::WouldBlock) => return shared.write().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

/// Waits until somebody wakes this thread.
pub fn wait<'m, T>(wake: &Condvar, held: MutexGuard<'m, T>) -> MutexGuard<'m, T> {
    wake.wait(held).unwrap_or_else(PoisonError::into_inner)
}

/// The same, no longer than this. True with it: it has been so long.
pub fn wait_for<'m, T>(
    wake: &Condvar,
    held: MutexGuard<'m, T>,
    limit: Duration,
) -> (MutexGuard<'m, T>, bool) {
    let (held, waited) = wake.wait_timeout(held, limit).unwrap_or_else(PoisonError::into_inner);
    (held, waited.timed_out())
}
