//! Process parentage, from `/proc`.

use std::fs;
use std::io;
use std::process::{Child, Command};
use std::sync::Mutex;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use seawall_media::locks::lock;
use seawall_media::process::{Stat, all, is_alive, stat, tree};

use super::{pause, signal};

/// Makes orphaned grandchildren our children, so that they can be found and ended.
pub fn adopt_orphans() {
    // SAFETY: plain integers.
    unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) };
}

/// Every living process below `root`, parents before children.
pub fn descendants(root: u32) -> Vec<u32> {
    tree(root).split_off(1)
}

/// CPU time that it took so far, in seconds.
pub fn cpu_seconds(pid: u32) -> f64 {
    let ticks = stat(pid).map_or(0, |stat| stat.took);
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
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
    let has_ended = |(pid, stat): &(u32, Stat)| stat.parent == me && !stat.lives() && !own.contains(pid);
    for (pid, _) in all().filter_map(|pid| Some((pid, stat(pid)?))).filter(has_ended) {
        // SAFETY: no memory is passed.
        unsafe { libc::waitpid(pid as i32, std::ptr::null_mut(), libc::WNOHANG) };
    }
}
