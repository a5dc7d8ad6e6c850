//! A power cut, in a copy: an image is drawn, recovered and judged; the run then goes on as if nothing was.
//!
//! Judged here: what is damaged is refused before anything is written (P5), what was replayed is synced, a second
//! recovery finds nothing. Not verified: what a refusal says, beyond its kind; damage to both copies of anything; an
//! image that is damaged in two ways at once; refusals for the sake of a file (`seawall-core`'s tests do that).

mod left;

use std::panic::{AssertUnwindSafe, catch_unwind};

use seawall_core::format::SuperblockError;
use seawall_core::inspect::inspect;
use seawall_core::pool::Pool;
use seawall_core::recover::{Mode, Options, RecoverError, recover_into, scan};
use seawall_core::table;

use crate::pending::{LINE, Units};
use crate::world::World;
use crate::{damage, space, watermark};

use left::{AsCut, Places, left};

/// How the simulator recovers.
pub const REPLAY: Options = Options { mode: Mode::Replay, accept_loss: false };

/// What is done to an image before it is recovered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Harm {
    Nothing,
    Tables,
    Log,
    Poison,
}

impl Harm {
    fn draw(world: &World) -> Self {
        match world.rng.below(48) {
            0 => Self::Tables,
            1 => Self::Log,
            2 => Self::Poison,
            _ => Self::Nothing,
        }
    }
}

/// One power cut here and now.
pub fn crash(world: &World) {
    let Some(lines) = world.survivors() else { return };
    let left = left(world);
    world.count(|c| {
        c.points += 1;
        c.points_in_recovery += u64::from(world.recovering.get());
    });
    let harm = Harm::draw(world);
    let flipped = (harm == Harm::Tables).then(|| flip(world, &lines));
    let lines: Vec<_> = lines.into_iter().chain(flipped).collect();
    let verdict = world.with_area(|| world.image.with(&lines, |pool| judge(world, pool, &left, harm)));
    if let Err(why) = verdict {
        world.violate(format!("power cut at point {}: {why}", world.counts.borrow().points));
    }
}

/// The line in which a bit of the tables is flipped.
fn flip(world: &World, lines: &[(u32, Units)]) -> (u32, Units) {
    let slots: Vec<u32> = world.files.borrow().iter().filter_map(|f| f.name.map(|name| name.slot)).collect();
    let (at, mask) = match &world.image.pool.borrow().area {
        Some(area) if world.rng.one_in(3) => damage::in_entries(&world.rng, &world.image.pool.borrow(), area),
        _ => damage::in_tables(&world.rng, &slots),
    };
    let line = (at / LINE) as u32;
    let known = lines.iter().find(|(l, _)| *l == line);
    let mut units = known.map_or_else(|| world.image.line(line), |(_, units)| *units);
    units[at / 8 % 8] ^= mask;
    (line, units)
}

fn judge(
    world: &World,
    pool: Result<&Pool, SuperblockError>,
    left: &AsCut,
    harm: Harm,
) -> Result<(), String> {
    let pool = match pool {
        Ok(pool) => pool,
        Err(_) if harm == Harm::Tables => return refused(world, left),
        Err(e) => return Err(format!("the superblock is lost: {e:?}")),
    };
    if world.trace {
        world.tell(|| story(pool));
    }
    let damaged = match harm {
        Harm::Poison => return poisoned(world, pool, left),
        Harm::Log => {
            world.area.as_ref().is_some_and(|disk| disk.flip(&world.rng, pool))
                || damage::in_log(&world.rng, pool)
        }
        Harm::Tables => true,
        Harm::Nothing => false,
    };
    let deep = !damaged && world.rng.one_in(16);
    if deep {
        examine(world, pool)?;
    }
    if left.tree.is_some() && !damaged && world.rng.one_in(8) {
        cut_short(world, pool, left);
    }
    let report = match recover_into(pool, REPLAY, &&Places::of(world, left)) {
        Ok(report) => report,
        Err(RecoverError::Table(_) | RecoverError::Damaged(_)) if damaged => return refused(world, left),
        Err(RecoverError::Unresolved(_)) if failed_is_gone(world, left) => return Ok(()),
        Err(e) if damaged => return Err(format!("damage is not named as such: {e}")),
        Err(e) => return Err(format!("recovery refused a pool nobody damaged: {e}")),
    };
    world.count(|c| {
        c.replayed += report.live;
        c.torn += report.torn;
        c.damaged += u64::from(damaged);
    });
    contents(world, left)?;
    if deep { idempotent(world, pool, left) } else { Ok(()) }
}

