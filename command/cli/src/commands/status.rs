//! `seawall status`: from the daemon, or from the pool itself if none serves it.

use std::path::Path;

use anyhow::Result;
use seawall_awr::clock::wall_ms;
use seawall_core::path_text::Shown;
use seawall_daemon::cache::{AdvisoryStatus, CacheStatus, CachedFileStatus};
use seawall_daemon::control::ControlError;
use seawall_daemon::journal::{JournalStatus, MirrorStatus};
use seawall_daemon::kept::{KeeperStatus, KeptStatus};
use seawall_daemon::rebuild::RebuildStatus;
use seawall_daemon::spill::SpillStatus;
use seawall_daemon::status::{EventStatus, FileStatus, LeftOut, RootStatus, Status};
use seawall_keeper::tls::utc;
use seawall_wire::message::Kind;
use serde_json::{Value, json};

use super::disk::served as disks;
use super::mount::served;
use crate::commands::ask::Ask;
use crate::daemons::{self, Meant};
use crate::{attach, pool, show, size};

/// Shows it.
pub fn status(ask: &Ask) -> Result<()> {
    let service =
        ask.named.service().map(|name| attach::attached(name).map(|(_, facts)| facts)).transpose()?;
    if let Some(facts) = service.as_ref().filter(|_| !ask.json) {
        attach::tell_service(facts);
    }
    let pool = match daemons::find(&ask.named)? {
        Meant::One(pool) => pool,
        Meant::Several(all) => return daemons::list(&all, ask.json),
    };
    let (pool, control) = super::ask::to(pool)?;
    let answer = control.map(|control| control.request::<Status>(Kind::Status, &()));
    let status = match answer {
        None | Some(Err(ControlError::Gone)) => None,
        Some(answer) => Some(answer?),
    };
    match status {
        _ if ask.json => {
            let found = status.map_or_else(|| offline(&pool), with_mounts);
            let mut found = found?;
            if let Some(facts) = service {
                found["service"] = facts;
            }
            show::json(&found)
        }
        Some(status) => tell(&status),
        None => tell_offline(&pool),
    }
}

fn with_mounts(status: Status) -> Result<Value> {
    let mounts = serde_json::to_value(served::by(&status.clients))?;
    let disks = serde_json::to_value(disks::by(&status.clients))?;
    let mut status = serde_json::to_value(status)?;
    status["mounts"] = mounts;
    status["disks"] = disks;
    Ok(status)
}

fn offline(path: &Path) -> Result<Value> {
    let found = super::inspect::look(path)?;
    let (medium, because) = pool::medium(path)?;
    Ok(json!({
        "medium": medium.label(), "medium_name": medium.name(), "because": because,
        "pool": Shown(path), "uuid": found.uuid, "size": found.size, "segments": found.segments,
        "segment_bytes": found.segment_bytes, "daemon_pid": null, "live": found.live, "clients": [], "mounts": [], "disks": [],
    }))
}

fn tell_offline(path: &Path) -> Result<()> {
    let found = super::inspect::look(path)?;
    let (medium, because) = pool::medium(path)?;
    show::facts(&[
        ("medium", medium.label().into()),
        ("", format!("({because})")),
        ("pool", format!("{}, {}", path.display(), size::human(found.size))),
        ("daemon", "none".into()),
        ("live records", live(found.live, path)),
    ]);
    Ok(())
}

fn live(live: u64, pool: &Path) -> String {
    match live {
        0 => "0".into(),
        n => format!("{n}: `seawall recover --pool {}` brings them to the files", pool.display()),
    }
}

