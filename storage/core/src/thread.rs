//! Threads of this machine, by their numbers: which one this is, whether one has ended, and what one is doing.
//!
//! Numbers belong to a process-id namespace. Those of another namespace mean nothing here, and are never looked up.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};

use rustix::fs::{Mode, OFlags, RawDir, open, stat};
use rustix::process::getpid;
use rustix::thread::gettid;
use seawall_media::signals::is_gone;
use seawall_media::sim;

/// A thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Process and thread in one word; never 0.
    pub word: u64,
    /// The namespace that these numbers belong to; 0 if that is not known.
    pub namespace: u64,
}

/// What a thread is doing, as far as it tells an interrupted thread from a busy one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doing {
    /// It runs, could run, or waits for a device.
    Works,
    /// It sleeps, or was stopped: a thread of a frozen control group seems to sleep (version 2 of control groups), or
    /// to wait for a device (version 1).
    StandsStill,
    /// It has ended, and nobody has reaped it yet.
    Ended,
    /// It cannot be looked at from here.
    Unknown,
}

impl Thread {
    /// This one.
    pub fn this() -> Self {
        if let Some(simulated) = sim::process() {
            return Self { word: u64::from(simulated) << 32 | u64::from(simulated), namespace: 0 };
        }
        let (pid, tid) = (getpid().as_raw_pid() as u32, gettid().as_raw_pid() as u32);
        Self { word: u64::from(pid) << 32 | u64::from(tid), namespace: namespace(pid) }
    }

    /// True if both are threads of one process.
    pub fn is_of_process_of(self, other: Self) -> bool {
        self.word >> 32 == other.word >> 32 && self.namespace == other.namespace
    }

    /// True if this thread can look up numbers of its namespace.
    pub fn is_near(self) -> bool {
        self.namespace == Self::this().namespace
    }

    /// True if it has ended and was reaped. This is about the thread: its process may live on without it, because
    /// another of its threads has called exec.
    pub fn is_dead(self) -> bool {
        let (pid, tid) = self.numbers();
        sim::is_dead(pid).unwrap_or_else(|| self.is_near() && is_gone(pid as i32, tid as i32))
    }

    /// What it is doing.
    pub fn doing(self) -> Doing {
        if !self.is_near() {
            return Doing::Unknown;
        }
        let (pid, tid) = self.numbers();
        let mut name = Text::default();
        let task = Task { pid, name: name.number(tid).bytes() };
        match task.state() {
            Some(b'R' | b'D') if !task.waits_in_a_halt() => Doing::Works,
            Some(b'Z' | b'X') => Doing::Ended,
            Some(_) => Doing::StandsStill,
            None => Doing::Unknown,
        }
    }

    fn numbers(self) -> (u32, u32) {
        ((self.word >> 32) as u32, self.word as u32)
    }
}

/// One letter for a thread's state, as in proc_pid_stat(5): `R`, `S`, `T` (stopped), `t` (by a debugger) and so on.
/// `None` if it is gone, or may not be inspected.
pub fn state(pid: u32, tid: u32) -> Option<u8> {
    let mut name = Text::default();
    Task { pid, name: name.number(tid).bytes() }.state()
}

/// True if a process was stopped (a signal, a debugger) or frozen (a control group of either version), as far as that
/// is visible: it is not for a process of another namespace.
pub fn is_halted(pid: u32) -> bool {
    let mut path = Text::default();
    path.add(b"/proc/").number(pid).add(b"/task\0");
    let Some(path) = path.c_str() else { return false };
    let Ok(tasks) = open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) else {
        return false;
    };
    let mut buffer = [MaybeUninit::uninit(); 1024];
    let mut entries = RawDir::new(tasks, &mut buffer);
    while let Some(Ok(entry)) = entries.next() {
        let name = entry.file_name().to_bytes();
        if name.first().is_some_and(u8::is_ascii_digit) && (Task { pid, name }).is_halted() {
            return true;
        }
    }
    false
}

/// A thread of a process, by its name in /proc.
struct Task<'a> {
    pid: u32,
    name: &'a [u8],
}

