//! The connection to a backend, and its requests, one by one or many at once.

use std::fs::File;
use std::io::Read;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use vhost::vhost_user::message::{
    VhostUserConfigFlags, VhostUserHeaderFlag, VhostUserInflight, VhostUserProtocolFeatures,
};
use vhost::vhost_user::{Frontend, VhostUserFrontend};
use vhost::{VhostBackend, VhostUserMemoryRegionInfo, VringConfigData};
use vm_memory::{Bytes, FileOffset, GuestAddress, GuestMemoryBackend, GuestMemoryMmap};
use vmm_sys_util::eventfd::EventFd;

use crate::ring::{BYTES, Done, Op, QUEUE, Raw, Ring};
use crate::trouble::{Trouble, other};

/// Features that this guest has a use for, if the backend offers them.
const WANTED: u64 = 1 << 32 | 1 << 30 | 1 << 29 | 1 << 14 | 1 << 13 | 1 << 12 | 1 << 9 | 1 << 5;
/// The backend's message that the configuration has changed (VHOST_USER_BACKEND_CONFIG_CHANGE_MSG).
const CONFIG_CHANGE: u32 = 2;
/// So long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);

fn config(front: &mut Frontend) -> Result<Vec<u8>, Trouble> {
    Ok(front.get_config(0, 60, VhostUserConfigFlags::empty(), &[0; 60]).map_err(other)?.1)
}

/// A guest with one disk.
pub struct Guest {
    socket: PathBuf,
    memory: GuestMemoryMmap<()>,
    rings: Vec<Ring>,
    front: Option<Frontend>,
    /// By which the backend says that the disk is another one by now.
    back: Option<UnixStream>,
    ends: Vec<[EventFd; 2]>,
    /// Which queues' answers the guest has heard of since it connected: a kernel does not look without an interrupt.
    is_told: Vec<bool>,
    inflight: Option<(VhostUserInflight, File)>,
    features: u64,
    unwanted: u64,
    config: Vec<u8>,
}

impl Guest {
    /// Connects, with so many queues.
    ///
    /// # Errors
    /// The backend is not there, or refuses.
    pub fn connect(socket: &Path, queues: u16) -> Result<Self, Trouble> {
        let memory = memory_of(BYTES * u64::from(queues))?;
        let rings = (0..queues).map(|i| Ring::new(memory.clone(), BYTES * u64::from(i))).collect();
        Self::go_on(socket, memory, rings, 0)
    }

    /// Connects with these queues as they are.
    pub(crate) fn go_on(
        socket: &Path,
        memory: GuestMemoryMmap<()>,
        rings: Vec<Ring>,
        unwanted: u64,
    ) -> Result<Self, Trouble> {
        let socket = socket.to_owned();
        let (front, back, inflight, config) = (None, None, None, Vec::new());
        let mut guest = Self {
            socket,
            memory,
            rings,
            front,
            back,
            ends: Vec::new(),
            is_told: Vec::new(),
            inflight,
            features: 0,
            unwanted,
            config,
        };
        guest.connect_again()?;
        Ok(guest)
    }

    /// Connects to the next backend, which finds what the former one left.
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub fn connect_again(&mut self) -> Result<(), Trouble> {
        let queues = self.rings.len();
        // A backend has one guest at a time.
        self.front = None;
        let mut front = Frontend::connect(&self.socket, queues as u64).map_err(other)?;
        self.agree(&mut front)?;
        let region = self.memory.iter().next().ok_or_else(|| other("no memory"))?;
        let region = VhostUserMemoryRegionInfo::from_guest_region(region).map_err(other)?;
        let memory_at = region.userspace_addr;
        front.set_mem_table(&[region]).map_err(other)?;
        let started = |(i, ring)| start(&mut front, i, ring, memory_at);
        self.ends = self.rings.iter().enumerate().map(started).collect::<Result<_, _>>()?;
        self.is_told = vec![false; queues];
        self.front = Some(front);
        Ok(())
    }

    /// What the backend can do, of which we want a part, and the disk's configuration.
    fn agree(&mut self, front: &mut Frontend) -> Result<(), Trouble> {
        let offered = front.get_features().map_err(other)?;
        self.features = offered & WANTED & !self.unwanted;
        front.set_owner().map_err(other)?;
        let protocol = front.get_protocol_features().map_err(other)? & protocol_wanted();
        front.set_protocol_features(protocol).map_err(other)?;
        front.set_hdr_flags(VhostUserHeaderFlag::NEED_REPLY);
        front.set_features(self.features).map_err(other)?;
        self.config = config(front)?;
        if protocol.contains(VhostUserProtocolFeatures::BACKEND_REQ) {
            let (ours, theirs) = UnixStream::pair().map_err(other)?;
            front.set_backend_request_fd(&theirs).map_err(other)?;
            self.back = Some(ours);
        }
        if protocol.contains(VhostUserProtocolFeatures::INFLIGHT_SHMFD) {
            self.keep_inflight(front)?;
        }
        Ok(())
    }

