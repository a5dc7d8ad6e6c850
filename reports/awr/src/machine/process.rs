//! Server processes on this machine: their CPU time, and what their threads are doing.
//!
//! PostgreSQL's CPU time is the postmaster's own, that of the children it has reaped, and that of those alive. A child that ends while
//! we read would be counted twice or not at all, so the postmaster is read before and after; a sum that may be
//! wrong is not reported.

use std::fs::read_to_string;
use std::path::Path;

use seawall_media::process::{self, stat};

use crate::model::Reading;

const TRIES: usize = 5;

/// The server of this id, if it runs on this machine: another machine's, or container's, has another name here.
pub fn of_name(pid: u32, names: &[&str]) -> Option<u32> {
    let comm = read_to_string(format!("/proc/{pid}/comm")).ok()?;
    names.contains(&comm.trim()).then_some(pid)
}

/// The server whose file of its id this is; relative to its data directory.
pub fn of_file(file: &str, data: &str, names: &[&str]) -> Option<u32> {
    let text = read_to_string(Path::new(data).join(file)).ok()?;
    of_name(text.trim().parse().ok()?, names)
}

/// CPU time of a server that is one process, in seconds.
pub fn of_one(pid: u32, start: &str) -> Option<Reading> {
    let seconds = stat(pid)?.took as f64 / rustix::param::clock_ticks_per_second() as f64;
    Some(Reading::new("server", "", start).counter("cpu_s", seconds))
}

/// Name and state (`R`unning, `S`leeping, `D`isk …) of every thread; the main thread first.
pub fn threads(pid: u32) -> Option<Vec<(String, char)>> {
    let mut ids: Vec<u32> = process::threads(pid).collect();
    if ids.is_empty() {
        return None;
    }
    ids.sort_by_key(|id| (*id != pid, *id));
    let state = |id: &u32| {
        let text = read_to_string(format!("/proc/{pid}/task/{id}/stat")).ok()?;
        let (name, rest) = text.split_once('(')?.1.rsplit_once(')')?;
        Some((name.to_owned(), rest.trim_start().chars().next()?))
    };
    Some(ids.iter().filter_map(state).collect())
}

/// Whether this process is a PostgreSQL server process that we can see.
pub fn is_server(pid: u32) -> bool {
    read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|comm| comm.starts_with("postgres"))
}

/// The sum, in seconds.
pub fn reading(backend: u32, start: &str) -> Option<Reading> {
    let postmaster = stat(backend)?.parent;
    let ticks = rustix::param::clock_ticks_per_second() as f64;
    let total = (0..TRIES).find_map(|_| consistent_sum(postmaster))?;
    Some(Reading::new("server", "", start).counter("cpu_s", total as f64 / ticks))
}

fn consistent_sum(postmaster: u32) -> Option<u64> {
    let before = stat(postmaster)?;
    let children = read_to_string(format!("/proc/{postmaster}/task/{postmaster}/children")).ok()?;
    let alive = children
        .split_whitespace()
        .filter_map(|pid| stat(pid.parse().ok()?))
        .map(|stat| stat.took)
        .sum::<u64>();
    let after = stat(postmaster)?;
    (before.children_took == after.children_took).then_some(after.took + after.children_took + alive)
}

#[cfg(test)]
mod tests {
    #[test]
    fn our_own_process_can_be_read() {
        let me = super::stat(std::process::id()).expect("a process");
        assert!(me.parent > 0 && !super::is_server(std::process::id()));
        let threads = super::threads(std::process::id()).expect("threads");
        assert!(threads.iter().any(|(_, state)| *state == 'R'), "{threads:?}");
        assert_eq!(super::of_name(std::process::id(), &["mariadbd"]), None);
    }
}