fn tell(s: &Status) -> Result<()> {
    let used = s.segments - s.segments_free;
    let backlog = size::human(s.backlog_bytes);
    let mut facts = vec![
        ("medium", s.medium.clone()),
        ("", format!("({})", s.because)),
        ("pool", format!("{}, {}, {}", s.pool.display(), size::human(s.size), s.uuid)),
        ("log", format!("{used} of {} segments in use", s.segments)),
    ];
    facts.extend(s.journal.as_ref().filter(|_| s.kept.is_none()).map(|journal| ("device", device(journal))));
    facts.extend(s.kept.iter().flat_map(keepers));
    facts.extend(s.spill.as_ref().map(|area| ("spill area", spill(area))));
    facts.extend([
        ("backlog", format!("{backlog} in segments, {} files to sync", s.backlog_files)),
        ("daemon", format!("pid {}, log {}", s.daemon_pid, s.log.display())),
        ("clients", s.clients.len().to_string()),
        ("guards up", s.guards.to_string()),
    ]);
    facts.extend(s.frozen.as_ref().map(|frozen| ("FROZEN", super::freeze::words(frozen))));
    if s.refused > 0 {
        facts.push(("refused", format!("{} requests of another version", s.refused)));
    }
    let mount = |mount: served::Served| {
        let (backing, at) = (mount.backing.display(), mount.mountpoint.display());
        let way = if mount.requests == "ring" { "io_uring" } else { "/dev/fuse" };
        ("mount", format!("{backing} at {at}, pid {}, requests by {way}", mount.pid))
    };
    facts.extend(served::by(&s.clients).into_iter().map(mount));
    let disk = |disk: disks::Served| {
        let (image, socket) = (disk.image.display(), disk.socket.display());
        let how = disk.seen.as_ref().map_or_else(|| "does not answer".to_owned(), disks::words);
        ("disk", format!("{image} at {socket}, pid {}, {how}", disk.pid))
    };
    facts.extend(disks::by(&s.clients).into_iter().map(disk));
    facts.extend(s.roots.iter().map(|root| ("directory", directory(root))));
    let not_covered = |path: &std::path::PathBuf| {
        (
            "NOT COVERED",
            format!("{}: pages of this tablespace can tear; the daemon's log says why", path.display()),
        )
    };
    facts.extend(s.not_covered.iter().map(not_covered));
    let left_out = |it: &LeftOut| ("not managed", format!("{}: {}", it.path.display(), it.why));
    facts.extend(s.left_out.iter().map(left_out));
    if s.torn {
        facts.push((
            "PAGES CAN TEAR",
            "a data file was written outside the log; the database's stderr and the daemon's log say why"
                .into(),
        ));
    }
    facts.push(("file table", file_table(s)));
    facts.extend(outside(s));
    facts.extend(s.cache.iter().flat_map(cache));
    facts.extend(s.without_cache.iter().map(|why| ("NO BLOCK CACHE", why.clone())));
    show::facts(&facts);
    outln!("\nfiles");
    show::table(
        &["path", "state", "fsyncs absorbed", "real", "writes logged", "bytes", "around the log"],
        &s.files.iter().map(file).collect::<Vec<_>>(),
    );
    tell_cached(s.cache.as_ref());
    outln!("\nwaits");
    show::table(
        &["event", "count", "mean", "p50", "p99", "p99.9", "longest"],
        &s.events.iter().map(event).collect::<Vec<_>>(),
    );
    Ok(())
}

/// Seconds for which a certificate should be valid at least: two weeks.
const SOON: i64 = 14 * 86_400;

/// The keepers of a log, and what is wrong with them.
fn keepers(kept: &KeptStatus) -> Vec<(&'static str, String)> {
    let survives = format!("{}; {} are reached now", kept.survives, kept.counting);
    let encrypts = kept.encrypts.as_ref().map_or_else(String::new, |who| format!(" in the {who}"));
    let mut facts = vec![("survives", survives), ("keepers by", format!("{}{encrypts}", kept.transport))];
    facts.extend(kept.certificate_until.map(certificate));
    facts.extend(kept.over.iter().map(|why| ("NO COMMITS", why.clone())));
    if let Some(seconds) = kept.alone_s {
        let text = format!(
            "for {seconds:.0} s: commits are durable on this host's disk alone, until {} keepers have the log again",
            kept.acks
        );
        facts.push(("ALONE", text));
    }
    if kept.short_times > 0 {
        let text = format!("{} times, for {:.1} s in all", kept.short_times, kept.short_s);
        facts.push(("too few keepers", text));
    }
    facts.extend(kept.keepers.iter().map(|one| ("keeper", keeper(one))));
    facts
}

/// Of this host. Connections that stand go on without it; the next one does not.
fn certificate(until: i64) -> (&'static str, String) {
    let left = until - wall_ms() / 1000;
    let text = format!("valid until {}", utc(until));
    match left {
        ..0 => (
            "CERTIFICATE EXPIRED",
            format!("{text}: a keeper that is lost cannot reconnect. `seawall keeper cert owner … --renew`"),
        ),
        0..SOON => ("CERTIFICATE EXPIRES", format!("{text}: `seawall keeper cert owner … --renew`")),
        _ => ("certificate", text),
    }
}

fn keeper(k: &KeeperStatus) -> String {
    let mut text = k.address.clone();
    if k.witness {
        text += ", a witness";
    }
    text += &format!(", {}", k.role);
    if k.answers > 0 {
        let [p50, p99, longest] = [k.p50_us, k.p99_us, k.longest_us].map(|us| show::time((us * 1e3) as u64));
        text += &format!(", answers in {p50} (p99 {p99}, longest {longest})");
    }
    text += &format!(", {} sent", size::human(k.sent_bytes));
    if k.behind > 0 {
        text += &format!(", {} batches behind ({})", k.behind, size::human(k.behind_bytes));
    }
    if k.reconnects > 0 {
        text += &format!(", connected again {} times", k.reconnects);
    }
    if !k.trouble.is_empty() {
        text += &format!(": {}", k.trouble);
    }
    text
}

