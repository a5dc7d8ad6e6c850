//! A power cut, in a copy: an image is drawn, recovered and judged; the run then goes on as if nothing was.

use std::cell::{Cell, RefCell};
use std::io;
use std::path::PathBuf;

use seawall_core::format::{Layout, SuperblockError};
use seawall_core::inspect::inspect;
use seawall_core::pool::Pool;
use seawall_core::recover::{Locate, Mode, Options, RecoverError, Sink, Target, recover_into, scan};
use seawall_core::table::{self, FileEntry, RootEntry};

use crate::image::visible;
use crate::pending::Units;
use crate::world::World;
use crate::{Survival, space};

/// How the simulator recovers.
pub const REPLAY: Options = Options { mode: Mode::Replay, accept_loss: false };

/// A file as a power cut left it.
pub struct Left {
    content: RefCell<Vec<u8>>,
    dirty: Cell<bool>,
    gone: bool,
}

impl Left {
    fn new(content: Vec<u8>, gone: bool) -> Self {
        Self { content: RefCell::new(content), dirty: Cell::new(false), gone }
    }
}

impl Sink for &Left {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let (at, end) = (offset as usize, offset as usize + bytes.len());
        let mut content = self.content.borrow_mut();
        if !bytes.is_empty() {
            let len = content.len().max(end);
            content.resize(len, 0);
            content[at..end].copy_from_slice(bytes);
        }
        self.dirty.set(true);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.content.borrow_mut().resize(len as usize, 0);
        self.dirty.set(true);
        Ok(())
    }

    fn sync_all(&self) -> io::Result<()> {
        self.dirty.set(false);
        Ok(())
    }
}

struct Places<'a>(&'a [Left]);

impl<'a> Locate for Places<'a> {
    type File = &'a Left;

    fn locate(
        &self,
        _root: Option<&RootEntry>,
        entry: &FileEntry,
        _power_lost: bool,
    ) -> Result<Target<&'a Left>, String> {
        let left = &self.0[number(entry)?];
        if left.gone {
            return Err("it was removed".into());
        }
        Ok(Target { file: left, path: PathBuf::from(&entry.path) })
    }
}

/// The number of the simulated file behind a table entry.
pub fn number(entry: &FileEntry) -> Result<usize, String> {
    let handle: [u8; 4] = entry.identity.handle.as_slice().try_into().map_err(|_| "not a simulated file")?;
    Ok(u32::from_le_bytes(handle) as usize)
}

/// One power cut here and now.
pub fn crash(world: &World) {
    let rng = &world.rng;
    let lines = world.pending.borrow().crash(Survival::draw(rng), rng, |line| world.image.line(line));
    let left = left(world);
    world.count(|c| c.points += 1);
    let damage = rng.one_in(64).then(|| plant(world, &lines)).flatten();
    let damaged = damage.is_some();
    let lines: Vec<_> = lines.into_iter().chain(damage).collect();
    let verdict = world.image.with(&lines, |pool| judge(world, pool, &left, damaged));
    if let Err(why) = verdict {
        world.violate(format!("power cut at point {}: {why}", world.counts.borrow().points));
    }
}

/// The files after a cut. An unlinked one may be there or not.
fn left(world: &World) -> Vec<Left> {
    let files = world.files.borrow();
    files
        .iter()
        .map(|file| {
            let content = file.disk.crash(Survival::draw(&world.rng), &world.rng);
            Left::new(content, file.unlinked && world.rng.one_in(2))
        })
        .collect()
}

fn judge(
    world: &World,
    pool: Result<&Pool, SuperblockError>,
    left: &[Left],
    damaged: bool,
) -> Result<(), String> {
    let pool = match pool {
        Ok(pool) => pool,
        Err(_) if damaged => return refused(world),
        Err(e) => return Err(format!("the superblock is lost: {e:?}")),
    };
    if world.trace {
        world.tell(|| story(pool));
    }
    let deep = !damaged && world.rng.one_in(16);
    if deep {
        examine(world, pool)?;
    }
    let report = match recover_into(pool, REPLAY, &Places(left)) {
        Ok(report) => report,
        Err(_) if damaged && left.iter().all(|file| !file.dirty.get()) => return refused(world),
        Err(RecoverError::Unresolved(_)) if failed_is_gone(world, left) => return Ok(()),
        Err(e) => return Err(format!("recovery refused a pool nobody damaged: {e}")),
    };
    world.count(|c| {
        c.replayed += report.live;
        c.torn += report.torn;
        c.damaged += u64::from(damaged);
    });
    for (index, (file, left)) in world.files.borrow().iter().zip(left).enumerate() {
        if left.dirty.get() {
            return Err(format!("file {index} was replayed into and not synced"));
        }
        if !file.unlinked {
            file.model.check(&left.content.borrow()).map_err(|why| format!("file {index}: {why}"))?;
        }
    }
    if deep {
        idempotent(pool, left)?;
    }
    Ok(())
}

