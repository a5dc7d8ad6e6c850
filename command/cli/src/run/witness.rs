//! The witness: is the preload really in the command's processes?
//!
//! Asked a moment after the start and again later, of the command and everything it started. A process that
//! goes without is named once, with the reason as far as it can be seen. A process is believed to go without
//! only when two looks agree: between exec and the loader's work every process looks like that.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use seawall_daemon::process;

use super::elf;

/// When to look, counted from the start.
const LOOKS: [Duration; 6] = [
    Duration::from_millis(150),
    Duration::from_millis(250),
    Duration::from_secs(1),
    Duration::from_secs(3),
    Duration::from_secs(10),
    Duration::from_secs(30),
];

/// What was seen so far.
pub struct Witness {
    root: u32,
    start: Instant,
    done: usize,
    suspects: HashSet<(u32, PathBuf)>,
    told: HashSet<PathBuf>,
}

impl Witness {
    /// For the process `root`. The program `known` has been reported already.
    pub fn new(root: u32, known: Option<&Path>) -> Self {
        let told = known.and_then(|path| fs::canonicalize(path).ok()).into_iter().collect();
        Self { root, start: Instant::now(), done: 0, suspects: HashSet::new(), told }
    }

    /// How long until the next look; `None` when there is none.
    pub fn due_in(&self) -> Option<Duration> {
        LOOKS.get(self.done).map(|at| at.saturating_sub(self.start.elapsed()))
    }

    /// How often it has looked.
    pub fn looks(&self) -> usize {
        self.done
    }

    /// Looks if it is time. Returns what to tell.
    pub fn look(&mut self) -> Vec<String> {
        if self.due_in().is_none_or(|left| !left.is_zero()) {
            return Vec::new();
        }
        self.done += 1;
        let without: HashSet<_> = process::tree(self.root).into_iter().filter_map(without_preload).collect();
        let sure: Vec<_> = without.intersection(&self.suspects).cloned().collect();
        self.suspects = without;
        sure.into_iter()
            .filter_map(|(pid, exe)| self.told.insert(exe.clone()).then(|| tell(pid, &exe)))
            .collect()
    }
}

/// What to tell of a process that goes without; `None` if it has the library, or is gone.
pub fn missing(pid: u32) -> Option<String> {
    without_preload(pid).map(|(pid, exe)| tell(pid, &exe))
}

fn without_preload(pid: u32) -> Option<(u32, PathBuf)> {
    if !process::is_alive(pid) {
        return None;
    }
    match process::has_preload(pid) {
        Ok(true) => None,
        Ok(false) => Some((pid, process::place(pid).join("exe").read_link().ok()?)),
        // It may not be looked at: it runs as somebody else.
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => {
            Some((pid, format!("{} (of another user)", process::name(pid)).into()))
        }
        Err(_) => None,
    }
}

fn tell(pid: u32, exe: &Path) -> String {
    format!(
        "WARNING: {} (pid {pid}) runs WITHOUT Seawall: {}. Its fsyncs wait for the disk as usual",
        exe.display(),
        reason(pid, exe)
    )
}

fn reason(pid: u32, exe: &Path) -> &'static str {
    if let Some(why) = elf::why_not(exe) {
        return why;
    }
    let Ok(preload) = process::variable(pid, "LD_PRELOAD") else {
        return "it changed its user (sudo, su, set-uid); use `seawall run --user NAME` instead";
    };
    if preload.is_some_and(|value| value.to_string_lossy().contains(process::PRELOAD_NAME)) {
        "the loader could not load the library (is it readable for that user, and for this machine?)"
    } else {
        "its environment was scrubbed (sudo, env -i, a wrapper); use `seawall run --user NAME`, or preserve LD_PRELOAD \
         and SEAWALL_SOCKET"
    }
}
