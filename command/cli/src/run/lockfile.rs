//! PostgreSQL's lock file after a crash: it names a dead server, by its process id.
//!
//! In: the directories to manage. Out: none of our processes and threads has, or will get, such an id.
//! PostgreSQL takes the id in `postmaster.pid` for a living server's if any process of its own user has it
//! (parents excepted), and refuses to start. After a restart of a machine or container ids are given out in
//! the same order again, so the daemon, which starts just before the server, is likely to get that one.

use std::path::Path;

use seawall_daemon::AddRoot;

/// So many ids we and the daemon may use up before the server starts, generously.
const NEAR: u32 = 2000;

/// Uses up the ids up to the one in each lock file, if we would come across it.
pub fn step_over(roots: &[AddRoot]) {
    for id in roots.iter().filter_map(|root| dead_server(&root.data)) {
        step_over_id(id);
    }
}

/// True if the lock file of a PGDATA names a process, or one of its threads.
pub fn is_of(data: &Path, process: u32) -> bool {
    dead_server(data).is_some_and(|id| Path::new(&format!("/proc/{process}/task/{id}")).exists())
}

/// The process id in a PGDATA's lock file.
fn dead_server(data: &Path) -> Option<u32> {
    std::fs::read_to_string(data.join("postmaster.pid")).ok()?.lines().next()?.trim().parse().ok()
}

/// Ids only grow until they wrap, threads and processes draw from the same ones, and a thread is cheap.
fn step_over_id(id: u32) {
    let mut last = next_id();
    while last < id && id - last < NEAR {
        let next = next_id();
        if next <= last {
            return; // They have wrapped.
        }
        last = next;
    }
}

/// The id of a thread that has ended by now.
fn next_id() -> u32 {
    let spawned = std::thread::Builder::new().spawn(|| rustix::thread::gettid().as_raw_nonzero().get());
    // Without threads there is no daemon either; whoever starts it will say so.
    spawned.ok().and_then(|thread| thread.join().ok()).map_or(u32::MAX, i32::unsigned_abs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In a guest that was cut and booted again PostgreSQL found the daemon's thread under its old id.
    #[test]
    fn regression_a_dead_servers_id_is_not_ours() {
        let dir = tempfile::tempdir().expect("a directory");
        let root = |path: &Path| AddRoot {
            preset: "postgres".into(),
            policy: "tail".into(),
            path: path.into(),
            data: path.into(),
            recovery: None,
        };
        step_over(&[root(dir.path())]);
        let soon = next_id() + 100;
        std::fs::write(dir.path().join("postmaster.pid"), format!("{soon}\n/data\n1\n")).expect("written");
        step_over(&[root(dir.path())]);
        assert!(next_id() > soon, "ids up to {soon} are used up");
        step_over_id(u32::MAX);
        step_over_id(1);
    }
}