/// What recovery will find, for whoever looks into a violation.
fn story(pool: &Pool) -> String {
    let Ok(files) = table::files(pool) else { return "damaged tables".into() };
    let marks: Vec<_> = files.iter().map(|f| (f.slot, f.generation, f.watermark)).collect();
    let scan = scan(pool, &files.into_iter().map(|f| (f.slot, f)).collect());
    let live: Vec<_> =
        scan.live.iter().map(|(lsn, parts)| (lsn, parts[0].header.offset, parts[0].header.length)).collect();
    format!("retired {:?}, slots {marks:?}, live {live:?}", pool.retired().load(&pool.region))
}

/// A file was removed after a sync of it had failed: its records could not be retired before, and nobody can
/// tell it from a file that was lost. The refusal is the promise kept (P5).
fn failed_is_gone(world: &World, left: &[Left]) -> bool {
    let untouched = left.iter().all(|file| !file.dirty.get());
    untouched && world.files.borrow().iter().zip(left).any(|(file, left)| file.errors > 0 && left.gone)
}

fn refused(world: &World) -> Result<(), String> {
    world.count(|c| {
        c.damaged += 1;
        c.refused += 1;
    });
    Ok(())
}

/// Format validity and log space.
fn examine(world: &World, pool: &Pool) -> Result<(), String> {
    let found = inspect(pool);
    if !found.damage.is_empty() {
        return Err(format!("inspect finds damage: {:?}", found.damage));
    }
    let files = table::files(pool).map_err(|e| e.to_string())?.into_iter().map(|f| (f.slot, f)).collect();
    match world.engine.borrow().as_ref() {
        Some(engine) => space::live_is_not_free(engine, pool, &scan(pool, &files)),
        None => Ok(()),
    }
}

/// A recovered pool has nothing to replay, and what is written then stays.
fn idempotent(pool: &Pool, left: &[Left]) -> Result<(), String> {
    let again = recover_into(pool, REPLAY, &Places(left)).map_err(|e| format!("a second recovery: {e}"))?;
    if again.live != 0 {
        return Err(format!("a second recovery replays {} records", again.live));
    }
    Ok(())
}

/// Flips a bit where a flipped bit must be refused or harmless: superblocks, cells, tables, and records that
/// others follow. The last record of a segment is not among them: damaged, it looks like one that was cut.
fn plant(world: &World, lines: &[(u32, Units)]) -> Option<(u32, Units)> {
    let rng = &world.rng;
    let pool = world.image.pool.borrow();
    let layout = pool.layout();
    let files = world.files.borrow();
    let slots: Vec<u32> = files.iter().filter_map(|f| f.name.map(|name| name.slot)).collect();
    let slot = slots.get(rng.below(slots.len() as u64) as usize).copied().unwrap_or(0);
    let at = match rng.below(6) {
        0 => Layout::superblock(rng.below(2) as usize) + rng.below(104) as usize,
        1 => Layout::retired() + rng.below(32) as usize,
        2 => Layout::root(0) + rng.below(2176) as usize,
        3 => Layout::file(slot) + rng.below(8) as usize,
        4 => Layout::file(slot) + 64 + rng.below(32) as usize,
        _ => Layout::file(slot) + 128 + rng.below(360) as usize,
    };
    debug_assert!(at < layout.segments_at());
    let line = (at / 64) as u32;
    let mut units =
        lines.iter().find(|(l, _)| *l == line).map_or_else(|| visible(&pool.region, line), |(_, u)| *u);
    units[at / 8 % 8] ^= 1 << rng.below(64);
    Some((line, units))
}