    fn keep_inflight(&mut self, front: &mut Frontend) -> Result<(), Trouble> {
        if self.inflight.is_none() {
            let wanted = VhostUserInflight::new(0, 0, self.rings.len() as u16, QUEUE);
            self.inflight = Some(front.get_inflight_fd(&wanted).map_err(other)?);
        }
        match &self.inflight {
            Some((what, file)) => front.set_inflight_fd(what, file.as_raw_fd()).map_err(other),
            None => Ok(()),
        }
    }

    /// Waits until the backend says that the configuration has changed, and reads it again.
    ///
    /// # Errors
    /// It does not.
    pub fn hear_of_change(&mut self) -> Result<(), Trouble> {
        let mut back = self.back.as_ref().ok_or_else(|| other("the backend has no way back"))?;
        back.set_read_timeout(Some(PATIENCE)).map_err(other)?;
        let mut message = [0; 12];
        back.read_exact(&mut message).map_err(other)?;
        if message[..4] != CONFIG_CHANGE.to_le_bytes() {
            return Err(other("another message"));
        }
        self.config = config(self.front.as_mut().ok_or(Trouble::Gone)?)?;
        Ok(())
    }

    /// The disk's size, in bytes.
    pub fn bytes(&self) -> u64 {
        let capacity = self.config.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
        capacity * 512
    }

    /// What the backend and we can do.
    pub fn features(&self) -> u64 {
        self.features
    }

    /// The disk's configuration.
    pub fn config(&self) -> &[u8] {
        &self.config
    }

    /// What it will not ask for from its next connection on: features of the backend's.
    pub fn goes_without(&mut self, features: u64) {
        self.unwanted = features;
    }

    /// One of the queues.
    pub fn ring(&mut self, queue: usize) -> &mut Ring {
        &mut self.rings[queue]
    }

    /// Puts a request into a queue, and wakes the backend if it wants that. `None`: the queue is full.
    pub fn begin(&mut self, queue: usize, op: Op) -> Option<u16> {
        let ring = &mut self.rings[queue];
        let slot = ring.free()?;
        let before = ring.end();
        ring.put(slot, op);
        if ring.wants_kick(before) {
            self.kick(queue);
        }
        Some(slot)
    }

    /// Puts any descriptors there, and wakes the backend.
    pub fn begin_raw(&mut self, queue: usize, first: u16, chain: &[Raw]) {
        self.rings[queue].put_raw(first, chain);
        self.kick(queue);
    }

    /// Wakes the backend.
    pub fn kick(&self, queue: usize) {
        let _ = self.ends[queue][0].write(1);
    }

    /// The next answer of a queue.
    ///
    /// # Errors
    /// [`Trouble::Gone`], [`Trouble::Silent`].
    pub fn next(&mut self, queue: usize) -> Result<Done, Trouble> {
        self.next_within(queue, PATIENCE)
    }

