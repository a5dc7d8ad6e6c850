//! Work that is shared among threads for as long as a call takes.

use std::panic::resume_unwind;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;
use std::thread::{Builder, available_parallelism, scope};

use crate::sim;

/// As many threads as processors, for work that waits for nothing.
pub fn processors() -> usize {
    available_parallelism().map_or(1, usize::from)
}

/// Does the first `count` pieces of some work, by up to `threads` threads, each with what `begin` makes. Returns what came
/// of them, in no order. A simulated thread does all of it itself.
pub fn in_parallel<S, T: Send>(
    (threads, count): (usize, usize),
    begin: impl Fn() -> S + Sync,
    work: impl Fn(&mut S, usize) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let share = || {
        let (mut own, mut done) = (begin(), Vec::new());
        loop {
            match next.fetch_add(1, Relaxed) {
                i if i < count => done.push(work(&mut own, i)),
                _ => return done,
            }
        }
    };
    let threads = if sim::process().is_some() { 1 } else { threads.min(count) };
    scope(|scope| {
        // One that cannot be had leaves its share to the others.
        let others: Vec<_> =
            (1..threads).filter_map(|_| Builder::new().spawn_scoped(scope, share).ok()).collect();
        let mut done = share();
        for other in others {
            done.extend(other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        }
        done
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_piece_is_done_once() {
        for (threads, count) in [(1, 5), (4, 100), (8, 3), (3, 0)] {
            let mut done = in_parallel((threads, count), || (), |(), i| i);
            done.sort_unstable();
            assert_eq!(done, Vec::from_iter(0..count), "{threads} threads");
        }
    }
}
