//! Processes of this machine, as /proc shows them: which there are, whether one still lives, and where to look at it.
//!
//! A process is its threads. The first one may end before the others, by itself (`pthread_exit` in `main`) or because the
//! process was killed while another one waits for the disk. /proc/PID then shows a zombie without files and mappings, although
//! the others still have them and write.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::PathBuf;

/// PF_EXITING among a thread's flags.
const EXITING: u64 = 0x4;

/// What /proc/PID/stat, or that of a thread, says (proc_pid_stat(5)). Times are in clock ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// One letter: `R`, `S`, `Z` and so on. A process's is that of its first thread.
    pub state: char,
    /// The parent.
    pub parent: u32,
    /// The process group.
    pub group: i32,
    /// The kernel's flags of the thread.
    flags: u64,
    /// Processor time that it took.
    pub took: u64,
    /// Processor time that those of its children took that it has waited for.
    pub children_took: u64,
    /// How many threads the process has; a first one that has ended counts.
    pub threads: u32,
    /// When it started, since the machine did.
    pub started: u64,
    /// The program that it executes now.
    pub program: Program,
}

/// Which of the programs that a process executes, one after the other: where the code, the stack and the environment of this
/// one are. All 0 for a process that has ended, or whose memory may not be seen; the environment's alone while the kernel has
/// yet to write it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    code: u64,
    stack: u64,
    environment: u64,
}

impl Stat {
    fn parse(text: &str) -> Option<Self> {
        // The name in parentheses may hold anything, parentheses too: what follows the last one is regular.
        let fields: Vec<&str> = text.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        let address = |at: usize| number(at).unwrap_or(0);
        Some(Self {
            state: fields.first()?.chars().next()?,
            parent: number(1)? as u32,
            group: fields.get(2)?.parse().ok()?,
            flags: number(6)?,
            took: number(11)? + number(12)?,
            children_took: number(13)? + number(14)?,
            threads: number(17)? as u32,
            started: number(19)?,
            program: Program { code: address(23), stack: address(25), environment: address(47) },
        })
    }

    /// True if this thread has ended: of a process that has no other, that it has.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }

    /// True if this thread will never again run code of its program nor make a system call.
    pub fn is_exiting(&self) -> bool {
        self.has_ended() || self.flags & EXITING != 0
    }

    /// True while a thread of the process lives.
    pub fn lives(&self) -> bool {
        !self.has_ended() || self.threads > 1
    }
}