    /// The same, with less patience.
    ///
    /// # Errors
    /// As [`next`](Self::next).
    pub fn next_within(&mut self, queue: usize, patience: Duration) -> Result<Done, Trouble> {
        let begin = Instant::now();
        loop {
            if self.is_told[queue]
                && let Some(done) = self.rings[queue].take()
            {
                return Ok(done);
            }
            let front = self.front.as_ref().ok_or(Trouble::Gone)?;
            let call = &self.ends[queue][1];
            // The descriptors live as long as their owners, which are ours.
            let mut fds = [
                PollFd::from_borrowed_fd(borrow(call), PollFlags::IN),
                PollFd::from_borrowed_fd(borrow(front), PollFlags::IN),
            ];
            let left = patience.saturating_sub(begin.elapsed());
            let limit = Timespec { tv_sec: left.as_secs() as i64, tv_nsec: left.subsec_nanos().into() };
            let _ = poll(&mut fds, Some(&limit));
            let (is_told, is_gone) = (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
            let has_all = !self.is_told[queue] || self.rings[queue].used_index() == self.rings[queue].taken();
            if is_told {
                let _ = call.read();
                self.is_told[queue] = true;
            } else if is_gone && has_all {
                self.front = None;
                return Err(Trouble::Gone);
            } else if left.is_zero() {
                return Err(Trouble::Silent);
            }
        }
    }

    /// A request and its answer, by the first queue, which must be empty.
    ///
    /// # Errors
    /// [`Trouble`].
    pub fn ask(&mut self, op: Op) -> Result<Vec<u8>, Trouble> {
        self.begin(0, op).ok_or_else(|| other("the queue is full"))?;
        match self.next(0)? {
            Done { status: 0, data, .. } => Ok(data),
            Done { status, .. } => Err(Trouble::Status(status)),
        }
    }

    /// Ends the connection, as QEMU does when the guest is shut down: every queue is stopped first.
    ///
    /// # Errors
    /// The backend is gone.
    pub fn end(self) -> Result<(), Trouble> {
        self.stop().map(drop)
    }

    /// The same. The queues as they are, and what the backend is not asked for.
    pub(crate) fn stop(mut self) -> Result<(Vec<Ring>, u64), Trouble> {
        let front = self.front.take().ok_or(Trouble::Gone)?;
        (0..self.rings.len()).try_for_each(|i| front.get_vring_base(i).map(drop).map_err(other))?;
        Ok((self.rings, self.unwanted))
    }

    /// The connection.
    pub(crate) fn connected(&mut self) -> Result<&mut Frontend, Trouble> {
        self.front.as_mut().ok_or(Trouble::Gone)
    }

    /// How long its memory is.
    pub(crate) fn memory_bytes(&self) -> u64 {
        BYTES * self.rings.len() as u64
    }

    /// All that is in it.
    pub(crate) fn content(&self) -> Result<Vec<u8>, Trouble> {
        let mut all = vec![0; self.memory_bytes() as usize];
        self.memory.read_slice(&mut all, GuestAddress(0)).map_err(other)?;
        Ok(all)
    }
}

fn protocol_wanted() -> VhostUserProtocolFeatures {
    VhostUserProtocolFeatures::CONFIG
        | VhostUserProtocolFeatures::REPLY_ACK
        | VhostUserProtocolFeatures::MQ
        | VhostUserProtocolFeatures::LOG_SHMFD
        | VhostUserProtocolFeatures::BACKEND_REQ
        | VhostUserProtocolFeatures::INFLIGHT_SHMFD
}

/// Hands a queue over, where it is and how far; the memory that holds it begins at this address. The ends by which the
/// guest and the backend wake each other.
fn start(front: &mut Frontend, i: usize, ring: &Ring, memory_at: u64) -> Result<[EventFd; 2], Trouble> {
    let end = || EventFd::new(libc_flags()).map_err(other);
    let ends = [end()?, end()?];
    let [table, available, used] = ring.places();
    let config = VringConfigData {
        queue_max_size: QUEUE,
        queue_size: QUEUE,
        flags: 0,
        desc_table_addr: memory_at + table,
        used_ring_addr: memory_at + used,
        avail_ring_addr: memory_at + available,
        log_addr: None,
    };
    front.set_vring_num(i, QUEUE).map_err(other)?;
    front.set_vring_addr(i, &config).map_err(other)?;
    front.set_vring_base(i, ring.used_index()).map_err(other)?;
    front.set_vring_call(i, &ends[1]).map_err(other)?;
    front.set_vring_kick(i, &ends[0]).map_err(other)?;
    front.set_vring_enable(i, true).map_err(other)?;
    ends[0].write(1).map_err(other)?;
    Ok(ends)
}

/// Memory of a guest's that a backend can be given.
pub(crate) fn memory_of(bytes: u64) -> Result<GuestMemoryMmap<()>, Trouble> {
    let file = memfd_create("guest", MemfdFlags::CLOEXEC).map_err(other)?;
    ftruncate(&file, bytes).map_err(other)?;
    let place = FileOffset::new(File::from(file), 0);
    GuestMemoryMmap::from_ranges_with_files([(GuestAddress(0), bytes as usize, Some(place))]).map_err(other)
}

fn borrow(fd: &impl AsRawFd) -> rustix::fd::BorrowedFd<'_> {
    borrowed::of(fd)
}

fn libc_flags() -> i32 {
    // EFD_CLOEXEC | EFD_NONBLOCK.
    0o2_000_000 | 0o4000
}

/// The one place with unsafe code: descriptors of types that do not lend them.
mod borrowed {
    #![allow(unsafe_code)]

    use std::os::fd::{AsRawFd, BorrowedFd};

    /// Lends it as long as its owner lives.
    pub fn of(owner: &impl AsRawFd) -> BorrowedFd<'_> {
        // SAFETY: the owner has it open, and is borrowed as long as this is.
        unsafe { BorrowedFd::borrow_raw(owner.as_raw_fd()) }
    }
}
