//! `seawall cache prewarm`: the daemon reads and offers, some MiB for each request, and this shows how far it is.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use seawall_daemon::cache::{Asked, Choice, Listed, Prewarm, Prewarmed, Rule};
use seawall_daemon::control::{Control, ControlError};
use seawall_wire::message::Kind;
use serde_json::json;

use super::asking::{Choose, ask};
use super::files;
use super::names::{Resolver, What};
use crate::{show, size};

/// Bytes of one request.
const STEP: u64 = 8 << 20;

/// Files to be brought.
struct File {
    path: PathBuf,
    blocks: u64,
    /// It was named itself: that it cannot be cached is an error.
    is_named: bool,
}

/// Brings files into the cache.
pub fn prewarm(choose: &Choose) -> Result<()> {
    let (control, listed) = ask(&choose.which)?;
    let mut files = wanted(choose, &listed)?;
    let all: u64 = files.iter().map(|file| file.blocks).sum();
    bound(&mut files, listed.blocks);
    let mut bringing = Bringing::new(&control, &listed, files.iter().map(|file| file.blocks).sum());
    for file in &files {
        bringing.bring(file)?;
    }
    bringing.tell(choose.which.json, all)
}

fn wanted(choose: &Choose, listed: &Listed) -> Result<Vec<File>> {
    let resolver = Resolver { psql: &choose.asking.psql, directories: &listed.directories };
    let mut wanted: Vec<File> = Vec::new();
    for what in choose.what.iter().map(|what| What::of(what)) {
        for (path, covers) in resolver.resolve(&what)? {
            let rule = Rule { policy: Choice::Default, path, covers, table: None };
            let len = |path: &PathBuf| std::fs::metadata(path).map_or(0, |stat| stat.len());
            // The large ones first: hundreds of small ones would take all entries that there are for files.
            let mut paths: Vec<_> = files::of(&rule).into_iter().map(|path| (len(&path), path)).collect();
            paths.sort_by_key(|(len, _)| std::cmp::Reverse(*len));
            for (len, path) in paths {
                let is_new = wanted.iter().all(|file| file.path != path);
                let (is_named, blocks) = (path == rule.path, len / u64::from(listed.block_bytes));
                wanted.extend(is_new.then_some(File { path, blocks, is_named }));
            }
        }
    }
    Ok(wanted)
}

/// No more than the cache has places.
fn bound(files: &mut [File], mut left: u64) {
    for file in files {
        file.blocks = file.blocks.min(left);
        left -= file.blocks;
    }
}

struct Bringing<'a> {
    control: &'a Control,
    listed: &'a Listed,
    step: u32,
    all: u64,
    done: Prewarmed,
    looked_at: u64,
    skipped: Vec<PathBuf>,
    skipped_blocks: u64,
    is_shown: bool,
}

impl<'a> Bringing<'a> {
    fn new(control: &'a Control, listed: &'a Listed, all: u64) -> Self {
        let step = (STEP / u64::from(listed.block_bytes)) as u32;
        let is_shown = std::io::stderr().is_terminal();
        let done = Prewarmed::default();
        Self {
            control,
            listed,
            step,
            all,
            done,
            looked_at: 0,
            skipped: Vec::new(),
            skipped_blocks: 0,
            is_shown,
        }
    }

    fn bring(&mut self, file: &File) -> Result<()> {
        let (mut from, before) = (0, self.looked_at);
        while u64::from(from) < file.blocks {
            let left = file.blocks - u64::from(from);
            let blocks = left.min(u64::from(self.step)) as u32;
            let Some(part) = self.part(file, from, blocks)? else { break };
            self.add(&part);
            self.show(&file.path);
            if part.seen < blocks || part.admitted + part.present == 0 {
                // Its end, or nothing of it has room any more.
                break;
            }
            from += blocks;
        }
        self.looked_at = before + file.blocks;
        Ok(())
    }

    /// `None` if the file is not to be had, and nobody insists on it.
    fn part(&mut self, file: &File, from: u32, blocks: u32) -> Result<Option<Prewarmed>> {
        let wanted = Prewarm { path: file.path.clone(), from, blocks };
        match self.control.request(Kind::Cache, &Asked::Prewarm(wanted)) {
            Ok(part) => Ok(Some(part)),
            Err(ControlError::Failed(why)) if file.is_named => bail!(why),
            Err(ControlError::Failed(_)) => {
                self.skipped.push(file.path.clone());
                self.skipped_blocks += file.blocks;
                Ok(None)
            }
            Err(e) => Err(e.into()),
        }
    }

    fn add(&mut self, part: &Prewarmed) {
        let done = &mut self.done;
        done.seen += part.seen;
        done.present += part.present;
        done.admitted += part.admitted;
        done.passed += part.passed;
        done.busy += part.busy;
        self.looked_at += u64::from(part.seen);
    }

    fn show(&self, path: &Path) {
        if self.is_shown {
            let percent = (self.looked_at * 100).checked_div(self.all).unwrap_or(100);
            err!("\r\x1b[K{percent:>3} %  {} read in  {}", self.bytes(self.done.admitted), path.display());
            // A line that is shown late is only that.
            let _ = std::io::stderr().flush();
        }
    }

    fn bytes(&self, blocks: u32) -> String {
        size::human(u64::from(blocks) * u64::from(self.listed.block_bytes))
    }

    fn tell(&self, as_json: bool, all: u64) -> Result<()> {
        if self.is_shown {
            err!("\r\x1b[K");
        }
        let Prewarmed { seen, present, admitted, passed, busy } = self.done;
        let left = all.saturating_sub(u64::from(seen) + self.skipped_blocks);
        if as_json {
            return show::json(&json!({
                "blocks": all, "block_bytes": self.listed.block_bytes, "admitted": admitted, "present": present,
                "no_room": passed, "busy": busy, "not_read": left, "skipped": self.skipped,
            }));
        }
        outln!("{} read in, {} were there already", self.bytes(admitted), self.bytes(present));
        if passed > 0 || left > 0 {
            let left = u32::try_from(left).unwrap_or(u32::MAX).saturating_add(passed);
            outln!(
                "{} found no room: other blocks make room only for files to keep (`seawall cache keep`), up \
                 to {}",
                self.bytes(left),
                size::human(self.listed.kept_max * u64::from(self.listed.block_bytes))
            );
        }
        if busy > 0 {
            outln!("{} are being written, or their file is not served now", self.bytes(busy));
        }
        if !self.skipped.is_empty() {
            outln!(
                "{} files were left out: their policy or their kind keeps them out of the cache, or they \
                 have no entry in it",
                self.skipped.len()
            );
        }
        Ok(())
    }
}