/// A process. `None` if there is none, or it may not be seen.
pub fn stat(pid: u32) -> Option<Stat> {
    Stat::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// What several looks at a process find while it executes one program. Where it has executed another one meanwhile, the first
/// looks may have seen the old one and the last ones the new one, so it is looked at again. `None`: it has ended.
pub fn seen_whole<T>(pid: u32, looks: impl Fn() -> T) -> Option<T> {
    let program = || stat(pid).filter(Stat::lives).map(|stat| (stat.started, stat.program));
    let mut before = program()?;
    loop {
        let seen = looks();
        let after = program()?;
        if after == before {
            return Some(seen);
        }
        before = after;
    }
}

/// One thread of a process.
pub fn stat_of_thread(pid: u32, thread: u32) -> Option<Stat> {
    Stat::parse(&fs::read_to_string(format!("/proc/{pid}/task/{thread}/stat")).ok()?)
}

/// All processes.
pub fn all() -> impl Iterator<Item = u32> {
    numbers("/proc".to_owned())
}

/// The process and all that live below it, by parentage: it first, and parents before their children.
pub fn tree(root: u32) -> Vec<u32> {
    let mut children: HashMap<u32, Vec<u32>> = HashMap::new();
    for pid in all() {
        if let Some(stat) = stat(pid).filter(Stat::lives) {
            children.entry(stat.parent).or_default().push(pid);
        }
    }
    let mut found = vec![root];
    let mut next = 0;
    while let Some(parent) = found.get(next) {
        let below = children.remove(parent);
        found.extend(below.unwrap_or_default());
        next += 1;
    }
    found
}

/// The threads of a process, its first one too if that has ended before the others.
pub fn threads(pid: u32) -> impl Iterator<Item = u32> {
    numbers(format!("/proc/{pid}/task"))
}

fn numbers(directory: String) -> impl Iterator<Item = u32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// True while a thread of the process lives: one that has ended, and that nobody has waited for, does not. A killed process
/// lives, and has its files and memory, until its last thread has come back from the disk.
pub fn is_alive(pid: u32) -> bool {
    // /proc may be mounted so that it shows nobody else's processes.
    stat(pid).map_or_else(|| exists(pid), |stat| stat.lives())
}

fn exists(pid: u32) -> bool {
    use rustix::process::{Pid, test_kill_process};
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}

/// Where the files, mappings, program and environment of a process are to be seen: /proc/PID, or below it one of the threads
/// that live when the first one has ended.
pub fn place(pid: u32) -> PathBuf {
    let whole = PathBuf::from(format!("/proc/{pid}"));
    let has_no_program = |place: &PathBuf| {
        place.join("exe").read_link().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    // One that has ended has no program any more. Nor have the kernel's own.
    if !has_no_program(&whole) {
        return whole;
    }
    let mut tasks = threads(pid).map(|thread| whole.join("task").join(thread.to_string()));
    tasks.find(|task| !has_no_program(task)).unwrap_or(whole)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};
    use std::process::{Child, Command, Stdio};

    use super::*;

    #[test]
    fn names_may_hold_anything() {
        let text = "7 (a) (b) R 3 5 5 0 -1 4194308 9 9 9 9 10 20 30 40 20 0 4 0 77 1 1\n";
        let stat = Stat::parse(text).expect("whole");
        let expected = Stat {
            state: 'R',
            parent: 3,
            group: 5,
            flags: 4_194_308,
            took: 30,
            children_took: 70,
            threads: 4,
            started: 77,
            program: Program { code: 0, stack: 0, environment: 0 },
        };
        assert_eq!(stat, expected);
        assert!(stat.is_exiting() && !stat.has_ended());
        assert_eq!(Stat::parse("7 (cut"), None);
    }

    #[test]
    fn this_process_lives_and_is_seen_where_it_is() {
        let me = std::process::id();
        assert!(is_alive(me) && all().any(|pid| pid == me) && threads(me).any(|thread| thread == me));
        assert_eq!(place(me), PathBuf::from(format!("/proc/{me}")));
        assert!(stat_of_thread(me, me).is_some_and(|stat| !stat.is_exiting()));
    }

    #[test]
    fn a_process_and_its_child_are_a_tree() {
        let me = std::process::id();
        let mut child = Command::new("sleep").arg("60").spawn().expect("spawned");
        let found = tree(me);
        child.kill().expect("killed");
        child.wait().expect("reaped");
        assert_eq!(found[0], me);
        assert!(found[1..].contains(&child.id()), "{found:?}");
    }

    /// Of a process of another pool that ended between two looks, the daemon believed that it was about to join.
    #[test]
    fn regression_a_process_that_executes_another_program_between_two_looks_is_looked_at_again() {
        let program = |child: &Child| place(child.id()).join("exe").read_link().expect("it lives");
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", "read go; exec sleep 60"]).stdin(Stdio::piped());
        let mut child = shell.spawn().expect("spawned");
        let before = program(&child);
        let input = Cell::new(child.stdin.take());
        let seen = seen_whole(child.id(), || {
            let first = program(&child);
            // Its `read` ends.
            drop(input.take());
            while program(&child) == before {
                std::thread::yield_now();
            }
            [first, program(&child)]
        });
        let [first, last] = seen.expect("it lives");
        assert!(first == last && last != before, "{first:?}, {last:?}");
        let (id, child) = (child.id(), RefCell::new(child));
        let ended = seen_whole(id, || {
            let mut child = child.borrow_mut();
            child.kill().expect("killed");
            child.wait().expect("reaped");
        });
        assert_eq!(ended, None);
    }

    #[test]
    fn a_zombie_is_not_alive() {
        let mut child = Command::new("true").spawn().expect("spawned");
        while !stat(child.id()).expect("not waited for").has_ended() {
            std::thread::yield_now();
        }
        assert!(!is_alive(child.id()));
        child.wait().expect("reaped");
        assert!(!is_alive(child.id()));
    }

    /// As `pthread_exit` in `main` does it.
    #[test]
    fn a_process_lives_when_its_first_thread_has_ended_before_another() {
        // SAFETY: the child starts a thread and ends; glibc makes its allocator anew in a child.
        let child = unsafe { libc::fork() };
        if child == 0 {
            std::thread::spawn(|| std::thread::sleep(std::time::Duration::from_secs(60)));
            // SAFETY: ends this thread alone; nothing on its stack is used by the other one.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
        }
        let pid = u32::try_from(child).expect("forked");
        while !stat(pid).expect("not waited for").has_ended() {
            std::thread::yield_now();
        }
        assert!(is_alive(pid));
        let (whole, place) = (PathBuf::from(format!("/proc/{pid}")), place(pid));
        assert!(place.starts_with(whole.join("task")), "{}", place.display());
        assert!(fs::read(whole.join("maps")).expect("read").is_empty(), "which is why");
        assert!(!fs::read(place.join("maps")).expect("read").is_empty());
        // SAFETY: a child of ours; no memory is passed.
        unsafe {
            libc::kill(child, libc::SIGKILL);
            libc::waitpid(child, std::ptr::null_mut(), 0);
        }
        assert!(!is_alive(pid));
    }
}
