//! Several threads for one job.

use std::panic::resume_unwind;
use std::thread;

/// Does `work` with each of these at the same time, each on a thread of its own, and waits for all of them.
pub fn each<I: Send, T: Send>(all: impl IntoIterator<Item = I>, work: impl Fn(I) -> T + Sync) -> Vec<T> {
    let work = &work;
    thread::scope(|scope| {
        let threads: Vec<_> = all.into_iter().map(|one| scope.spawn(move || work(one))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}
