//! Is this file in the log? Decided once for a node, by the presets and the daemon, as the preload does it.
//!
//! ```text
//!             preset: not one of its files
//!   unknown ─────────────────────────────────▶ left to the kernel      until a name changes
//!      │  preset: after some fsyncs, or if it is an SQLite database
//!      ├───────────────────────▶ candidate ──┐
//!      │  preset: from its first write       ▼ due
//!      └────────────────────────────────▶ registered with the daemon ──▶ managed   until the slot is forgotten
//! ```
//!
//! Invariant: an unlogged write holds the class for reading, a registration for writing. So no write is under way
//! around the log when the daemon takes a file into it.

use std::os::fd::AsFd;
use std::sync::RwLockReadGuard;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use rustix::fs::{FileType, OFlags};
use seawall_core::FileRef;
use seawall_core::client::{Course, Use};
use seawall_core::policy::{Manage, SQLITE_MAGIC};
use seawall_media::locks::{self, lock};

use crate::class::{Class, Managed};
use crate::log::Log;
use crate::node::{Node, Nodes};

/// The class, for as long as it may not change.
pub fn held(node: &Node) -> RwLockReadGuard<'_, Class> {
    locks::read(&node.class)
}

/// The class, if it is settled and nobody is about to change it: asking must not wait for the daemon.
pub fn quick<'n>(node: &'n Node, log: &Log, nodes: &Nodes) -> Option<RwLockReadGuard<'n, Class>> {
    locks::try_read(&node.class).filter(|class| class.is_settled(log, nodes.names.load(Relaxed)))
}

/// Finds out what a file is. May wait for the daemon.
pub fn find_out<'n>(node: &'n Node, log: &Log, nodes: &Nodes, at: Use) -> RwLockReadGuard<'n, Class> {
    let class = held(node);
    let due = at == Use::Sync && is_due(&class, node);
    if class.is_settled(log, nodes.names.load(Relaxed)) && !due {
        return class;
    }
    drop(class);
    settle(node, log, nodes, at, due);
    held(node)
}

fn settle(node: &Node, log: &Log, nodes: &Nodes, at: Use, due: bool) {
    // A guard may go up.
    let _alone = nodes.guards.alone();
    let mut class = locks::write(&node.class);
    if class.is_settled(log, nodes.names.load(Relaxed)) && !due {
        return;
    }
    let count = match &*class {
        Class::Candidate { count, .. } => count.load(Relaxed),
        _ => 0,
    };
    let was_written = !matches!(*class, Class::Unknown);
    *class = decide(node, log, nodes, at, count, was_written);
    if let Class::Managed(managed) = &*class
        && was_written
    {
        // It may have been written past the log, by us, before it was in it.
        log.engine.disturb(managed.file);
    }
}

fn decide(node: &Node, log: &Log, nodes: &Nodes, at: Use, count: u8, was_written: bool) -> Class {
    let names = nodes.names.load(Relaxed);
    if node.kind != FileType::RegularFile {
        return Class::Kernel { names };
    }
    if let Some(managed) = log.engine.find(node.dev, node.ino).and_then(|file| adopt(node, file)) {
        return Class::Managed(managed);
    }
    let manage = node.name().map_or(Manage::Bypass, |path| log.decide(&path));
    let candidate = |count, is_open| Class::Candidate { manage, count: AtomicU8::new(count), is_open, names };
    if manage == Manage::Bypass {
        return Class::Kernel { names };
    }
    // What goes past us cannot be logged: not before its last such descriptor is closed.
    if lock(&node.opens).passthrough.is_some() {
        return candidate(count, false);
    }
    // PostgreSQL's crash recovery syncs every file, and writes few: nothing to log yet, so the sync is real.
    if manage == Manage::Now && at == Use::Sync && !was_written {
        return Class::Unknown;
    }
    let due = manage.due(at, count, || has_magic(node));
    let Some(fd) = due.is_now.then(|| node.open(OFlags::RDWR).ok()).flatten() else {
        return candidate(due.count, false);
    };
    match log.register(fd.as_fd(), node.name().as_deref()) {
        Course::Log(file) => Class::Managed(Managed { file, fd }),
        Course::Leave => Class::Kernel { names },
        Course::AskAgain => candidate(due.count, false),
        Course::AskNext | Course::Unanswered => candidate(count, true),
    }
}

fn adopt(node: &Node, file: FileRef) -> Option<Managed> {
    // For writing: recovery could write it too, and a sync needs no more than any descriptor.
    let fd = node.open(OFlags::RDWR).or_else(|_| node.open(OFlags::RDONLY)).ok()?;
    Some(Managed { file, fd })
}

/// True for a candidate that an fsync asks for; of any other it is counted.
fn is_due(class: &Class, node: &Node) -> bool {
    let Class::Candidate { manage, count, is_open, .. } = class else { return false };
    let due = manage.due(Use::Sync, count.load(Relaxed), || has_magic(node));
    if !due.is_now {
        count.store(due.count, Relaxed);
    }
    due.is_now || *is_open
}

fn has_magic(node: &Node) -> bool {
    let mut head = [0u8; SQLITE_MAGIC.len()];
    let read = node.open(OFlags::RDONLY).and_then(|fd| rustix::io::pread(&fd, &mut head[..], 0));
    read == Ok(head.len()) && head == SQLITE_MAGIC
}

/// It is opened, and was open nowhere: what was refused is asked for again.
pub fn reopened(node: &Node) {
    // Somebody else is finding it out just now: then it is asked anyway.
    if let Ok(mut class) = node.class.try_write()
        && let Class::Candidate { count, manage, .. } = &mut *class
    {
        *count.get_mut() = manage.reopened(*count.get_mut());
    }
}

/// A name of the node's changed: what was decided by it is decided anew.
pub fn renamed(node: &Node) {
    let mut class = locks::write(&node.class);
    if !matches!(*class, Class::Managed(_)) {
        // Not unknown: it may have been written past the log.
        *class = Class::Kernel { names: u64::MAX };
    }
}
