//! A log that keepers on other hosts keep: how it is made and opened, and what a thread does for it.

pub(crate) mod alone;
mod creating;
mod error;
mod looking;
mod mark;
mod opening;

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::{Duration, Instant};

use seawall_keeper::writer::Role;

pub use creating::create;
pub use error::KeptError;
pub(crate) use looking::look_at_newest;
pub use looking::{describe, keepers, open_read_only, size};
pub(crate) use mark::Mark;
pub(crate) use opening::{Opened, open, take_over};

pub use seawall_keeper::meta::Mode;

pub use crate::parts::kept::{KeeperStatus, KeptStatus};

use crate::log::Log;
use crate::parts::kept::{AGAIN, Kept};
use crate::state::Daemon;

/// Bytes of an image that are sent in one go while commits wait.
const STEP: usize = 256 << 10;
/// The rest after each: so many times as long as that took, and at least so long. A keeper works as long for it.
const REST: u32 = 12;
const LEAST_REST: Duration = Duration::from_millis(2);

/// Brings keepers up to date that came back, until the daemon ends.
pub(crate) fn run(daemon: &Arc<Daemon>) {
    let Some((kept, journal)) = daemon.kept.as_ref().zip(daemon.engine.pool().journal()) else { return };
    let clock = daemon.engine.shm().header().clock();
    journal.desk(daemon.engine.pool()).clock().store(clock.ns_per_ticks32, SeqCst);
    let mut said = Vec::new();
    while !daemon.lifetime.is_ending() {
        // An error is everybody's, and said by those who commit.
        let begin = Instant::now();
        let looked = journal.standing(daemon.engine.pool(), |standing| kept.look(standing, STEP));
        let rest = (begin.elapsed() * REST).clamp(LEAST_REST, AGAIN);
        tell(&kept.roles(), &mut said, &daemon.log);
        tell_end(kept, &daemon.log);
        std::thread::sleep(if looked == Ok(true) { rest } else { AGAIN });
    }
}

/// Leads for fronts while they do not send to keepers themselves, until the daemon ends.
pub(crate) fn lead(daemon: &Arc<Daemon>) {
    if daemon.kept.is_some() {
        daemon.engine.lead_for_others(|| !daemon.lifetime.is_ending());
    }
}

/// Says in the log why nothing is written any more, once, and again when more is known of that.
pub(crate) fn tell_end(kept: &Kept, log: &Log) {
    let Some(why) = kept.news_of_end() else { return };
    log.say(format!(
        "NO COMMITS ANY MORE: {why}. Every sync that needs the log fails (EIO), and this host's guards stay as they are: \
         stop the database and this daemon"
    ));
}

/// Says in the log what became of keepers.
fn tell(now: &[(String, Role, String)], said: &mut Vec<Role>, log: &Log) {
    for (i, (address, role, trouble)) in now.iter().enumerate() {
        if said.get(i) != Some(role) {
            let trouble = if trouble.is_empty() { String::new() } else { format!(": {trouble}") };
            log.say(format!("keeper {address} {}{trouble}", role.name()));
        }
    }
    *said = now.iter().map(|(_, role, _)| *role).collect();
}
