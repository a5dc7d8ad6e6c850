//! CPU time of all processes of a server on this machine.
//!
//! The postmaster's own, that of the children it has reaped, and that of those alive. A child that ends while
//! we read would be counted twice or not at all, so the postmaster is read before and after; a sum that may be
//! wrong is not reported.

use std::fs::read_to_string;

use crate::model::Reading;

const TRIES: usize = 5;

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
    let alive =
        children.split_whitespace().filter_map(|pid| stat(pid.parse().ok()?)).map(|s| s.own).sum::<u64>();
    let after = stat(postmaster)?;
    (before.reaped == after.reaped).then_some(after.own + after.reaped + alive)
}

struct Stat {
    parent: u32,
    own: u64,
    reaped: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name is in brackets and may hold anything; the last bracket ends it.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |i: usize| fields.get(i)?.parse::<u64>().ok();
    let parent = number(1)? as u32;
    Some(Stat { parent, own: number(11)? + number(12)?, reaped: number(13)? + number(14)? })
}

#[cfg(test)]
mod tests {
    #[test]
    fn our_own_process_can_be_read() {
        let me = super::stat(std::process::id()).expect("a process");
        assert!(me.parent > 0 && !super::is_server(std::process::id()));
    }
}
