//! `seawall status`: from the daemon, or from the pool itself if none serves it.

mod cached;
mod data;
mod kept;
mod log;

use std::path::Path;

use anyhow::Result;
use seawall_core::path_text::Shown;
use seawall_daemon::control::ControlError;
use seawall_daemon::status::{EventStatus, Status};
use seawall_wire::message::Kind;
use serde_json::{Value, json};

use super::disk::served as disks;
use super::mount::served;
use crate::commands::ask::Ask;
use crate::daemons::{self, Meant};
use crate::show::{self, Fact};
use crate::{attach, pool, size};

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
    let mut facts = log::facts(s);
    facts.extend(served::by(&s.clients).iter().map(mount));
    facts.extend(disks::by(&s.clients).iter().map(disk));
    facts.extend(data::facts(s));
    facts.extend(s.cache.iter().flat_map(cached::facts));
    facts.extend(s.without_cache.iter().map(|why| ("NO BLOCK CACHE", why.clone())));
    show::facts(&facts);
    data::tell_files(&s.files);
    s.cache.iter().for_each(cached::tell_files);
    outln!("\nwaits");
    show::table(
        &["event", "count", "mean", "p50", "p99", "p99.9", "longest"],
        &s.events.iter().map(event).collect::<Vec<_>>(),
    );
    Ok(())
}

fn mount(mount: &served::Served) -> Fact {
    let (backing, at) = (mount.backing.display(), mount.mountpoint.display());
    let way = if mount.requests == "ring" { "io_uring" } else { "/dev/fuse" };
    ("mount", format!("{backing} at {at}, pid {}, requests by {way}", mount.pid))
}

fn disk(disk: &disks::Served) -> Fact {
    let (image, socket) = (disk.image.display(), disk.socket.display());
    let how = disk.seen.as_ref().map_or_else(|| "does not answer".to_owned(), disks::words);
    ("disk", format!("{image} at {socket}, pid {}, {how}", disk.pid))
}

fn event(e: &EventStatus) -> Vec<String> {
    let times = [e.mean_ns, e.p50_ns, e.p99_ns, e.p999_ns, e.max_ns].map(show::time);
    [e.name.clone(), e.count.to_string()].into_iter().chain(times).collect()
}
