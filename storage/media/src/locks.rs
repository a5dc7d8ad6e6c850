//! std's locks, without what they say of a thread that panicked while it held one: programs here are built with `panic =
//! "abort"`, so nobody is left who could meet such a lock. Only under cargo's tests, which unwind, does somebody: the lock
//! is taken all the same, and the test fails by the panic.

use std::sync::{
    Condvar, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, TryLockError,
};
use std::time::{Duration, Instant};

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

/// A lock that one can wait for no longer than one likes.
#[derive(Default)]
pub struct Turns {
    is_taken: Mutex<bool>,
    free: Condvar,
}

/// Nobody else has the turn until this is dropped.
#[must_use = "the turn is over when this is dropped"]
pub struct Turn<'t>(&'t Turns);

impl Turns {
    /// Waits for the turn.
    pub fn take(&self) -> Turn<'_> {
        let mut is_taken = lock(&self.is_taken);
        while *is_taken {
            is_taken = wait(&self.free, is_taken);
        }
        *is_taken = true;
        Turn(self)
    }

    /// The same, no longer than this.
    pub fn take_within(&self, limit: Duration) -> Option<Turn<'_>> {
        let begin = Instant::now();
        let mut is_taken = lock(&self.is_taken);
        while *is_taken {
            let left = limit.checked_sub(begin.elapsed())?;
            is_taken = wait_for(&self.free, is_taken, left).0;
        }
        *is_taken = true;
        Some(Turn(self))
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *lock(&self.0.is_taken) = false;
        self.0.free.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_is_waited_for_as_long_as_one_likes_and_everybody_gets_it() {
        let turns = Turns::default();
        let turn = turns.take();
        assert!(turns.take_within(Duration::from_millis(10)).is_none());
        let count = Mutex::new(0);
        std::thread::scope(|threads| {
            for i in 0..8 {
                let (turns, count) = (&turns, &count);
                threads.spawn(move || {
                    let _turn = match i % 2 {
                        0 => turns.take(),
                        _ => turns.take_within(Duration::from_secs(60)).expect("it comes"),
                    };
                    *count.try_lock().expect("nobody else has the turn") += 1;
                });
            }
            drop(turn);
        });
        assert_eq!(*lock(&count), 8);
    }
}
