//! A queue of the guest's that is served: a thread that takes requests, and threads that wait for disks in its place.
//!
//! ```text
//!  available ring ─ take (in flight) ─ parse ─ carry out ─ answer: used ring, no longer in flight ─ the guest is notified
//!                                         └─ what must wait for a disk: another thread, from here on
//! ```
//!
//! Requests are answered in any order, as virtio has it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use seawall_media::locks::{lock, wait_for};
use virtio_queue::{Queue, QueueOwnedT, QueueT};
use vm_memory::{GuestAddressSpace, GuestMemoryAtomic};

use crate::chain::Malformed;
use crate::disk::Disk;
use crate::inflight::Tracker;
use crate::memory::Memory;
use crate::request::{MustWait, Patience, Request};
use crate::step::step;

/// While there are more requests, the guest is notified once for so many answers.
const TOLD_AT_ONCE: u32 = 16;
/// A guest that asked again within this time of its answers, being woken and waking us, is waited for awake.
const SOON: Duration = Duration::from_micros(150);
/// So many flushes are handed to another thread once one has been in the way of something.
const CROWDED: u32 = 64;
/// So long. To be woken takes longer.
const AWAKE: Duration = Duration::from_micros(40);

/// How a queue is laid out, and by what its two ends wake each other.
pub struct Setup {
    /// Its number, for messages.
    pub index: usize,
    /// Its rings and its first index.
    pub queue: Queue,
    /// The guest says: there are requests.
    pub kick: File,
    /// We say: there are answers. It may come later, or change.
    pub call: Arc<Mutex<Option<File>>>,
    /// What has no answer yet, in QEMU's keeping.
    pub tracker: Option<Tracker>,
}

/// A queue that is served.
pub struct Ring {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    stop: OwnedFd,
}

struct Shared {
    index: usize,
    disk: Arc<Disk>,
    memory: GuestMemoryAtomic<Memory>,
    /// Where its descriptors are, and how many.
    table: (u64, u16),
    ends: Mutex<Ends>,
    call: Arc<Mutex<Option<File>>>,
    /// How many requests other threads have.
    elsewhere: (Mutex<usize>, Condvar),
    told: AtomicBool,
    /// So many more flushes are waited for elsewhere: while one was waited for here, something else was asked for.
    crowded: AtomicU32,
}

/// Both ends of the rings: whoever has them takes or answers alone.
struct Ends {
    queue: Queue,
    tracker: Option<Tracker>,
}

/// The rings make no sense: nothing more is taken from them.
struct Broken(String);

impl Ring {
    /// Serves the queue from now on.
    ///
    /// # Errors
    /// There is no thread or descriptor to be had.
    pub fn start(disk: Arc<Disk>, memory: GuestMemoryAtomic<Memory>, setup: Setup) -> std::io::Result<Self> {
        let Setup { index, mut queue, kick, call, mut tracker } = setup;
        let mut left = Vec::new();
        if let Some(tracker) = &mut tracker {
            left = tracker.begin(queue.next_used());
            // What was taken and not answered is not to be taken again.
            queue.set_next_avail(queue.next_used().wrapping_add(left.len() as u16));
        }
        let shared = Arc::new(Shared {
            index,
            disk,
            memory,
            table: (queue.desc_table(), queue.size()),
            ends: Mutex::new(Ends { queue, tracker }),
            call,
            elsewhere: (Mutex::new(0), Condvar::new()),
            told: AtomicBool::new(false),
            crowded: AtomicU32::new(0),
        });
        let stop = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        let (served, stopped) = (Arc::clone(&shared), stop.try_clone()?);
        let builder = std::thread::Builder::new().name(format!("queue-{index}"));
        let thread = Some(builder.spawn(move || served.serve(&left, kick, &stopped))?);
        shared.disk.queues.fetch_add(1, Relaxed);
        Ok(Self { shared, thread, stop })
    }

    /// Ends it, once every request that was taken has its answer. Where in the available ring it ended.
    pub fn stop(mut self) -> u16 {
        self.end();
        lock(&self.shared.ends).queue.next_avail()
    }

    fn end(&mut self) {
        let _ = rustix::io::write(&self.stop, &1_u64.to_ne_bytes());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
        let (elsewhere, changed) = &self.shared.elsewhere;
        let mut held = lock(elsewhere);
        while *held > 0 {
            held = wait_for(changed, held, Duration::from_millis(100)).0;
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.end();
        self.shared.disk.queues.fetch_sub(1, Relaxed);
    }
}

impl Shared {
    fn serve(self: Arc<Self>, left: &[u16], kick: File, stop: &OwnedFd) {
        for head in left {
            self.begin(*head);
        }
        let mut asks_again_soon = false;
        loop {
            match self.serve_all(asks_again_soon) {
                Ok(true) => {}
                Ok(false) => {
                    let answered = Instant::now();
                    if wait(&kick, stop) {
                        return;
                    }
                    asks_again_soon = answered.elapsed() < SOON;
                }
                Err(Broken(why)) => {
                    errln!("seawall: queue {} of {}: {why}: it is no longer served", self.index, self.name());
                    // Until the guest resets it.
                    while !wait(&kick, stop) {}
                    return;
                }
            }
        }
    }

    fn name(&self) -> std::path::Display<'_> {
        self.disk.options().image.display()
    }