/// The block cache, and what other sizes of it would give.
fn cache(c: &CacheStatus) -> Vec<(&'static str, String)> {
    let used = size::human(c.blocks_used * u64::from(c.block_bytes));
    let mut facts = vec![
        (
            "block cache",
            format!("{} ({}), {}, {used} in use", c.path.display(), c.medium_name, size::human(c.size)),
        ),
        (
            "",
            format!(
                "{} of {} reads answered ({}), {} blocks admitted",
                c.hits,
                c.hits + c.misses,
                share(c.hits, c.misses),
                c.admitted
            ),
        ),
        (
            "",
            format!(
                "{} of {} files entered, {} of them not served now",
                c.files, c.files_max, c.files_not_served
            ),
        ),
    ];
    facts.extend(c.write_budget.map(|day| {
        let left = size::human(c.write_budget_left);
        (
            "write budget",
            format!("{} a day, {left} left now; {} blocks over it", size::human(day), c.over_budget),
        )
    }));
    if c.dropped > 0 {
        facts.push(("", format!("{} blocks found no room on their way to the disk", c.dropped)));
    }
    if c.disk_errors > 0 {
        facts.push(("", format!("{} reads and writes failed: check its disk", c.disk_errors)));
    }
    facts.extend(c.off.iter().map(|why| ("CACHE OFF", why.clone())));
    if c.failures > 0 {
        facts.push(("", format!("{} blocks had wrong checksums and were dropped", c.failures)));
    }
    if !c.advisory.is_empty() {
        let of = |size: &AdvisoryStatus| format!("{}: {:.0} %", size::human(size.size), size.hit_percent);
        let sizes = c.advisory.iter().map(of).collect::<Vec<_>>().join(", ");
        facts.push(("cache sizes", format!("share of the sampled reads that each would answer: {sizes}")));
    }
    facts
}

fn share(hits: u64, misses: u64) -> String {
    match hits + misses {
        0 => "–".into(),
        all => format!("{:.1} %", hits as f64 * 100.0 / all as f64),
    }
}

/// The files that are read most through the block cache.
fn tell_cached(cache: Option<&CacheStatus>) {
    const SHOWN: usize = 20;
    let Some(c) = cache.filter(|c| !c.by_file.is_empty()) else { return };
    outln!("\nfiles in the block cache (from one read in 64, so approximate)");
    let row = |f: &CachedFileStatus| {
        let state = f.not_served.clone().unwrap_or_else(|| "served".into());
        let path = f.path.display().to_string();
        vec![path, share(f.hits, f.misses), f.hits.to_string(), f.misses.to_string(), state]
    };
    let rows: Vec<_> = c.by_file.iter().take(SHOWN).map(row).collect();
    show::table(&["path", "answered", "hits", "reads of the disk", "state"], &rows);
    if c.files as usize > rows.len() {
        outln!("  … and {} more", c.files as usize - rows.len());
    }
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
    let Some(lost) = mirror.lost().map(std::path::Path::display) else { return String::new() };
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

fn directory(root: &RootStatus) -> String {
    format!("{} ({}, {})", root.path.display(), root.preset, root.policy)
}

/// Says whether every write of the files that need it went through the log.
fn outside(s: &Status) -> Option<(&'static str, String)> {
    let atomic: Vec<_> = s.files.iter().filter(|f| f.atomic).collect();
    let out = atomic.iter().filter(|f| !f.tracked).count();
    let (left, around) = atomic.iter().fold((0, 0), |(l, w), f| (l + f.left, w + f.untracked_writes));
    (!atomic.is_empty()).then(|| {
        let text = format!(
            "{} files, {out} of them outside the log now; they left it {left} times, {around} writes went around it",
            atomic.len()
        );
        ("atomic", text)
    })
}

fn file_table(s: &Status) -> String {
    let mut text = format!("{} of {} entries in use", s.files.len(), s.files_max);
    if s.evicted > 0 {
        text += &format!(", {} given to other files", s.evicted);
    }
    if s.turned_away > 0 {
        text += &format!("; FULL {} times: those files were left to the kernel", s.turned_away);
    }
    text
}

fn file(f: &FileStatus) -> Vec<String> {
    let mut state = String::from(if f.tracked { "tracked" } else { "untracked" });
    if !f.flags.is_empty() {
        state = format!("{state} ({})", f.flags.join(", "));
    }
    vec![
        f.path.display().to_string(),
        state,
        f.absorbed.to_string(),
        f.real_syncs.to_string(),
        f.writes.to_string(),
        size::human(f.bytes),
        f.untracked_writes.to_string(),
    ]
}

fn event(e: &EventStatus) -> Vec<String> {
    let times = [e.mean_ns, e.p50_ns, e.p99_ns, e.p999_ns, e.max_ns].map(show::time);
    [e.name.clone(), e.count.to_string()].into_iter().chain(times).collect()
}
