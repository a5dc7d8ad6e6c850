//! What a machine takes from any program: a thread sleeps a millisecond at a time beside a load, and notes how late it
//! woke at worst. A longest operation that is no longer than that says nothing about who served it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

const NAP: Duration = Duration::from_millis(1);

/// Does `what` while a thread sleeps beside it: what it gives, and how late that thread woke at worst, microseconds.
/// The thread wakes a thousand times a second and so costs a little itself: only where its figure is shown.
pub fn beside<T>(what: impl FnOnce() -> T) -> (T, f64) {
    let sleeper = Sleeper::start();
    let given = what();
    (given, sleeper.worst_us())
}

/// A thread that sleeps.
struct Sleeper {
    enough: Arc<AtomicBool>,
    thread: JoinHandle<Duration>,
}

impl Sleeper {
    fn start() -> Self {
        let enough = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&enough);
        Self { enough, thread: std::thread::spawn(move || worst(|| told.load(Relaxed))) }
    }

    /// Ends; how late it was at worst, microseconds.
    fn worst_us(self) -> f64 {
        self.enough.store(true, Relaxed);
        self.thread.join().map_or(f64::NAN, |late| late.as_secs_f64() * 1e6)
    }
}

fn worst(enough: impl Fn() -> bool) -> Duration {
    let mut worst = Duration::ZERO;
    while !enough() {
        let begin = Instant::now();
        std::thread::sleep(NAP);
        worst = worst.max(begin.elapsed().saturating_sub(NAP));
    }
    worst
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_kept_from_waking_was_late() {
        let naps = std::cell::Cell::new(0);
        let kept = || {
            naps.set(naps.get() + 1);
            naps.get() > 3
        };
        assert!(worst(kept) > Duration::ZERO);
        let (given, late_us) = beside(|| 7);
        assert!(given == 7 && late_us >= 0.0);
    }
}
