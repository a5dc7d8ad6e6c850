//! Finding and ending what a test started, and only that.

use std::sync::Once;

use seawall_media::process;

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
    let below = process::tree(std::process::id()).split_off(1);
    below.into_iter().filter(|pid| command_line(*pid).contains(needle)).map(u32::cast_signed).collect()
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

fn command_line(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).replace('\0', " ")
}