    /// Serves what there is, and with `stays_awake` what comes in a moment. True if more came meanwhile.
    fn serve_all(self: &Arc<Self>, stays_awake: bool) -> Result<bool, Broken> {
        let mut untold = 0;
        while let Some(head) = self.take()? {
            self.begin(head);
            untold += 1;
            if untold == TOLD_AT_ONCE {
                self.tell();
                untold = 0;
            }
        }
        self.tell();
        if stays_awake && self.comes_soon() {
            return Ok(true);
        }
        let memory = self.memory.memory();
        lock(&self.ends).queue.enable_notification(&*memory).map_err(|e| Broken(e.to_string()))
    }

    /// True as soon as there is a request; false if none comes in a moment.
    fn comes_soon(&self) -> bool {
        let begin = Instant::now();
        while begin.elapsed() < AWAKE {
            if self.has_more() {
                return true;
            }
            std::hint::spin_loop();
        }
        false
    }

    fn take(&self) -> Result<Option<u16>, Broken> {
        let memory = self.memory.memory();
        let mut ends = lock(&self.ends);
        let taken = ends.queue.iter(memory).map_err(|e| Broken(e.to_string()))?.next();
        let head = taken.map(|chain| chain.head_index());
        if let (Some(head), Some(tracker)) = (head, &mut ends.tracker) {
            tracker.take(head);
        }
        Ok(head)
    }

    /// Carries a request out, here or elsewhere.
    fn begin(self: &Arc<Self>, head: u16) {
        step();
        let memory = self.memory.memory();
        let request = match Request::at(head, self.table, &memory, &self.disk) {
            Ok(request) => request,
            Err(Malformed(why)) => {
                if !self.told.swap(true, Relaxed) {
                    errln!(
                        "seawall: the guest of {} made a request that cannot be answered: {why}",
                        self.name()
                    );
                }
                return self.answer(head, 0);
            }
        };
        if let Some(bytes) = request.moves() {
            let pause = self.disk.pace.take(bytes);
            if !pause.is_zero() {
                self.tell();
                std::thread::sleep(pause);
            }
        }
        match request.carry_out(&memory, &self.disk, Patience::None) {
            Ok(written) => self.answer(head, written),
            Err(MustWait) if request.is_flush() && self.is_alone() => self.finish_here(head, &request),
            Err(MustWait) => self.begin_elsewhere(head, request),
        }
    }

    /// True if a flush may be waited for here: nothing else is asked for, as after the last ones. To hand it to another thread, and
    /// to be woken by that, takes longer than many a log.
    fn is_alone(&self) -> bool {
        let crowded = self.crowded.load(Relaxed);
        if crowded > 0 {
            self.crowded.store(crowded - 1, Relaxed);
        }
        crowded == 0 && !self.has_more()
    }

    fn finish_here(&self, head: u16, request: &Request) {
        self.tell();
        let memory = self.memory.memory();
        if let Ok(written) = request.carry_out(&memory, &self.disk, Patience::Any) {
            self.answer(head, written);
        }
        if self.has_more() {
            self.crowded.store(CROWDED, Relaxed);
        }
    }

    /// True if the guest has asked for more.
    fn has_more(&self) -> bool {
        let memory = self.memory.memory();
        let ends = lock(&self.ends);
        let next = ends.queue.next_avail();
        ends.queue.avail_idx(&*memory, Acquire).is_ok_and(|end| end.0 != next)
    }

    fn begin_elsewhere(self: &Arc<Self>, head: u16, request: Request) {
        *lock(&self.elsewhere.0) += 1;
        let shared = Arc::clone(self);
        self.disk.workers.run(move || {
            let memory = shared.memory.memory();
            if let Ok(written) = request.carry_out(&memory, &shared.disk, Patience::Any) {
                shared.answer(head, written);
            }
            shared.tell();
            let (elsewhere, changed) = &shared.elsewhere;
            *lock(elsewhere) -= 1;
            changed.notify_all();
        });
    }

    fn answer(&self, head: u16, written: u32) {
        step();
        let memory = self.memory.memory();
        let Ends { queue, tracker } = &mut *lock(&self.ends);
        if let Some(tracker) = tracker {
            tracker.answering(head);
        }
        step();
        // The ring's memory was checked when it began, and can only be gone with the guest.
        let is_there = queue.add_used(&*memory, head, written).is_ok();
        step();
        if let Some(tracker) = tracker.as_mut().filter(|_| is_there) {
            tracker.answered(head, queue.next_used());
        }
        step();
    }

    /// Tells the guest that there are answers, if it wants to hear.
    fn tell(&self) {
        let memory = self.memory.memory();
        let wants = lock(&self.ends).queue.needs_notification(&*memory).unwrap_or(true);
        if wants && let Some(call) = &*lock(&self.call) {
            tell(call);
        }
    }
}

/// Has the guest look for answers.
pub fn tell(mut call: &File) {
    let _ = call.write_all(&1_u64.to_ne_bytes());
}

/// Waits for requests. True if it is over.
fn wait(kick: &File, stop: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(kick, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
    let _ = poll(&mut fds, None);
    if !fds[1].revents().is_empty() {
        return true;
    }
    if fds[0].revents().contains(PollFlags::IN) {
        let mut kick: &File = kick;
        let _ = kick.read(&mut [0; 8]);
    }
    false
}
