//! The one place that needs `unsafe`: memory that the kernel writes requests into.
//!
//! An entry belongs to whoever has it: the kernel from [`Queue::give`] on, its holder from [`Queue::wait`] on. It is
//! never freed: the kernel knows its address as long as the mount is there, and so does this process.

#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use io_uring::{IoUring, cqueue, opcode, squeue, types};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::abi::{COMMIT_AND_FETCH, Command, Header, InHeader, OutHeader, REGISTER};

/// Of the completion that says that somebody else has something for the queue.
const WOKEN: u64 = 0;

#[repr(C)]
struct Vector {
    at: *mut u8,
    len: usize,
}

/// A request, and room for its answer.
pub struct UringEntry {
    header: Header,
    payload: Box<[u8]>,
    vectors: [Vector; 2],
    /// The kernel has taken it, and knows its address.
    is_known: bool,
}

// SAFETY: the vectors point to what the entry owns itself.
unsafe impl Send for UringEntry {}

impl UringEntry {
    /// One with room for `longest` bytes.
    pub fn new(longest: usize) -> &'static mut Self {
        let nothing = || Vector { at: std::ptr::null_mut(), len: 0 };
        let entry = Box::leak(Box::new(Self {
            header: Header::new_zeroed(),
            payload: vec![0; longest].into_boxed_slice(),
            vectors: [nothing(), nothing()],
            is_known: false,
        }));
        let header = Vector { at: (&raw mut entry.header).cast(), len: size_of::<Header>() };
        entry.vectors = [header, Vector { at: entry.payload.as_mut_ptr(), len: longest }];
        entry
    }

    /// The header of the request: the caller, and what it asks for.
    pub fn request(&self) -> InHeader {
        InHeader::read_from_prefix(&self.header.in_out).map_or_else(|_| InHeader::default(), |(it, _)| it)
    }

    /// What the operation has of fixed size.
    pub fn operation(&self) -> &[u8] {
        &self.header.operation
    }

    /// What came with it.
    pub fn data(&self) -> &[u8] {
        &self.payload[..self.payload.len().min(self.header.place.payload as usize)]
    }

    /// Room for the answer.
    pub fn room(&mut self) -> &mut [u8] {
        &mut self.payload
    }

    /// Writes a request, as the kernel would.
    #[cfg(test)]
    pub fn ask(&mut self, head: InHeader) {
        self.header.in_out[..size_of::<InHeader>()].copy_from_slice(head.as_bytes());
    }

    /// The answer that the kernel would get.
    #[cfg(test)]
    pub fn said(&self) -> OutHeader {
        OutHeader::read_from_prefix(&self.header.in_out).expect("long enough").0
    }

    /// Writes the answer's header: so many bytes of the payload, or an error (an errno, positive).
    pub fn answer(&mut self, done: Result<usize, i32>) {
        let unique = self.request().unique;
        let payload = done.unwrap_or(0);
        let len = (size_of::<OutHeader>() + payload) as u32;
        let head = OutHeader { len, error: -done.err().unwrap_or(0), unique };
        self.header.in_out[..size_of::<OutHeader>()].copy_from_slice(head.as_bytes());
        self.header.place.payload = payload as u32;
    }
}

/// What a wait brought.
#[derive(Default)]
pub struct Arrived {
    /// Requests.
    pub entries: Vec<&'static mut UringEntry>,
    /// Somebody has woken the queue.
    pub woken: bool,
    /// Entries that the kernel will not use again.
    pub gone: usize,
    /// New ones among them, which it has not taken.
    pub unused: Vec<&'static mut UringEntry>,
    /// Why, the last one's.
    pub error: Option<io::Error>,
}

impl Arrived {
    fn note(&mut self, entry: &'static mut UringEntry, result: i32) {
        if result == 0 {
            entry.is_known = true;
            return self.entries.push(entry);
        }
        self.gone += 1;
        self.error = Some(io::Error::from_raw_os_error(-result));
        if !entry.is_known {
            self.unused.push(entry);
        }
    }

    fn is_nothing(&self) -> bool {
        self.entries.is_empty() && !self.woken && self.gone == 0
    }
}

/// One processor's.
pub struct Queue {
    uring: IoUring<squeue::Entry128, cqueue::Entry>,
    number: u16,
    wake: OwnedFd,
    /// What came while the entries were registered: with the last queue's the kernel begins to send requests.
    early: Arrived,
}

impl Queue {
    /// For a processor, with room for so many entries. Nothing is registered yet.
    ///
    /// # Errors
    /// What the kernel says: no io_uring, or not for us.
    pub fn new(number: u16, depth: usize, wake: OwnedFd) -> io::Result<Self> {
        let uring = IoUring::builder().build((depth as u32 + 1).next_power_of_two())?;
        uring.submitter().register_files_sparse(1)?;
        Ok(Self { uring, number, wake, early: Arrived::default() })
    }

    /// Gives new entries to the kernel, for requests that come by `device`. Returns how many it took: some.
    ///
    /// # Errors
    /// What the kernel says: it has not, or is not to use, FUSE over io_uring. It took none.
    pub fn register(
        &mut self,
        device: BorrowedFd<'_>,
        entries: Vec<&'static mut UringEntry>,
    ) -> io::Result<usize> {
        let count = entries.len();
        self.uring.submitter().register_files_update(0, &[device.as_raw_fd()])?;
        self.listen()?;
        for entry in entries {
            self.push(REGISTER, entry)?;
        }
        while !self.uring.submission().is_empty() {
            self.tell(0)?;
        }
        // A refusal is there at once. A request may be, too.
        self.early = self.arrived();
        let refused = std::mem::take(&mut self.early.gone);
        match self.early.error.take() {
            Some(error) if refused == count => Err(error),
            _ => Ok(count - refused),
        }
    }

