//! The block cache in a frame: one line, and the files that are read most.

use seawall_daemon::cache::{CacheStatus, CachedFileStatus};
use seawall_daemon::status::Status;
use seawall_page::scale::{bytes, digits};

use super::screen::{Page, Paint};
use crate::period::block_cache as period;

const FILES: usize = 5;

/// What it holds and answers; nothing where none is wanted.
pub fn line(out: &mut Page, before: &Status, now: &Status, seconds: f64) {
    match (&now.cache, &now.without_cache) {
        (Some(cache), _) => whole(out, before.cache.as_ref(), cache, seconds),
        (None, Some(why)) => out.line(Paint::Bad, &format!("NO BLOCK CACHE: {why}")),
        (None, None) => {}
    }
}

fn whole(out: &mut Page, before: Option<&CacheStatus>, now: &CacheStatus, seconds: f64) {
    let (hits, misses) = (
        grown(now.hits, before.map_or(0, |before| before.hits)),
        grown(now.misses, before.map_or(0, |before| before.misses)),
    );
    let used = now.blocks_used as f64 * 100.0 / now.blocks.max(1) as f64;
    let text = format!(
        "cache {} ({}) {used:.0} % used   answered {}   hits/s {}   disk/s {}",
        bytes(now.size as f64),
        now.medium_name,
        share(hits, misses),
        digits(hits / seconds),
        digits(misses / seconds)
    );
    out.line(Paint::Plain, &text);
    if let Some(why) = &now.off {
        out.line(Paint::Bad, &format!("CACHE OFF: {why}"));
    } else if now.files_not_served > 0 {
        out.line(
            Paint::Warn,
            &format!("{} of {} cached files are not served now", now.files_not_served, now.files),
        );
    }
}

/// The files that were read most since the last look.
pub fn files(out: &mut Page, before: &Status, now: &Status, seconds: f64) {
    let Some(cache) = now.cache.as_ref().filter(|cache| !cache.by_file.is_empty()) else { return };
    let earlier = |file: &CachedFileStatus| {
        let found = before.cache.as_ref()?.by_file.iter().find(|f| f.id == file.id)?;
        Some((found.hits, found.misses))
    };
    let mut rows: Vec<(f64, f64, &CachedFileStatus)> = cache
        .by_file
        .iter()
        .map(|file| {
            let (hits, misses) = earlier(file).unwrap_or((file.hits, file.misses));
            (grown(file.hits, hits), grown(file.misses, misses), file)
        })
        .collect();
    rows.retain(|(hits, misses, file)| hits + misses > 0.0 || file.not_served.is_some());
    rows.sort_by(|a, b| (b.0 + b.1).total_cmp(&(a.0 + a.1)));
    if rows.is_empty() {
        return;
    }
    out.line(Paint::Plain, "");
    let row =
        |hits: &str, disk: &str, share: &str, path: &str| format!("{hits:>9}{disk:>9}{share:>10}  {path}");
    out.line(Paint::Dim, &row("≈hits/s", "≈disk/s", "answered", "file in the block cache"));
    for (hits, misses, file) in rows.into_iter().take(FILES) {
        let path = out.tail(&file.path.display().to_string(), 30);
        let text = row(&digits(hits / seconds), &digits(misses / seconds), &share(hits, misses), &path);
        out.line(if file.not_served.is_some() { Paint::Warn } else { Paint::Plain }, &text);
    }
}

/// Counters that began again show nothing negative.
fn grown(now: u64, before: u64) -> f64 {
    now.saturating_sub(before) as f64
}

fn share(hits: f64, misses: f64) -> String {
    period::share(hits, misses).map_or("–".into(), |percent| format!("{percent:.1} %"))
}
