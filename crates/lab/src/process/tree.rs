//! Process parentage, from `/proc`.

use std::fs;
use std::io;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use seawall_media::locks::lock;

use super::{pause, signal};

/// Makes orphaned grandchildren our children, so that they can be found and ended.
pub fn adopt_orphans() {
    // SAFETY: plain integers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// Every living process below `root`, parents before children.
pub fn descendants(root: u32) -> Vec<u32> {
    let all: Vec<Process> = processes().filter(|p| p.state != 'Z').collect();
    let mut found = vec![root];
    let mut next = 0;
    while next < found.len() {
        let parent = found[next];
        found.extend(all.iter().filter(|p| p.parent == parent).map(|p| p.pid));
        next += 1;
    }
    found.remove(0);
    found
}

/// Whether the process exists and is not merely waiting to be reaped. A killed one whose other threads still
/// wait for the disk has its files open, and their locks.
pub fn is_alive(pid: u32) -> bool {
    read(pid).is_some_and(|p| p.state != 'Z' || threads(pid) > 1)
}

fn threads(pid: u32) -> usize {
    fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count)
}

/// CPU time that it took so far, in seconds: utime and stime, fields 14 and 15, counted behind the command's name, which may
/// hold blanks.
pub fn cpu_seconds(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let behind = text.rsplit(')').next().unwrap_or_default();
    let ticks: f64 = behind.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<f64>().ok()).sum();
    // SAFETY: takes and returns integers.
    ticks / unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64
}

/// Its command line, words separated by blanks.
pub fn command_line(pid: u32) -> String {
    let bytes = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// Kills all of them with SIGKILL, in the order given, and waits until the last one is gone, its files with it.
pub fn kill_and_wait(all: &[u32], limit: Duration) -> Result<()> {
    all.iter().for_each(|&pid| signal(pid, libc::SIGKILL));
    let end = Instant::now() + limit;
    while all.iter().any(|&pid| is_alive(pid)) {
        reap_orphans();
        ensure!(Instant::now() <= end, "a killed process did not end within {} s", limit.as_secs());
        pause(Duration::from_millis(5))?;
    }
    Ok(())
}

/// Kills a process and everything below it.
pub fn kill_tree(root: u32) {
    let below = descendants(root);
    signal(root, libc::SIGKILL);
    below.into_iter().for_each(|pid| signal(pid, libc::SIGKILL));
}

/// Ends whatever is still below us: what a killed parent left behind.
pub fn kill_leftovers() {
    let me = std::process::id();
    for (attempt, how) in [libc::SIGTERM, libc::SIGKILL, libc::SIGKILL].into_iter().enumerate() {
        let left = descendants(me);
        if left.is_empty() {
            break;
        }
        left.iter().for_each(|&pid| signal(pid, how));
        let patience = if attempt == 0 { 100 } else { 20 };
        for _ in 0..patience {
            reap_orphans();
            if descendants(me).is_empty() {
                return;
            }
            sleep(Duration::from_millis(20));
        }
    }
}

/// Children started by us: their [`super::Running`] waits for them, and nobody else may.
static OWN: Mutex<Vec<u32>> = Mutex::new(Vec::new());

/// Starts a child of our own.
pub(super) fn spawn(command: &mut Command) -> io::Result<Child> {
    // Locked meanwhile: one that ends at once would be reaped for an orphan.
    let mut own = lock(&OWN);
    let child = command.spawn()?;
    own.push(child.id());
    Ok(child)
}

/// Forgets a child that was waited for.
pub(super) fn disown(pid: u32) {
    lock(&OWN).retain(|&other| other != pid);
}

/// Reaps adopted orphans that ended.
pub fn reap_orphans() {
    let me = std::process::id();
    let own = lock(&OWN);
    for p in processes().filter(|p| p.parent == me && p.state == 'Z' && !own.contains(&p.pid)) {
        // SAFETY: no memory is passed.
        unsafe { libc::waitpid(p.pid as i32, std::ptr::null_mut(), libc::WNOHANG) };
    }
}

struct Process {
    pid: u32,
    state: char,
    parent: u32,
}

fn processes() -> impl Iterator<Item = Process> {
    pids().filter_map(read)
}

/// All processes of this machine.
pub fn pids() -> impl Iterator<Item = u32> {
    let names = fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.filter_map(|name| name.to_str()?.parse().ok())
}

fn read(pid: u32) -> Option<Process> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may hold blanks and brackets: fields start after the last closing one.
    let mut fields = stat[stat.rfind(')')? + 1..].split_whitespace();
    let state = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    Some(Process { pid, state, parent })
}
