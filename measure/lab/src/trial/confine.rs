//! Fewer CPUs, or less memory, for everything that is started from here: by affinity, by control groups.
//!
//! Children inherit both, so database and load are confined alike, and a daemon that they start. Dropping a [`Confine`]
//! takes it back.

use std::fs;
use std::mem;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

/// The period of a quota, µs.
const PERIOD: u64 = 100_000;

/// What there is of everything; `None`: all that the machine has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// The first so many of the CPUs there are.
    pub cpus: Option<usize>,
    /// So many CPUs' time.
    pub cpu_max: Option<f64>,
    /// Bytes of memory, the page cache included.
    pub memory: Option<u64>,
}

/// While it lives, this thread and what it starts have no more.
pub struct Confine {
    before: Option<libc::cpu_set_t>,
    groups: Vec<Group>,
}

impl Confine {
    /// To these limits.
    ///
    /// # Errors
    /// If the machine has less, or does not let us.
    pub fn to(limits: Limits) -> Result<Self> {
        let groups = [
            limits.cpu_max.map(|max| Group::enter("cpu", |group| group.hold_cpu(max))),
            limits.memory.map(|bytes| Group::enter("memory", |group| group.hold_memory(bytes))),
        ];
        let groups = groups.into_iter().flatten().collect::<Result<_>>()?;
        let before = limits.cpus.map(set_affinity).transpose()?;
        Ok(Confine { before, groups })
    }
}

impl Drop for Confine {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            // SAFETY: `before` is a live set that the kernel filled.
            unsafe { libc::sched_setaffinity(0, mem::size_of::<libc::cpu_set_t>(), before) };
        }
        self.groups.drain(..).rev().for_each(drop);
    }
}

/// Returns what was set before.
fn set_affinity(cpus: usize) -> Result<libc::cpu_set_t> {
    let size = mem::size_of::<libc::cpu_set_t>();
    // SAFETY: a set of bits for which all zero is valid.
    let (mut before, mut after) =
        unsafe { (mem::zeroed::<libc::cpu_set_t>(), mem::zeroed::<libc::cpu_set_t>()) };
    // SAFETY: the pointer is to a live set of the given size.
    let done = unsafe { libc::sched_getaffinity(0, size, &mut before) };
    ensure!(done == 0, "which CPUs may be used: {}", std::io::Error::last_os_error());
    let bits = 8 * size;
    // SAFETY: the index is below the number of bits of the set.
    let allowed: Vec<usize> = (0..bits).filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &before) }).collect();
    ensure!(allowed.len() >= cpus, "this machine has {} CPUs for us, not {cpus}", allowed.len());
    // SAFETY: as above.
    allowed[..cpus].iter().for_each(|&cpu| unsafe { libc::CPU_SET(cpu, &mut after) });
    // SAFETY: `after` is a live set of the given size.
    let done = unsafe { libc::sched_setaffinity(0, size, &after) };
    ensure!(done == 0, "confining to {cpus} CPUs: {}", std::io::Error::last_os_error());
    Ok(before)
}

/// A control group of ours that this process is in.
struct Group {
    dir: PathBuf,
    /// Where we came from.
    parent: PathBuf,
}

impl Group {
    fn enter(controller: &str, hold: impl FnOnce(&Self) -> Result<()>) -> Result<Self> {
        let parent = own_group(controller)?;
        let dir = parent.join(format!("seawall-lab-{}", std::process::id()));
        fs::create_dir_all(&dir).with_context(|| format!("make the control group {}", dir.display()))?;
        let group = Group { dir, parent };
        hold(&group)?;
        group.set("cgroup.procs", &std::process::id().to_string())?;
        Ok(group)
    }

    fn hold_cpu(&self, cpu_max: f64) -> Result<()> {
        let quota = (cpu_max * PERIOD as f64) as u64;
        if !self.dir.join("cpu.cfs_quota_us").exists() {
            return self.set("cpu.max", &format!("{quota} {PERIOD}"));
        }
        self.set("cpu.cfs_period_us", &PERIOD.to_string())?;
        self.set("cpu.cfs_quota_us", &quota.to_string())
    }

    fn hold_memory(&self, bytes: u64) -> Result<()> {
        let first = "memory.limit_in_bytes";
        let name = if self.dir.join(first).exists() { first } else { "memory.max" };
        self.set(name, &bytes.to_string())
    }

    fn set(&self, name: &str, value: &str) -> Result<()> {
        let path = self.dir.join(name);
        fs::write(&path, value).with_context(|| format!("write {}", path.display()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What was started and has not ended is taken along: a group with members cannot be removed.
        for _ in 0..50 {
            let members = fs::read_to_string(self.dir.join("cgroup.procs")).unwrap_or_default();
            for pid in members.lines() {
                let _ = fs::write(self.parent.join("cgroup.procs"), pid);
            }
            if fs::remove_dir(&self.dir).is_ok() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
}

/// The directory of this process's group that has the controller: of its own hierarchy, or of the unified one.
fn own_group(controller: &str) -> Result<PathBuf> {
    let groups = fs::read_to_string("/proc/self/cgroup").context("which control group we are in")?;
    let mut unified = None;
    for line in groups.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        let path = path.trim_start_matches('/');
        if controllers.split(',').any(|c| c == controller) {
            // Two controllers of one hierarchy are mounted under both names, or under each.
            let places = [controllers, controller].map(|name| format!("/sys/fs/cgroup/{name}/{path}"));
            if let Some(found) = places.iter().find(|p| Path::new(p).join("cgroup.procs").exists()) {
                return Ok(found.into());
            }
        } else if controllers.is_empty() {
            unified = Some(PathBuf::from(format!("/sys/fs/cgroup/{path}")));
        }
    }
    unified
        .filter(|dir| dir.join("cgroup.procs").exists())
        .with_context(|| format!("there is no control group for `{controller}` here"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn affinity_is_inherited_and_taken_back() {
        let count = || {
            let said = std::process::Command::new("nproc").output().expect("nproc");
            String::from_utf8_lossy(&said.stdout).trim().parse::<usize>().expect("a number")
        };
        let all = count();
        let confined = Confine::to(Limits { cpus: Some(1), ..Limits::default() }).expect("one CPU");
        assert_eq!(count(), 1);
        drop(confined);
        assert_eq!(count(), all);
        let said = Confine::to(Limits { cpus: Some(4096 * 2), ..Limits::default() })
            .err()
            .expect("not so many")
            .to_string();
        assert!(said.contains("8192"), "{said}");
    }
}
