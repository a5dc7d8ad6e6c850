//! Pace: a measurement of whether waiting for company gains anything here.
//!
//! If everybody is waited for, the device rests while commits are prepared, and the processors rest while it writes. If
//! nobody is waited for, two groups take turns: one prepares while the device writes for the other. Which way serves
//! more syncs depends on how long the device takes for a write, and how long the processors take for the commits
//! between two writes:
//!
//! ```text
//!   n syncs, a write of D, c of the processors' time for each   waiting: n / (D + n c)   at once: n / 2D, at most 1 / c
//! ```
//!
//! So now and then the other way is tried for a stretch of captures. It is kept if it served clearly more syncs in a
//! tick than the stretch right before it.
//!
//! Like all of `company` it decides when a capture begins, never what is in it. The leader counts; if it dies here, it
//! leaves a stretch that is a little off.

use core::sync::atomic::Ordering::Relaxed;

use seawall_wire::desk::Desk;

/// In captures: long enough to tell one pace from the other, which differ by a sixth where it matters.
const STRETCH: u32 = 128;
/// Stretches before the first trial, and after one that changed something.
const FIRST: u32 = 2;
/// Stretches between two trials once nothing changes any more; until then they double each time. The cost of a trial is
/// paid for one stretch in 33.
const MOST: u32 = 32;
/// The new pace must be better by this part of the old one: less is noise.
const MARGIN: u64 = 16;

/// True while captures begin at once.
pub(super) fn is_at_once(desk: Desk<'_>) -> bool {
    desk.at_once().load(Relaxed) != 0
}

/// Call this when a capture begins, with the number of all syncs that ever waited, and the time in ticks.
pub(super) fn count(desk: Desk<'_>, waits: u64, now: u64) {
    let left = desk.stretch().load(Relaxed);
    if left > 0 {
        desk.stretch().store(left - 1, Relaxed);
        return;
    }
    let took = now.saturating_sub(desk.stretch_at().load(Relaxed));
    let served = waits.saturating_sub(desk.stretch_waits().load(Relaxed));
    judge(desk, took.saturating_mul(1024) / served.max(1));
    desk.stretch().store(STRETCH, Relaxed);
    desk.stretch_at().store(now, Relaxed);
    desk.stretch_waits().store(waits, Relaxed);
}

/// Decides what comes after a stretch with this pace.
fn judge(desk: Desk<'_>, pace: u64) {
    let untried = desk.untried().load(Relaxed);
    if untried > 0 {
        desk.pace().store(pace, Relaxed);
        desk.untried().store(untried - 1, Relaxed);
        if untried == 1 {
            turn(desk);
        }
        return;
    }
    // It was a trial, unless it is the very first stretch; the stretch before it went the other way.
    let before = desk.pace().load(Relaxed);
    let is_better = pace <= before - before / MARGIN;
    if before != 0 && !is_better {
        turn(desk);
    }
    let rest = if is_better { FIRST } else { (desk.rest().load(Relaxed).min(MOST / 2) * 2).max(FIRST) };
    desk.rest().store(rest, Relaxed);
    desk.untried().store(rest, Relaxed);
}

fn turn(desk: Desk<'_>) {
    desk.at_once().store(u32::from(!is_at_once(desk)), Relaxed);
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::super::desk_memory::desk_memory;
    use super::*;

    /// Runs captures of four syncs each, which take this many ticks when others are waited for, and when they are not;
    /// returns how many of them began at once.
    fn at_once_of(captures: u32, waiting: u64, at_once: u64) -> u32 {
        let region = desk_memory();
        run(Desk::new(&region, 0), captures, waiting, at_once)
    }

    fn run(desk: Desk<'_>, captures: u32, waiting: u64, at_once: u64) -> u32 {
        let (mut now, mut begun_at_once) = (0, 0);
        for capture in 1..=captures {
            now += if is_at_once(desk) { at_once } else { waiting };
            begun_at_once += u32::from(is_at_once(desk));
            count(desk, u64::from(capture) * 4, now);
        }
        begun_at_once
    }

    /// A trial, and the stretches between two trials.
    const ROUND: u32 = (STRETCH + 1) * (MOST + 1);
    /// Captures of the trials in ten rounds: a few early ones come before them.
    const MOST_TRIED: u32 = 15 * (STRETCH + 1);

    #[test]
    fn the_way_that_serves_more_stays_and_the_other_one_is_tried_now_and_then() {
        let captures = 10 * ROUND;
        let (worse, better) = (at_once_of(captures, 100, 150), at_once_of(captures, 150, 100));
        assert!((1..=MOST_TRIED).contains(&worse), "tried, and left again: {worse}");
        assert!(
            captures - better <= MOST_TRIED + (FIRST + 1) * (STRETCH + 1),
            "stays after the first trial: {better}"
        );
    }

    #[test]
    fn what_is_within_the_noise_changes_nothing() {
        assert!(at_once_of(10 * ROUND, 100, 97) <= MOST_TRIED);
    }

    #[test]
    fn words_of_any_value_do_no_lasting_harm() {
        for any in [1, 7, u64::MAX / 2, u64::MAX] {
            let region = desk_memory();
            let desk = Desk::new(&region, 0);
            for word in [desk.at_once(), desk.stretch(), desk.untried()] {
                word.store((any as u32).min(2 * STRETCH), Relaxed);
            }
            for word in [desk.stretch_at(), desk.stretch_waits(), desk.pace()] {
                word.store(any, Relaxed);
            }
            let begun_at_once = run(desk, 20 * ROUND, 150, 100);
            assert!(begun_at_once > 10 * ROUND, "{any}: {begun_at_once}");
        }
    }
}
