//! Requests by an io_uring for each processor (FUSE over io_uring, Linux 6.14): a request is answered on the processor
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
mod desk;
mod forward;
mod hot;
mod processors;
mod sys;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::Errno;
use seawall_media::locks::lock;

pub use self::choice::FuseUring;
use self::desk::{Answered, Desk};
use self::forward::Forward;
use self::sys::{Queue, UringEntry};
use crate::adapter::LONGEST_WRITE;
use crate::fs::Fs;

/// Whether the kernel may be asked for it.
const SETTING: &str = "/sys/module/fuse/parameters/enable_uring";
/// Entries of a processor at the beginning. Never are all of them away: while a file is registered, the daemon asks
/// the kernel about files of ours, and the kernel asks us. So there are as many as requests that wait, and one more.
const DEPTH: usize = 8;

/// True if the kernel's administrator allows it.
pub fn is_allowed() -> bool {
    std::fs::read_to_string(SETTING).is_ok_and(|text| text.trim() == "Y")
}

/// One processor's queue, and its thread, which waits until it gets the device.
struct Uring {
    desk: Arc<Desk>,
    device: Sender<Arc<OwnedFd>>,
    registered: Receiver<io::Result<()>>,
    thread: JoinHandle<()>,
}

impl Uring {
    fn new(number: u16, fs: &Arc<Fs>) -> io::Result<Self> {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let queue = Queue::new(number, DEPTH, wake.try_clone()?)?;
        let desk = Desk::new(wake);
        let forward = Forward::new(fs, &desk)?;
        let (device, come) = channel::<Arc<OwnedFd>>();
        let (tell, registered) = channel();
        let thread = std::thread::Builder::new().name(format!("ring-{number}"));
        let served = Served { fs: Arc::clone(fs), desk: Arc::clone(&desk), queue, forward };
        let thread = thread.spawn(move || {
            processors::pin(number);
            if let Ok(device) = come.recv()
                && let Err(error) = served.serve(&device, &tell)
            {
                // Requests of this processor would wait for ever: the kernel ends them with the process.
                errln!("seawall: the mount's io_uring {number} ended: {error}");
                std::process::exit(1);
            }
        })?;
        Ok(Self { desk, device, registered, thread })
    }

    fn start(&self, device: &Arc<OwnedFd>) -> io::Result<()> {
        self.device.send(Arc::clone(device)).map_err(io::Error::other)?;
        self.registered.recv().map_err(io::Error::other)?
    }

    fn end(self) {
        drop(self.device);
        self.desk.end();
        let _ = self.thread.join();
    }
}

/// Queues that are not in use yet.
pub struct Urings(Vec<Uring>);

impl Urings {
    /// One for each processor that there can be. All that they need is made here: once a mount has said that it has
    /// queues, the kernel waits for them with every request.
    ///
    /// # Errors
    /// What the kernel says: no io_uring, or not for us; no socket that is long enough; too many threads.
    pub fn new(fs: &Arc<Fs>) -> io::Result<Self> {
        let mut urings = Self(Vec::new());
        for number in 0..processors::count()? {
            match Uring::new(number, fs) {
                Ok(uring) => urings.0.push(uring),
                Err(error) => {
                    urings.end();
                    return Err(error);
                }
            }
        }
        Ok(urings)
    }

    /// Takes requests from now on.
    ///
    /// # Errors
    /// What the kernel says. It goes back to /dev/fuse by itself then.
    pub fn start(mut self, device: &Arc<OwnedFd>) -> io::Result<Vec<JoinHandle<()>>> {
        for number in 0..self.0.len() {
            let Err(error) = self.0[number].start(device) else { continue };
            if number == 0 || error.raw_os_error() != Some(Errno::INVAL.raw_os_error()) {
                self.end();
                return Err(error);
            }
            // The kernel has fewer, whatever it says elsewhere, and began with the last of them.
            self.0.drain(number..).for_each(Uring::end);
            break;
        }
        Ok(self.0.into_iter().map(|uring| uring.thread).collect())
    }

    /// They are not wanted.
    pub fn end(self) {
        self.0.into_iter().for_each(Uring::end);
    }
}

/// What a queue's thread has.
struct Served {
    fs: Arc<Fs>,
    desk: Arc<Desk>,
    queue: Queue,
    forward: Forward,
}

impl Served {
    fn serve(mut self, device: &OwnedFd, tell: &Sender<io::Result<()>>) -> io::Result<()> {
        let entries = (0..DEPTH).map(|_| UringEntry::new(LONGEST_WRITE as usize)).collect();
        let registered = self.queue.register(device.as_fd(), entries);
        let taken = registered.as_ref().map_or(0, |taken| *taken);
        let _ = tell.send(registered.map(drop));
        let done = self.answer(taken);
        self.forward.finish();
        done
    }

    /// Until the kernel has taken all entries back, of which there are so many.
    fn answer(&mut self, mut all: usize) -> io::Result<()> {
        let (mut away, mut unused) = (0, Vec::new());
        let mut why = None;
        while all > 0 && !self.desk.over.load(Relaxed) {
            let arrived = self.queue.wait()?;
            let is_refused = arrived.gone > 0;
            all -= arrived.gone.min(all);
            away += arrived.entries.len();
            why = arrived.error.or(why);
            unused.extend(arrived.unused);
            for entry in arrived.entries {
                if let Some(entry) = self.answered(entry) {
                    away -= 1;
                    self.queue.give(entry)?;
                }
            }
            if arrived.woken {
                for entry in std::mem::take(&mut *lock(&self.desk.done)) {
                    away -= 1;
                    self.queue.give(entry)?;
                }
            }
            // Not at once if the last one was refused: the kernel has no memory.
            if all > 0 && away >= all && !is_refused {
                let entry = unused.pop().unwrap_or_else(|| UringEntry::new(LONGEST_WRITE as usize));
                self.queue.add(entry)?;
                all += 1;
            }
        }
        match why {
            Some(error) if all == 0 && !is_the_end(&error) => Err(error),
            _ => Ok(()),
        }
    }

    fn answered(&self, entry: &'static mut UringEntry) -> Answered {
        let (fs, desk) = (&self.fs, &self.desk);
        match entry.request().opcode {
            abi::READ => hot::read(fs, desk, entry),
            abi::WRITE => hot::write(fs, desk, entry),
            abi::FSYNC => hot::sync(fs, desk, entry),
            _ => self.forward.send(desk, entry),
        }
    }
}

/// What entries come back with when the mount is gone.
fn is_the_end(error: &io::Error) -> bool {
    let gone = [Errno::NOTCONN, Errno::CONNABORTED, Errno::CANCELED, Errno::NODEV];
    gone.iter().any(|end| error.raw_os_error() == Some(end.raw_os_error()))
}