impl Task<'_> {
    /// The threads that were about to run show whether all threads of their process are halted.
    fn is_halted(&self) -> bool {
        self.waits_in_a_halt() || matches!(self.state(), Some(b'T' | b't'))
    }

    fn waits_in_a_halt(&self) -> bool {
        /// Where a thread waits in the kernel if version 1 or version 2 of control groups froze it, or if it was
        /// stopped.
        const HALTS: [&[u8]; 4] = [b"__refrigerator", b"get_signal", b"do_freezer_trap", b"do_signal_stop"];
        let mut function = [0; 32];
        self.read(b"/wchan\0", &mut function).is_some_and(|len| HALTS.contains(&&function[..len]))
    }

    /// Its state as in proc_pid_stat(5).
    fn state(&self) -> Option<u8> {
        let mut stat = [0; 128];
        let len = self.read(b"/stat\0", &mut stat)?;
        // Its name, up to 16 bytes, may hold anything; the state follows behind it.
        let name = stat[..len].iter().rposition(|byte| *byte == b')')?;
        stat.get(name + 2).copied()
    }

    /// Reads the beginning of one of its files.
    fn read(&self, file: &[u8], into: &mut [u8]) -> Option<usize> {
        let mut path = Text::default();
        path.add(b"/proc/").number(self.pid).add(b"/task/").add(self.name).add(file);
        let file = open(path.c_str()?, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
        rustix::io::read(&file, into).ok()
    }
}

/// The process-id namespace of this process, read once: a process never changes it, but a child may be in another one.
fn namespace(pid: u32) -> u64 {
    static OF: AtomicU32 = AtomicU32::new(0);
    static KNOWN: AtomicU64 = AtomicU64::new(0);
    if OF.load(Acquire) != pid {
        KNOWN.store(stat(c"/proc/self/ns/pid").map_or(0, |found| found.st_ino), Relaxed);
        OF.store(pid, Release);
    }
    KNOWN.load(Relaxed)
}

/// A short path under construction, without an allocation.
struct Text {
    bytes: [u8; 64],
    len: usize,
}

impl Default for Text {
    fn default() -> Self {
        Self { bytes: [0; 64], len: 0 }
    }
}

impl Text {
    fn add(&mut self, bytes: &[u8]) -> &mut Self {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
        self
    }

    fn number(&mut self, number: u32) -> &mut Self {
        let digits = number.checked_ilog10().unwrap_or(0) + 1;
        (0..digits)
            .rev()
            .fold(self, |text, place| text.add(&[b'0' + (number / 10_u32.pow(place) % 10) as u8]))
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn c_str(&self) -> Option<&core::ffi::CStr> {
        core::ffi::CStr::from_bytes_with_nul(self.bytes()).ok()
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;
    use rustix::process::{Pid, Signal, kill_process};

    fn of(child: &std::process::Child) -> Thread {
        Thread { word: u64::from(child.id()) << 32 | u64::from(child.id()), ..Thread::this() }
    }

    fn until(thread: Thread, doing: Doing) {
        while thread.doing() != doing {
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_others_do_is_seen() {
        assert_eq!((Thread::this().doing(), Thread::this().is_dead()), (Doing::Works, false));
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("spawned");
        let thread = of(&child);
        until(thread, Doing::StandsStill);
        assert!(!is_halted(child.id()) && !is_halted(std::process::id()));
        kill_process(Pid::from_child(&child), Signal::STOP).expect("it lives");
        while !is_halted(child.id()) {
            std::thread::yield_now();
        }
        assert_eq!(thread.doing(), Doing::StandsStill);
        assert_eq!(Thread { namespace: 1, ..thread }.doing(), Doing::Unknown, "another one's number");
        child.kill().expect("killed");
        until(thread, Doing::Ended);
        assert!(!thread.is_dead(), "its id still exists");
        child.wait().expect("reaped");
        assert!(thread.is_dead() && !Thread { namespace: 1, ..thread }.is_dead());
    }

    #[test]
    fn numbers_are_decimal() {
        for number in [0, 7, 10, 4_194_304, u32::MAX] {
            let mut text = Text::default();
            text.number(number).add(b"\0");
            assert_eq!(text.c_str().and_then(|text| text.to_str().ok()), Some(number.to_string().as_str()));
        }
    }
}
