//! A file is entered: somebody wants to read it through the cache.
//!
//! Order: watched, so that no stranger slips in; looked at for those that are there already; findable, so that those of
//! us who write it announce that; quiet, so that nobody is in the middle of a write he did not announce; looked at once
//! more, for what it is now; served. Refused files are asked for again, so a step that fails leaves nothing behind but
//! an entry that writers find.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{FileType, Stat, fstat, fstatfs};
use seawall_cache::set::Policy;
use seawall_cache::shared::{CachedFile, Preparing};
use seawall_core::policy::{self, Manage, decide};
use seawall_media::magic;
use seawall_stats::Class;
use seawall_wire::shm::Shm;

use super::identity::now;
use super::zone::{Entered, Zone, capacity};
use crate::foreign;
use crate::parts::files::{path_of, reopen};
use crate::parts::roots::Roots;
use crate::state::Daemon;
use crate::unmanaged::{BYPASS, REFUSED, Unmanaged};

/// How long a file may take to become quiet: writes of ours that began before it was findable end in less.
const PATIENCE: Duration = Duration::from_millis(20);

/// Serves the file behind `fd` from the cache.
pub(crate) fn enter(daemon: &Daemon, fd: &OwnedFd) -> Result<CachedFile, Unmanaged> {
    let zone = daemon.cache.as_ref().ok_or(BYPASS)?;
    let stat = fstat(fd).map_err(|_| BYPASS)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile
        || stat.st_nlink == 0
        || is_in_memory(fd)
    {
        return Err(BYPASS);
    }
    let path = path_of(fd).map_err(|_| BYPASS)?;
    let (class, policy) = (class_of(daemon.engine.shm(), &daemon.roots, &path)?, zone.policies.of(&path));
    if policy == Policy::None {
        // For now: somebody may think better of it while the file is open.
        return Err(REFUSED);
    }
    let _alone = zone.entering.take();
    if daemon.lifetime.is_ending() || zone.count() >= capacity() {
        return Err(REFUSED);
    }
    let who = now(fd).ok_or(BYPASS)?;
    let preparing = zone.cache.prepare(&who, stat.st_dev).ok_or(REFUSED)?;
    let reference = preparing.file();
    if preparing.is_served() && zone.watches(stat.st_dev, stat.st_ino) {
        return Ok(reference);
    }
    let adopted = adopt(daemon, fd, &stat, reference).ok_or(REFUSED)?;
    if !is_quiet(zone, &preparing) {
        daemon.unwatch(&adopted.file, (stat.st_dev, stat.st_ino));
        return Err(REFUSED);
    }
    // What somebody wrote before it was quiet is in its times.
    let now = now(&adopted.file).ok_or(REFUSED)?;
    zone.cache.set_class(reference, class as u32);
    zone.policies.give(&zone.cache, reference, policy);
    if preparing.is_served() {
        // Of a former daemon, and nobody watched it meanwhile.
        zone.resume(reference, &now);
    }
    zone.cache.serve(&preparing, &now);
    zone.insert(adopted);
    Ok(reference)
}

/// A cached block of a file in RAM would be a second copy there.
fn is_in_memory(fd: &OwnedFd) -> bool {
    const RAMFS: u64 = 0x8584_58f6;
    fstatfs(fd).is_ok_and(|fs| matches!(fs.f_type as u64, magic::TMPFS | RAMFS))
}

/// What the database uses it for. Bypass outside of its directories, and for logs: they are written, and read once.
fn class_of(shm: &Shm, roots: &Roots, path: &Path) -> Result<Class, Unmanaged> {
    let Some((root, manage)) = decide(shm, path.as_os_str().as_bytes()) else {
        return beside_the_log(roots, path).ok_or(BYPASS);
    };
    let root = roots.get(root).ok_or(BYPASS)?;
    let below = path.strip_prefix(&root.path).unwrap_or(path);
    match policy::class(root.preset, below.as_os_str().as_bytes()) {
        Class::Log | Class::BinaryLog if manage != Manage::Bypass => Err(BYPASS),
        // What the log's presets call so by its place alone.
        Class::Log | Class::BinaryLog => Ok(Class::Data),
        class => Ok(class),
    }
}

/// Of some databases the log manages one directory only; the others belong to them all the same.
fn beside_the_log(roots: &Roots, path: &Path) -> Option<Class> {
    roots.all().into_values().any(|root| path.starts_with(&root.data)).then_some(Class::Data)
}

/// Watches the file, and makes sure that no stranger writes it already.
pub(super) fn adopt(daemon: &Daemon, fd: impl AsFd, stat: &Stat, reference: CachedFile) -> Option<Entered> {
    let inode = (stat.st_dev, stat.st_ino);
    daemon.watch.add(&fd, inode, &daemon.log);
    let is_only = foreign::is_only_open(&fd);
    let Ok(file) = reopen(&fd, false) else {
        daemon.unwatch(&fd, inode);
        return None;
    };
    let strangers = if is_only { Vec::new() } else { daemon.foreign_writers(inode.0, inode.1)? };
    if strangers.is_empty() {
        return Some(Entered { reference, file, dev: inode.0, ino: inode.1 });
    }
    daemon.unwatch(&file, inode);
    daemon.log.say_once(
        &format!("cache {inode:?}"),
        format!(
            "not cached: {}: processes {strangers:?} write to it without Seawall",
            path_of(&file).unwrap_or_default().display()
        ),
    );
    None
}

fn is_quiet(zone: &Zone, preparing: &Preparing) -> bool {
    let begin = Instant::now();
    while !zone.cache.is_quiet(preparing) {
        if begin.elapsed() > PATIENCE {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}
