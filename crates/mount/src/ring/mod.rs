//! Requests by a ring for each processor (FUSE over io_uring, Linux 6.14): a request is answered on the processor
//! that made it, and the answer and the next request are one system call.
//!
//! ```text
//!  kernel ── entry ──▶ queue's thread ── read, write, fsync ──▶ fs          answered in the entry
//!     ▲                     │    ▲  └── what may wait ──▶ workers ──┐
//!     └──── entry ──────────┘    └────────── desk ◀────────────────┤
//!                           └── every other operation ──▶ fuser ────┘       by a socket, as if it were /dev/fuse
//! ```
//!
//! Only the queue's thread gives entries to the kernel: the kernel runs the next request's arrival in the thread that
//! gave the entry, and cancels it if that thread ends.
//!
//! Not handled here: FORGET and INTERRUPT, which come by /dev/fuse always, and INIT (`crate::adapter`).

mod abi;
mod choice;
mod forward;
mod hot;
mod sys;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use rustix::thread::{CpuSet, sched_setaffinity};

pub use self::choice::FuseUring;
use self::forward::{Forward, Pair};
use self::sys::{Entry, Queue};
use crate::adapter::LONGEST_WRITE;
use crate::fs::Fs;

/// Whether the kernel may be asked for it.
const SETTING: &str = "/sys/module/fuse/parameters/enable_uring";
/// Entries of a processor at the beginning. Never are all of them away: while a file is registered, the daemon asks
/// the kernel about files of ours, and the kernel asks us. So there are as many as requests that wait, and one more.
const DEPTH: usize = 8;

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Where others leave entries that have their answers.
pub struct Desk {
    done: Mutex<Vec<&'static mut Entry>>,
    /// Entries whose answer comes by the socket, by their request.
    away: Mutex<HashMap<u64, &'static mut Entry>>,
    wake: OwnedFd,
}

impl Desk {
    /// Gives an entry back to the queue's thread.
    pub fn hand_in(&self, entry: &'static mut Entry) {
        let mut done = lock(&self.done);
        done.push(entry);
        let is_first = done.len() == 1;
        drop(done);
        if is_first {
            let _ = rustix::io::write(&self.wake, &1u64.to_ne_bytes());
        }
    }
}

/// True if the kernel's administrator allows it.
pub fn is_allowed() -> bool {
    std::fs::read_to_string(SETTING).is_ok_and(|text| text.trim() == "Y")
}

/// Queues that are not in use yet.
pub struct Rings(Vec<(Queue, Arc<Desk>, Pair)>);

impl Rings {
    /// One for each processor that there can be.
    ///
    /// # Errors
    /// What the kernel says: no io_uring, or not for us; others than root lack a long enough socket.
    pub fn new() -> io::Result<Self> {
        let queue = |number| {
            let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            let queue = Queue::new(number, DEPTH, wake.try_clone()?)?;
            let desk = Desk { done: Mutex::default(), away: Mutex::default(), wake };
            Ok((queue, Arc::new(desk), Pair::new()?))
        };
        (0..processors()?).map(queue).collect::<io::Result<_>>().map(Self)
    }

    /// Takes requests from now on. The kernel waits for it with every request.
    ///
    /// # Errors
    /// What the kernel says. The mount is of no use then.
    pub fn start(self, fs: &Arc<Fs>, device: &Arc<OwnedFd>) -> io::Result<Vec<JoinHandle<()>>> {
        let start = |(mut queue, desk, pair): (Queue, Arc<Desk>, Pair), number: usize| {
            let forward = Forward::new(pair, fs, &desk)?;
            let (fs, device) = (Arc::clone(fs), Arc::clone(device));
            let (tell, told) = std::sync::mpsc::channel();
            let thread = std::thread::Builder::new().name(format!("ring-{number}"));
            let thread = thread.spawn(move || {
                pin(number);
                let entries = (0..DEPTH).map(|_| Entry::new(LONGEST_WRITE as usize)).collect();
                let registered = queue.register(device.as_fd(), entries);
                let is_there = registered.is_ok();
                let _ = tell.send(registered);
                if is_there && let Err(error) = serve(&fs, &mut queue, &desk, &forward) {
                    // Requests of this processor would wait for ever: the kernel ends them with the process.
                    eprintln!("seawall: the mount's ring {number} ended: {error}");
                    std::process::exit(1);
                }
                forward.finish();
            })?;
            told.recv().map_err(io::Error::other)??;
            Ok(thread)
        };
        self.0.into_iter().zip(0..).map(|(queue, number)| start(queue, number)).collect()
    }
}

/// The thread's processor only: that of the requests. One that is away has none.
fn pin(number: usize) {
    let mut only = CpuSet::new();
    only.set(number);
    let _ = sched_setaffinity(None, &only);
}

fn processors() -> io::Result<u16> {
    let list = std::fs::read_to_string("/sys/devices/system/cpu/possible")?;
    let last = list.trim().rsplit([',', '-']).next().and_then(|last| last.parse::<u16>().ok());
    last.map(|last| last + 1).ok_or_else(|| io::Error::other("the list of processors is not understood"))
}

fn serve(fs: &Arc<Fs>, queue: &mut Queue, desk: &Arc<Desk>, forward: &Forward) -> io::Result<()> {
    let (mut all, mut away) = (DEPTH, 0);
    while all > 0 {
        let arrived = queue.wait()?;
        all -= arrived.gone.min(all);
        away += arrived.entries.len();
        for entry in arrived.entries {
            let answered = match entry.request().opcode {
                abi::READ => hot::read(fs, desk, entry),
                abi::WRITE => hot::write(fs, desk, entry),
                abi::FSYNC => hot::sync(fs, desk, entry),
                _ => forward.send(desk, entry),
            };
            if let Some(entry) = answered {
                away -= 1;
                queue.give(entry)?;
            }
        }
        if arrived.woken {
            for entry in std::mem::take(&mut *lock(&desk.done)) {
                away -= 1;
                queue.give(entry)?;
            }
        }
        if all > 0 && away >= all {
            queue.add(Entry::new(LONGEST_WRITE as usize))?;
            all += 1;
        }
    }
    Ok(())
}
