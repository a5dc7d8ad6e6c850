//! Processes: which one it is, whether it can still do anything, and what it has open.
//!
//! A server with gigabytes of memory that is killed exists for a while longer: the kernel frees its memory (about 0.15 s a
//! gigabyte) before it closes its files and tells whoever waits. Long before, within a few milliseconds, all its threads have
//! the mark that they are exiting, and such a thread never again runs code of its program nor makes a system call. That is
//! what [`is_dead`] looks for.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use rustix::process::PidfdFlags;
use seawall_media::process::{all, place, stat, stat_of_thread, threads};

/// A process, told apart from a later one of the same number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pid {
    /// Its number.
    pub number: i32,
    /// When it started, in clock ticks since the machine did.
    pub started: u64,
    /// Its process group.
    pub group: i32,
}

impl Pid {
    /// A process that is there.
    ///
    /// # Errors
    /// If it is not.
    pub fn of(number: i32) -> Result<Self> {
        let stat = stat(number as u32).with_context(|| format!("there is no process {number}"))?;
        Ok(Self { number, started: stat.started, group: stat.group })
    }

    /// True if this process, and no later one, is there and not dead.
    pub fn lives(&self) -> bool {
        Self::of(self.number).is_ok_and(|found| found == *self) && !is_dead(self.number)
    }

    /// A descriptor of it.
    ///
    /// # Errors
    /// If it has gone.
    pub fn open(&self) -> Result<OwnedFd> {
        let pid = rustix::process::Pid::from_raw(self.number).context("it is not a process number")?;
        let fd = rustix::process::pidfd_open(pid, PidfdFlags::empty()).context("the process is gone")?;
        ensure!(Self::of(self.number)? == *self, "the process is gone");
        Ok(fd)
    }
}

/// True if no thread of this process will ever run its program again: nothing more is written.
pub fn is_dead(number: i32) -> bool {
    let pid = number as u32;
    let is_over = |thread| stat_of_thread(pid, thread).is_none_or(|thread| thread.is_exiting());
    if !is_over(pid) {
        return false;
    }
    // A thread that is started while we look is found by the second look, or whoever started it is.
    (0..2).all(|_| threads(pid).all(is_over))
}

/// How a dead process ended, as wait(2) says it.
pub fn exit_status(number: i32) -> Option<i32> {
    let text = fs::read_to_string(format!("/proc/{number}/stat")).ok()?;
    text.split_whitespace().next_back()?.parse().ok()
}

/// A Redis server that works in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct User {
    /// Its process.
    pub number: i32,
    /// Its process group. Servers that we start lead their own, and what they fork for a snapshot or a rewrite is in it.
    pub group: i32,
    /// It has files of the append-only file open. One that still loads has not.
    pub has_log: bool,
}

/// The servers that work in this directory or have its append-only file, in `log`, open.
pub fn users_of(directory: &Path, log: &Path) -> Vec<User> {
    all().filter_map(|number| user(number as i32, directory, log)).collect()
}

fn user(number: i32, directory: &Path, log: &Path) -> Option<User> {
    let root = place(number as u32);
    // Others look into the directory, too: a shell, a backup, Seawall's daemon.
    let is_server =
        fs::read_to_string(root.join("comm")).is_ok_and(|name| name.trim_end().ends_with("-server"));
    if !is_server || is_dead(number) {
        return None;
    }
    let works_here = fs::read_link(root.join("cwd")).is_ok_and(|target| target == directory);
    let mut files = fs::read_dir(root.join("fd")).into_iter().flatten().flatten();
    let has_log = files.any(|file| fs::read_link(file.path()).is_ok_and(|target| target.starts_with(log)));
    let group = stat(number as u32)?.group;
    (works_here || has_log).then_some(User { number, group, has_log })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_dead_when_it_was_killed_although_nobody_waited_for_it() {
        let mut child = std::process::Command::new("sleep").arg("100").spawn().expect("started");
        let pid = Pid::of(child.id() as i32).expect("there");
        assert!(pid.lives() && pid.open().is_ok());
        assert!(!Pid { started: pid.started + 1, ..pid }.lives(), "it is another one");
        child.kill().expect("killed");
        let end = std::time::Instant::now() + std::time::Duration::from_secs(5);
        while !is_dead(pid.number) {
            assert!(std::time::Instant::now() < end);
        }
        assert!(!pid.lives());
        assert_eq!(exit_status(pid.number), Some(9));
        child.wait().expect("waited for");
        assert!(pid.open().is_err());
    }
}
