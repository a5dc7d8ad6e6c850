//! `seawall inspect` and `seawall verify`: a look at a pool that changes nothing.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use seawall_core::inspect::{self as offline, Inspection};
use seawall_core::pool;
use seawall_daemon::kept;
use serde_json::json;

use crate::{show, size};

/// Reads a pool.
pub fn look(path: &Path) -> Result<Inspection> {
    Ok(offline::inspect(&kept::open_read_only(path)?))
}

/// Shows what a pool holds.
pub fn inspect(ask: &Look) -> Result<()> {
    let found = look(&ask.pool)?;
    if ask.json {
        return show::json(&found);
    }
    let yes = |b: bool| if b { "yes" } else { "no" }.to_owned();
    let mut facts = vec![
        ("pool", ask.pool.display().to_string()),
        ("uuid", found.uuid.clone()),
        ("format", found.version.to_string()),
        ("size", size::human(found.size)),
        ("segments", format!("{} of {}", found.segments, size::human(u64::from(found.segment_bytes)))),
        ("emulated", yes(found.emulated)),
        ("used in this boot", yes(found.same_boot)),
        ("records", format!("{} found, {} live, {} torn", found.records, found.live, found.torn)),
        ("retired LSN", found.retired_lsn.map_or("damaged".into(), |lsn| lsn.to_string())),
        ("last LSN", found.last_lsn.to_string()),
    ];
    facts.extend(found.spill.as_ref().map(|area| ("spill area", spill(area))));
    show::facts(&facts);
    if !found.roots.is_empty() {
        outln!("\ndirectories");
        let row =
            |r: &offline::RootView| vec![r.path.clone(), r.preset.into(), r.policy.into(), r.uid.to_string()];
        show::table(&["path", "preset", "policy", "uid"], &found.roots.iter().map(row).collect::<Vec<_>>());
    }
    if !found.files.is_empty() {
        outln!("\nfiles");
        let row = |f: &offline::FileView| vec![f.path.clone(), f.live.to_string(), f.watermark.to_string()];
        show::table(&["path", "live", "watermark"], &found.files.iter().map(row).collect::<Vec<_>>());
    }
    found.damage.iter().for_each(|line| outln!("DAMAGED: {line}"));
    Ok(())
}

fn spill(area: &offline::SpillView) -> String {
    let used = area.used.map_or("?".into(), |used| used.to_string());
    let said = format!("{}, {used} of {} slots in use", area.path, area.slots);
    match &area.trouble {
        None => said,
        Some(why) => format!("{said}; it cannot be read: {why}"),
    }
}

/// Checks a pool.
pub fn verify(ask: &Look) -> Result<ExitCode> {
    let mut found = look(&ask.pool)?;
    // Of a log on a device the image in memory may be whole and the device not.
    let checked = if kept::size(&ask.pool)?.is_some() { Ok(None) } else { pool::block::check(&ask.pool) };
    let (journal, damage) = match checked {
        Ok(journal) => (journal, None),
        Err(damage) => (None, Some(damage.to_string())),
    };
    found.damage.extend(damage);
    let clean = found.damage.is_empty();
    if ask.json {
        show::json(&json!({
            "clean": clean, "records": found.records, "live": found.live, "damage": found.damage,
            "last_batch": journal.map(|journal| journal.last),
        }))?;
    } else {
        found.damage.iter().for_each(|line| outln!("DAMAGED: {line}"));
        let verdict = if clean { "clean" } else { "damaged" };
        outln!("{}: {verdict}; {} records, {} live", ask.pool.display(), found.records, found.live);
    }
    Ok(if clean { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A read-only look at a pool file.
#[derive(clap::Args)]
pub struct Look {
    /// The pool
    pool: PathBuf,
    /// JSON instead of text
    #[arg(long)]
    json: bool,
}