    /// Gives one more entry to the kernel.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn add(&mut self, entry: &'static mut UringEntry) -> io::Result<()> {
        self.push(REGISTER, entry)
    }

    /// Gives an answer to the kernel, and the entry for the next request.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn give(&mut self, entry: &'static mut UringEntry) -> io::Result<()> {
        self.push(COMMIT_AND_FETCH, entry)
    }

    /// Tells the kernel what was given, and waits until there is something.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn wait(&mut self) -> io::Result<Arrived> {
        let mut arrived = std::mem::take(&mut self.early);
        if arrived.is_nothing() {
            self.tell(1)?;
            arrived = self.arrived();
        }
        if arrived.woken {
            let _ = rustix::io::read(&self.wake, &mut [0u8; 8]);
            self.listen()?;
        }
        Ok(arrived)
    }

    fn arrived(&mut self) -> Arrived {
        let mut arrived = Arrived::default();
        for seen in self.uring.completion() {
            match (seen.user_data(), seen.result()) {
                (WOKEN, _) => arrived.woken = true,
                (at, result) => {
                    // SAFETY: the address is that of an entry that `push` gave away; the kernel is done with it.
                    let entry = unsafe { &mut *(at as *mut UringEntry) };
                    arrived.note(entry, result);
                }
            }
        }
        arrived
    }

    /// Tells the kernel what was pushed, and waits for so many completions. Less may be there, after a signal, or while
    /// the kernel has no memory to take a request.
    fn tell(&self, wait_for: usize) -> io::Result<()> {
        match self.uring.submit_and_wait(wait_for) {
            Err(error) if !is_for_now(&error) => Err(error),
            _ => Ok(()),
        }
    }

    fn listen(&mut self) -> io::Result<()> {
        const READABLE: u32 = 1;
        let poll = opcode::PollAdd::new(types::Fd(self.wake.as_raw_fd()), READABLE).build().user_data(WOKEN);
        self.submit(&poll.into())
    }

    fn push(&mut self, command: u32, entry: &'static mut UringEntry) -> io::Result<()> {
        const LEN_AT: usize = 24;
        let mut said = [0; 80];
        let commit = entry.header.place.commit;
        let words = Command { flags: 0, commit, queue: self.number, padding: [0; 6] };
        said[..size_of::<Command>()].copy_from_slice(words.as_bytes());
        let vectors = entry.vectors.as_ptr() as u64;
        let built = opcode::UringCmd80::new(types::Fixed(0), command).cmd(said).addr(Some(vectors));
        let mut built = built.build().user_data(std::ptr::from_mut(entry) as u64);
        // SAFETY: an `Entry128` is a `struct io_uring_sqe`, of 128 bytes; the builder does not set its `len`.
        unsafe { (&raw mut built).cast::<u8>().add(LEN_AT).cast::<u32>().write(2) };
        self.submit(&built)
    }

    fn submit(&mut self, entry: &squeue::Entry128) -> io::Result<()> {
        // SAFETY: what it points to, an entry of this module or nothing, is never freed.
        while unsafe { self.uring.submission().push(entry) }.is_err() {
            self.tell(0)?;
        }
        Ok(())
    }
}

fn is_for_now(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy
    )
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;
    use std::sync::mpsc::{Receiver, channel};
    use std::time::Duration;

    use rustix::event::{EventfdFlags, eventfd};

    use super::*;

    const ENTRIES: usize = 4;

    fn queue() -> Queue {
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an eventfd");
        Queue::new(0, ENTRIES, wake).expect("io_uring")
    }

    fn entries() -> Vec<&'static mut UringEntry> {
        (0..ENTRIES).map(|_| UringEntry::new(4096)).collect()
    }

    /// On a thread, for it may wait for ever.
    fn waited(mut queue: Queue) -> Receiver<usize> {
        let (tell, told) = channel();
        std::thread::spawn(move || tell.send(queue.wait().map_or(0, |arrived| arrived.entries.len())));
        told
    }

    /// /dev/null takes every command and is done with it at once, as a kernel that had requests waiting.
    #[test]
    fn requests_that_come_while_entries_are_registered_are_kept() {
        let null = std::fs::File::open("/dev/null").expect("/dev/null");
        let mut queue = queue();
        match queue.register(null.as_fd(), entries()) {
            Err(error) => return errln!("skipped: /dev/null takes no commands (Linux 6.1): {error}"),
            Ok(taken) => assert_eq!(taken, ENTRIES),
        }
        assert_eq!(waited(queue).recv_timeout(Duration::from_secs(10)), Ok(ENTRIES));
    }

    #[test]
    fn who_takes_no_entries_is_said_to() {
        let file = std::fs::File::open("/proc/self/exe").expect("a file");
        let mut queue = queue();
        let refused = queue.register(file.as_fd(), entries()).expect_err("not a FUSE device");
        assert!(matches!(refused.raw_os_error(), Some(95 | 25)), "{refused}");
        queue.add(UringEntry::new(4096)).expect("pushed");
        let again = queue.wait().expect("it says so");
        assert_eq!((again.entries.len(), again.gone, again.unused.len()), (0, 1, 1), "{:?}", again.error);
    }
}
