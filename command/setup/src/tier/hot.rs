//! How much of a server's memory is in use: how much was touched within 1 s, 2 s, 5 s … (its working set, W(T)).
//!
//! The kernel forgets which pages were touched (`/proc/PID/clear_refs`), and shows for each mapping how many were since
//! (`Referenced` in `/proc/PID/smaps`). That works on every kernel. It costs the server a walk over its page tables at the
//! start, and a fault-free TLB refill for each page afterwards.
//!
//! What it cannot see: how often a page was touched within a window, and huge pages that were reserved (hugetlb). Memory
//! that several processes share is touched by each through its own table: the truth lies between what the busiest one
//! touched and the sum of all, and both are given.
//!
//! How fast W(T) still grows at T is how much a memory of W(T) would have to fetch from the next tier
//! (Denning, "The working set model for program behavior", 1968).

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde::Serialize;

use super::server;
use crate::error::Error;

/// Windows, in seconds: those that fit into what was asked for.
const WINDOWS: [u64; 9] = [1, 2, 5, 10, 20, 60, 120, 300, 600];
/// Forgets which pages were touched (proc_pid_clear_refs(5)).
const FORGET: &str = "1";

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Hot {
    /// Processes that were there at the start.
    pub processes: usize,
    /// Bytes in memory: of single processes, and shared (once).
    pub resident: u64,
    /// Bytes of it that are in reserved huge pages, of which nothing is known.
    pub unseen: u64,
    /// The windows, shortest first.
    pub windows: Vec<Window>,
}

/// One window.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Window {
    /// Its length.
    pub seconds: f64,
    /// Bytes touched at least.
    pub least: u64,
    /// Bytes touched at most.
    pub most: u64,
}

/// A memory of this size, and what it would have to fetch.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Size {
    /// Bytes of fast memory.
    pub bytes: u64,
    /// What it holds was touched within so many seconds.
    pub seconds: f64,
    /// Bytes a second that would come from the next tier.
    pub fetched: f64,
}

impl Hot {
    /// What memories of other sizes would bring: one for each window but the last, whose growth nobody has seen.
    pub fn sizes(&self) -> Vec<Size> {
        let pairs = self.windows.windows(2);
        let size = |pair: &[Window]| {
            let (this, next) = (pair[0], pair[1]);
            let grown = next.most.saturating_sub(this.most) as f64;
            Size { bytes: this.most, seconds: this.seconds, fetched: grown / (next.seconds - this.seconds) }
        };
        pairs.map(size).collect()
    }
}

/// Measures for so long.
///
/// # Errors
/// There is no such server, or one may not look into it.
pub fn measure(target: &str, seconds: u64, mut say: impl FnMut(&Window)) -> Result<Hot, Error> {
    let pids = server::processes(target)?;
    let (first, rest) = pids.split_first().ok_or_else(|| Error::refused("there is no such server"))?;
    forget(*first)?;
    // One that has ended meanwhile touches nothing any more.
    rest.iter().for_each(|pid| drop(forget(*pid)));
    let begin = Instant::now();
    let (mut windows, mut last) = (Vec::new(), Seen::default());
    for length in WINDOWS.into_iter().filter(|length| *length <= seconds.max(1)) {
        sleep(Duration::from_secs(length).saturating_sub(begin.elapsed()));
        let seen = begin.elapsed().as_secs_f64();
        last = look(&pids);
        let window = Window { seconds: seen, least: last.least, most: last.most };
        say(&window);
        windows.push(window);
    }
    if last.resident == 0 {
        return Err(Error::refused("the server has ended"));
    }
    Ok(Hot { processes: pids.len(), resident: last.resident, unseen: last.unseen, windows })
}

fn forget(pid: u32) -> Result<(), Error> {
    let path = format!("/proc/{pid}/clear_refs");
    fs::write(&path, FORGET).map_err(|e| match e.kind() {
        std::io::ErrorKind::PermissionDenied => {
            Error::refused(format!("{path}: only its user and root may look into process {pid}"))
        }
        _ => Error::file(path.as_ref())(e),
    })
}

/// What all processes together have, and have touched.
#[derive(Default)]
struct Seen {
    resident: u64,
    unseen: u64,
    least: u64,
    most: u64,
}

fn look(pids: &[u32]) -> Seen {
    let each: Vec<Sum> = pids
        .iter()
        .filter_map(|pid| fs::read_to_string(format!("/proc/{pid}/smaps")).ok())
        .map(|text| parse(&text))
        .collect();
    join(&each)
}

fn join(each: &[Sum]) -> Seen {
    let sum = |of: fn(&Sum) -> u64| each.iter().map(of).sum::<u64>();
    let most = |of: fn(&Sum) -> u64| each.iter().map(of).max().unwrap_or(0);
    let (private, own) = (sum(|one| one.private), sum(|one| one.private_touched));
    // Each maps only what it has touched once: the largest has not all of it, and nobody has more than the mapping's size.
    let all = most(|one| one.shared_size);
    let shared = all.min(sum(|one| one.shared)).max(most(|one| one.shared));
    let touched = sum(|one| one.shared_touched).min(shared);
    Seen {
        resident: private + shared,
        unseen: most(|one| one.huge),
        least: own + most(|one| one.shared_touched),
        most: own + touched,
    }
}

/// One process, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub private: u64,
    pub private_touched: u64,
    pub shared: u64,
    pub shared_size: u64,
    pub shared_touched: u64,
    pub huge: u64,
}

/// Adds the mappings up: what is anonymous, and what processes share; not programs, nor files, which are the page cache's.
pub(super) fn parse(text: &str) -> Sum {
    let (mut sum, mut kind) = (Sum::default(), Kind::File);
    for line in text.lines() {
        let Some((key, value)) = field(line) else {
            kind = kind_of(line);
            continue;
        };
        match (kind, key) {
            (Kind::Private, "Rss") => sum.private += value,
            (Kind::Private, "Referenced") => sum.private_touched += value,
            (Kind::Shared, "Size") => sum.shared_size += value,
            (Kind::Shared, "Rss") => sum.shared += value,
            (Kind::Shared, "Referenced") => sum.shared_touched += value,
            (_, "Shared_Hugetlb" | "Private_Hugetlb") => sum.huge += value,
            _ => {}
        }
    }
    sum
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Private,
    Shared,
    File,
}

/// `Rss:    12 kB`
fn field(line: &str) -> Option<(&str, u64)> {
    let (key, rest) = line.split_once(':')?;
    let kib: u64 = rest.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some((key, kib << 10))
}

/// `7f00-7f10 rw-s 00000000 00:01 1025    /dev/zero (deleted)`
fn kind_of(line: &str) -> Kind {
    let mut words = line.split_whitespace();
    let (_, permissions) = (words.next(), words.next().unwrap_or_default());
    let name = words.nth(3).unwrap_or_default();
    match () {
        () if permissions.ends_with('s') && server::SHARED.iter().any(|begin| name.starts_with(begin)) => {
            Kind::Shared
        }
        () if permissions.ends_with('p') && (name.is_empty() || name.starts_with('[')) => Kind::Private,
        () => Kind::File,
    }
}
