//! Finding and ending what a test started, and only that.

use std::sync::Once;

/// Makes this test process the parent of every descendant whose own parent died, so that nothing we
/// started can get out of sight.
pub fn adopt_orphans() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: plain call.
        unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) };
    });
}

/// SIGKILL for a process group that a [`super::bounded::Running`] leads.
pub fn kill_group(leader: i32) {
    // SAFETY: the group was made by us for this command.
    unsafe { libc::kill(-leader, libc::SIGKILL) };
}

/// Waits for the end of a killed group whose leader was collected: we have adopted the others.
pub fn reap_group(leader: i32) {
    // SAFETY: waits for members of a group of our own making; ECHILD when none is left.
    while unsafe { libc::waitpid(-leader, std::ptr::null_mut(), 0) } > 0 {}
}

/// Sends `signal` to one process.
pub fn signal(pid: i32, signal: i32) {
    // SAFETY: plain call; callers pass descendants of this test.
    unsafe { libc::kill(pid, signal) };
}

/// Descendants of this test process whose command line holds `needle` (a pool's unique path).
pub fn descendants_naming(needle: &str) -> Vec<i32> {
    let all = parents();
    all.iter()
        .map(|(pid, _)| *pid)
        .filter(|pid| descends(*pid, &all))
        .filter(|pid| command_line(*pid).contains(needle))
        .collect()
}

/// Collects what adopted children left, so that they do not stay as zombies.
pub fn reap(pids: &[i32]) {
    for pid in pids {
        for _ in 0..500 {
            // SAFETY: waits for a given process id only; ECHILD when it is not our own child.
            match unsafe { libc::waitpid(*pid, std::ptr::null_mut(), libc::WNOHANG) } {
                0 => std::thread::sleep(std::time::Duration::from_millis(2)),
                _ => break,
            }
        }
    }
}

fn command_line(pid: i32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}

/// Every process with its parent.
fn parents() -> Vec<(i32, i32)> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|pid| Some((pid, parent_of(pid)?)))
        .collect()
}

fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // After the name, which may hold anything but ends at the last parenthesis: state, parent.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

fn descends(pid: i32, all: &[(i32, i32)]) -> bool {
    let own = std::process::id() as i32;
    let mut at = pid;
    for _ in 0..64 {
        match all.iter().find(|(candidate, _)| *candidate == at) {
            Some((_, parent)) if *parent == own => return true,
            Some((_, parent)) if *parent > 1 => at = *parent,
            _ => return false,
        }
    }
    false
}