/// The power fails once more, while the names are replayed: what that recovery did to them is kept up to some point.
fn cut_short(world: &World, pool: &Pool, left: &AsCut) {
    let Some(tree) = &left.tree else { return };
    let places = Places::until(world, left, world.rng.below(24));
    if let Err(RecoverError::Io { .. }) = recover_into(pool, REPLAY, &&places) {
        let cut = tree.borrow().cut(&world.rng);
        *tree.borrow_mut() = cut;
        world.count(|c| c.cut_short += 1);
    }
}

/// P1, P2, P3.
fn contents(world: &World, left: &AsCut) -> Result<(), String> {
    for (index, (file, left)) in world.files.borrow().iter().zip(&left.files).enumerate() {
        if left.dirty.get() {
            return Err(format!("file {index} was replayed into and not synced"));
        }
        if !file.unlinked && !left.gone {
            file.check(&left.content.borrow()).map_err(|why| format!("file {index}: {why}"))?;
        }
    }
    match world.shelf.as_ref().zip(left.tree.as_ref()) {
        Some((shelf, tree)) => shelf.ledger.borrow().check(&tree.borrow()),
        None => Ok(()),
    }
}

/// A line of the pool cannot be read: whoever touches it is killed (SIGBUS). Nothing may be written then.
fn poisoned(world: &World, pool: &Pool, left: &AsCut) -> Result<(), String> {
    world.poison.set(Some(damage::line(&world.rng, pool)));
    let died = catch_unwind(AssertUnwindSafe(|| drop(recover_into(pool, REPLAY, &&Places::of(world, left)))))
        .is_err();
    world.poison.set(None);
    world.count(|c| {
        c.poisoned += 1;
        c.died_of_poison += u64::from(died);
    });
    let touched = left.is_touched();
    if died && touched { Err("recovery died of a poisoned line after it had written".into()) } else { Ok(()) }
}

/// What recovery will find, for whoever looks into a violation.
fn story(pool: &Pool) -> String {
    let Ok(files) = table::files(pool) else { return "damaged tables".into() };
    let marks: Vec<_> = files.iter().map(|f| (f.slot, f.generation, f.watermark)).collect();
    let scan = scan(pool, &files.into_iter().map(|f| (f.slot, f)).collect());
    let live: Vec<_> =
        scan.live.records().map(|parts| parts[0].header).map(|of| (of.lsn, of.offset, of.length)).collect();
    format!("retired {:?}, slots {marks:?}, live {live:?}", pool.retired().load(&pool.region))
}

/// A file was removed after a sync of it, or the log's device, had failed: its records could not be retired before, and
/// nobody can tell it from a file that was lost. The refusal is the promise kept (P5). Of names see
/// [`World::may_refuse`].
fn failed_is_gone(world: &World, left: &AsCut) -> bool {
    let untouched = !left.is_touched();
    let may_live = |errors: u64| errors > 0 || world.log_has_failed();
    let is_gone = || {
        world.files.borrow().iter().zip(&left.files).any(|(file, left)| may_live(file.errors) && left.gone)
    };
    untouched && (world.may_refuse() || is_gone())
}

/// P5: what is damaged is refused before anything is written.
fn refused(world: &World, left: &AsCut) -> Result<(), String> {
    world.count(|c| {
        c.damaged += 1;
        c.refused += 1;
    });
    let touched = left.is_touched();
    if touched { Err("recovery refused after it had written".into()) } else { Ok(()) }
}

/// Format validity, the rule of the watermark, and log space.
fn examine(world: &World, pool: &Pool) -> Result<(), String> {
    world.count(|c| c.examined += 1);
    let found = inspect(pool);
    if !found.damage.is_empty() {
        return Err(format!("inspect finds damage: {:?}", found.damage));
    }
    let files = table::files(pool).map_err(|e| e.to_string())?;
    let Some(engine) = world.engine.borrow().clone() else { return Ok(()) };
    watermark::holds(&engine, &files)?;
    space::live_is_not_free(&engine, pool, &scan(pool, &files.into_iter().map(|f| (f.slot, f)).collect()))
}

/// A recovered pool has nothing to replay, and what is written then stays.
fn idempotent(world: &World, pool: &Pool, left: &AsCut) -> Result<(), String> {
    let again = recover_into(pool, REPLAY, &&Places::of(world, left))
        .map_err(|e| format!("a second recovery: {e}"))?;
    if again.live != 0 {
        return Err(format!("a second recovery replays {} records", again.live));
    }
    contents(world, left)
}
