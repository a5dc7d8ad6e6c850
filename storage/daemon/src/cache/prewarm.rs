//! Blocks of a file are brought before anybody asks for them, by the daemon itself: as whoever reads through the cache does
//! it, with O_DIRECT, so that the page cache is left alone. They take the room there is: a block that has a place keeps it,
//! unless the file is to be kept.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use seawall_cache::set::Policy;
use seawall_cache::shared::{CachedFile, Lookup, Offered, OperationOwner, Token};
use seawall_media::locks::lock;
use seawall_wire::message::Status;
use serde::{Deserialize, Serialize};

use super::aligned::{ALIGNMENT, Aligned};
use super::applying::zone_for;
use super::enter::enter;
use super::owner::me;
use super::zone::{Zone, capacity};
use crate::state::Daemon;
use crate::unmanaged::Unmanaged;

/// Bytes that are read at once.
const PIECE: usize = 1 << 20;
/// The most blocks of one request: whoever asks shows how far it is.
const BLOCKS_MAX: u32 = 4096;

/// A part of a file that is to be brought.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Prewarm {
    /// A real path.
    #[serde(with = "seawall_core::path_text")]
    pub path: PathBuf,
    /// The first block.
    pub from: u32,
    /// How many.
    pub blocks: u32,
}

/// What came of it.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct Prewarmed {
    /// Blocks that were looked at: fewer than were asked for at the end of the file.
    pub seen: u32,
    /// Of these, blocks that were there.
    pub present: u32,
    /// Blocks that are there now.
    pub admitted: u32,
    /// Blocks for which there was no room.
    pub passed: u32,
    /// Blocks that somebody wrote meanwhile, or whose file is not served now.
    pub busy: u32,
}

/// Brings it.
pub(crate) fn prewarm(daemon: &Daemon, wanted: &Prewarm) -> Result<Prewarmed, String> {
    let zone = zone_for(daemon, &wanted.path)?;
    if zone.policies.of(&wanted.path) == Policy::None {
        return Err(format!(
            "the policy of {0} keeps it out of the block cache: `seawall cache default {0}` allows it",
            wanted.path.display()
        ));
    }
    let failed = |doing: &str, e: io::Error| format!("cannot {doing} {}: {e}", wanted.path.display());
    let file = open(&wanted.path).map_err(|e| failed("open", e))?;
    let file = OwnedFd::from(file);
    let reference = enter(daemon, &file).map_err(|why| refused(zone, &wanted.path, &why))?;
    let direct = direct(&file).map_err(|e| failed("open", e))?;
    let mut bringing = Bringing { daemon, zone, reference, file: direct, done: Prewarmed::default() };
    bringing.bring(wanted.from, wanted.blocks.min(BLOCKS_MAX)).map_err(|e| failed("read", e))?;
    Ok(bringing.done)
}

fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    OpenOptions::new().read(true).custom_flags(flags.bits() as i32).open(path)
}

/// Past the page cache, on a file system that can.
fn direct(file: &OwnedFd) -> io::Result<File> {
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let direct = OpenOptions::new().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(path);
    match direct {
        Err(e) if e.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
            file.try_clone().map(File::from)
        }
        direct => direct,
    }
}

fn refused(zone: &Zone, path: &Path, Unmanaged(status): &Unmanaged) -> String {
    let entries = capacity().min(zone.cache.layout().files as usize);
    let why = match status {
        Status::Bypass => {
            "files of this kind are not cached: logs, files in RAM, and files on a file system without \
             stable handles"
        }
        _ if zone.all().len() >= entries => {
            return format!(
                "{}: all {entries} entries for files are in use: a larger cache has more, and so has a daemon with a higher limit of \
                 open files (ulimit -n)",
                path.display()
            );
        }
        _ => "it cannot be cached now: another program writes to it unseen; the daemon's log says which",
    };
    format!("{}: {why}", path.display())
}

struct Bringing<'d> {
    daemon: &'d Daemon,
    zone: &'d Zone,
    reference: CachedFile,
    file: File,
    done: Prewarmed,
}

impl Bringing<'_> {
    fn bring(&mut self, from: u32, blocks: u32) -> io::Result<()> {
        let size = self.zone.cache.layout().block_bytes as usize;
        let at_once = (PIECE / size) as u32;
        let mut memory = Aligned::new(PIECE);
        let end = from.saturating_add(blocks);
        let mut first = from;
        while first < end && !self.daemon.lifetime.is_ending() {
            let wanted = at_once.min(end - first);
            if self.piece(first, &mut memory[..wanted as usize * size], size)? < wanted {
                break;
            }
            first += wanted;
        }
        Ok(())
    }

    /// Brings as many blocks as there is memory; how many whole ones the file has there.
    fn piece(&mut self, first: u32, memory: &mut [u8], size: usize) -> io::Result<u32> {
        let _complete = lock(&self.zone.bringing);
        // Tokens before the disk is read.
        let blocks = first..first + (memory.len() / size) as u32;
        let looks: Vec<Lookup> = blocks.map(|number| self.zone.cache.look(self.reference, number)).collect();
        let is_there = looks.iter().all(|look| *look == Lookup::Hit);
        let whole = if is_there { looks.len() } else { self.read(first, memory, size)? / size };
        let owner = me(&self.daemon.engine, self.daemon.slot);
        for (look, block) in looks.iter().zip(memory.chunks_exact(size)).take(whole) {
            self.done.seen += 1;
            let count = match look {
                Lookup::Hit => &mut self.done.present,
                Lookup::Miss(None) => &mut self.done.busy,
                Lookup::Miss(Some(token)) => match self.offer(owner, token, block) {
                    Offered::Admitted | Offered::Staged => &mut self.done.admitted,
                    Offered::Passed => &mut self.done.passed,
                    Offered::Stale | Offered::Busy | Offered::Failed => &mut self.done.busy,
                },
            };
            *count += 1;
        }
        Ok(whole as u32)
    }

    fn offer(&self, owner: OperationOwner, token: &Token, block: &[u8]) -> Offered {
        let cache = &self.zone.cache;
        match &self.zone.disk {
            None => cache.offer_early(owner, token, block),
            Some(_) if !self.zone.may_bring() => Offered::Passed,
            Some(disk) => cache
                .bring_early(owner, token, block, |at, block| disk.write(cache, &self.daemon.log, at, block)),
        }
    }

    fn read(&self, first: u32, memory: &mut [u8], size: usize) -> io::Result<usize> {
        let (offset, mut done) = (u64::from(first) * size as u64, 0);
        while done < memory.len() {
            match self.file.read_at(&mut memory[done..], offset + done as u64) {
                Ok(0) => break,
                // What ends within a block is the file's end: O_DIRECT could not go on from there.
                Ok(read) if read % ALIGNMENT != 0 => return Ok(done + read),
                Ok(read) => done += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(done)
    }
}
