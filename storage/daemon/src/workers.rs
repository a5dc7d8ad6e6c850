//! Threads for what may take long: a client's request; on a mount a real fsync, a registration, a file that leaves the log.
//!
//! The threads that read a mount's requests must never all wait: while the daemon registers a file it looks at other processes'
//! descriptors, some of them of files on this mount, and the kernel then asks the mount. So whatever may wait for the daemon or
//! the disk is done here. As many threads as there is work, each for as long as it has some, and a while longer: a thread for
//! each request would cost as much as many of the requests. When no further one can be had the work is done where it came from.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use seawall_media::locks::{lock, wait_for};

type Job = Box<dyn FnOnce() + Send>;

/// How long a thread without work stays.
const LINGER: Duration = Duration::from_secs(10);
/// How long whoever waits for the end waits before it looks again.
const SHORT: Duration = Duration::from_millis(20);

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    idle: usize,
    threads: usize,
}

/// The threads.
#[derive(Clone)]
pub struct Workers {
    shared: Arc<(Mutex<Queue>, Condvar)>,
    /// Where they may run: whoever starts one may be bound to a processor.
    anywhere: Option<CpuSet>,
    name: &'static str,
    stack: usize,
    most: usize,
}

impl Workers {
    /// At most so many threads of this name, with stacks of so many bytes.
    pub fn new(name: &'static str, stack: usize, most: usize) -> Self {
        Self { shared: Arc::default(), anywhere: sched_getaffinity(None).ok(), name, stack, most }
    }

    /// Runs `job` on another thread.
    pub fn run(&self, job: impl FnOnce() + Send + 'static) {
        let (queue, wake) = &*self.shared;
        let mut queue = lock(queue);
        if queue.jobs.len() < queue.idle {
            queue.jobs.push_back(Box::new(job));
            wake.notify_one();
            return;
        }
        if queue.threads >= self.most {
            drop(queue);
            return job();
        }
        queue.jobs.push_back(Box::new(job));
        queue.threads += 1;
        drop(queue);
        let workers = self.clone();
        let builder = std::thread::Builder::new().name(self.name.into()).stack_size(self.stack);
        let started = builder.spawn(move || workers.work());
        if started.is_err() {
            self.work_here();
        }
    }

    /// Waits until nothing is under way any more.
    pub fn finish(&self) {
        let (queue, wake) = &*self.shared;
        let mut held = lock(queue);
        while held.threads > held.idle || !held.jobs.is_empty() {
            held = wait_for(wake, held, SHORT).0;
        }
    }

    fn work(&self) {
        if let Some(anywhere) = &self.anywhere {
            let _ = sched_setaffinity(None, anywhere);
        }
        let (queue, wake) = &*self.shared;
        let mut held = lock(queue);
        loop {
            if let Some(job) = held.jobs.pop_front() {
                drop(held);
                job();
                held = lock(queue);
                continue;
            }
            held.idle += 1;
            let (again, is_late) = wait_for(wake, held, LINGER);
            held = again;
            held.idle -= 1;
            if is_late && held.jobs.is_empty() {
                held.threads -= 1;
                return;
            }
        }
    }

    /// No thread could be started: whatever waits is done here.
    fn work_here(&self) {
        let (queue, _) = &*self.shared;
        lock(queue).threads -= 1;
        loop {
            let Some(job) = lock(queue).jobs.pop_front() else { return };
            job();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn every_job_runs_though_all_wait_for_the_last() {
        let workers = Workers::new("test", 256 << 10, 64);
        let (told, tell) = mpsc::channel();
        let gate = Arc::new(std::sync::Barrier::new(50));
        for i in 0..50 {
            let (told, gate) = (told.clone(), Arc::clone(&gate));
            workers.run(move || {
                gate.wait();
                told.send(i).expect("the test listens");
            });
        }
        drop(told);
        let mut all: Vec<_> = tell.iter().take(50).collect();
        all.sort_unstable();
        assert_eq!(all, (0..50).collect::<Vec<_>>());
    }

    #[test]
    fn whoever_is_bound_to_a_processor_starts_threads_that_are_not() {
        let anywhere = sched_getaffinity(None).expect("a set");
        let workers = Workers::new("test", 256 << 10, 64);
        let first = (0..CpuSet::MAX_CPU).find(|cpu| anywhere.is_set(*cpu)).expect("it runs somewhere");
        let mut only = CpuSet::new();
        only.set(first);
        let (told, tell) = mpsc::channel();
        std::thread::spawn(move || {
            sched_setaffinity(None, &only).expect("bound");
            workers.run(move || told.send(sched_getaffinity(None)).expect("the test listens"));
        });
        assert!(tell.recv().expect("it ran").expect("a set") == anywhere);
    }
}
