//! Files held out of the log because of foreign processes.

use std::collections::HashMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use seawall_core::file::KeptOut;
use seawall_core::{Engine, FileRef, Owner};
use seawall_media::locks::lock;

use super::files::{Managed, real_sync};

/// A foreign open is not yet visible in `/proc` when it is allowed.
const GRACE: Duration = Duration::from_secs(1);

/// These files, by slot.
#[derive(Default)]
pub(crate) struct HeldOut(Mutex<HashMap<u32, Held>>);

struct Held {
    file: FileRef,
    /// Not to be let back before.
    until: Instant,
    /// The process that was seen last.
    pid: u32,
}

/// What a review looks at.
#[derive(Clone, Copy)]
pub(crate) struct Case {
    pub slot: u32,
    /// The process that was seen last.
    pub pid: u32,
    /// It may be let back, if nobody is there any more.
    pub is_due: bool,
}

impl HeldOut {
    /// True if this one is held.
    pub fn holds(&self, slot: u32) -> bool {
        lock(&self.0).contains_key(&slot)
    }

    /// The slot is free: nothing to release any more.
    pub fn forget(&self, slot: u32) {
        lock(&self.0).remove(&slot);
    }

    /// Takes a file out of the log, now, because of the process `pid`. False if it was out already.
    pub fn hold(&self, engine: &Engine, me: Owner, file: &Managed, pid: u32) -> bool {
        let mut all = lock(&self.0);
        let until = Instant::now() + GRACE;
        let held = all.insert(file.reference.slot, Held { file: file.reference, until, pid });
        if held.is_some_and(|held| held.file == file.reference) {
            return false;
        }
        engine.keep_out(file.reference, KeptOut::Foreign);
        engine.hold(me, file.reference, || real_sync(file));
        true
    }

    /// True if one may be due to come back.
    pub fn has_due(&self, now: Instant) -> bool {
        lock(&self.0).values().any(|held| held.until <= now)
    }

    /// All that are held.
    pub fn cases(&self, now: Instant) -> Vec<Case> {
        let case =
            |(slot, held): (&u32, &Held)| Case { slot: *slot, pid: held.pid, is_due: held.until <= now };
        lock(&self.0).iter().map(case).collect()
    }

    /// It stays out a while longer.
    pub fn wait_on(&self, slot: u32, now: Instant) {
        lock(&self.0).entry(slot).and_modify(|held| held.until = now + GRACE);
    }
}
