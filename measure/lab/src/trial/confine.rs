//! Fewer CPUs, or less memory, for everything that is started from here: by affinity, by control groups.
//!
//! Children inherit both, so database and load are confined alike, and a daemon that they start. Dropping a [`Confine`]
//! takes it back.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

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
    before: Option<CpuSet>,
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
            let _ = sched_setaffinity(None, before);
        }
        self.groups.drain(..).rev().for_each(drop);
    }
}

/// Returns what was set before.
fn set_affinity(cpus: usize) -> Result<CpuSet> {
    let before = sched_getaffinity(None).context("cannot tell which CPUs may be used")?;
    let allowed: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| before.is_set(cpu)).collect();
    ensure!(allowed.len() >= cpus, "only {} CPUs may be used, not {cpus}", allowed.len());
    let mut after = CpuSet::new();
    allowed[..cpus].iter().for_each(|&cpu| after.set(cpu));
    sched_setaffinity(None, &after).with_context(|| format!("cannot confine the process to {cpus} CPUs"))?;
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
        fs::create_dir_all(&dir)
            .with_context(|| format!("cannot make the control group {}", dir.display()))?;
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
        fs::write(&path, value).with_context(|| format!("cannot write {}", path.display()))
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
    let groups = fs::read_to_string("/proc/self/cgroup")
        .context("cannot tell which control group the process is in")?;
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
