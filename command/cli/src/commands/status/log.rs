//! The log: its medium and device, how full it is, who serves it and who uses it.

use std::path::Path;

use seawall_daemon::journal::{JournalStatus, MirrorStatus};
use seawall_daemon::rebuild::RebuildStatus;
use seawall_daemon::spill::SpillStatus;
use seawall_daemon::status::Status;

use super::kept;
use crate::commands::freeze;
use crate::show::Fact;
use crate::size;

/// What there is to say of it.
pub fn facts(s: &Status) -> Vec<Fact> {
    let used = s.segments - s.segments_free;
    let backlog = size::human(s.backlog_bytes);
    let mut facts = vec![
        ("medium", s.medium.clone()),
        ("", format!("({})", s.because)),
        ("pool", format!("{}, {}, {}", s.pool.display(), size::human(s.size), s.uuid)),
        ("log", format!("{used} of {} segments in use", s.segments)),
    ];
    facts.extend(s.journal.as_ref().filter(|_| s.kept.is_none()).map(|journal| ("device", device(journal))));
    facts.extend(s.kept.iter().flat_map(kept::facts));
    facts.extend(s.spill.as_ref().map(|area| ("spill area", spill(area))));
    facts.extend([
        ("backlog", format!("{backlog} in segments, {} files to sync", s.backlog_files)),
        ("daemon", format!("pid {}, log {}", s.daemon_pid, s.log.display())),
        ("clients", s.clients.len().to_string()),
        ("guards up", s.guards.to_string()),
    ]);
    facts.extend(s.frozen.as_ref().map(|frozen| ("FROZEN", freeze::words(frozen))));
    if s.refused > 0 {
        facts.push(("refused", format!("{} requests of another version", s.refused)));
    }
    facts
}

fn device(j: &JournalStatus) -> String {
    let (data, all) = (size::human(j.data_bytes), size::human(j.device_bytes));
    let mut text = format!(
        "{} writes of {all} for {data} of the log; {} syncs waited, {:.1} of them for each write",
        j.device_writes, j.waits, j.syncs_per_write
    );
    if j.failed != 0 {
        let why = std::io::Error::from_raw_os_error(j.failed.cast_signed());
        text += &format!("; FAILED ({why}): every sync fails, see the daemon's log");
    }
    text += &j.mirror.as_ref().map(mirror).unwrap_or_default();
    if let Some(pid) = j.stopped {
        text += &format!("; PROCESS {pid} IS STOPPED while it writes: every sync waits for it");
    }
    for pid in &j.standing_still {
        text += &format!("; process {pid} is stopped in the middle of a write, others go on in its place");
    }
    text
}

fn spill(area: &SpillStatus) -> String {
    let (used, all) = (size::human(area.used), size::human(area.size));
    let copied = size::human(area.spilled_bytes);
    let text = format!("{}, {used} of {all} in use, {copied} copied to it", area.path.display());
    match &area.trouble {
        None => text,
        Some(why) => {
            format!("{text}; FAILED ({why}): nothing is copied to it any more, see the daemon's log")
        }
    }
}

/// What is not as it should be.
fn mirror(mirror: &MirrorStatus) -> String {
    let Some(lost) = mirror.lost().map(Path::display) else { return String::new() };
    match &mirror.rebuild {
        Some(rebuild) if rebuild.is_under_way() => {
            format!("; MIRROR LOST: rebuilding {} % on {}", rebuild.percent(), rebuild.path.display())
        }
        Some(RebuildStatus { error: Some(why), path, .. }) => {
            format!("; MIRROR LOST ({lost}): it was not rebuilt on {} ({why})", path.display())
        }
        _ => format!("; MIRROR LOST ({lost}): the log goes on without it, see the daemon's log"),
    }
}
