//! Listening: whether whoever waits for keepers looks for their answers for a while before it sleeps.
//!
//! A keeper in the same rack has answered before a thread has fallen asleep and been woken. One that is far away has not,
//! nor has one that waits for a processor which whoever listens takes from it. Which of the two it is only shows when it is
//! tried. So it is tried again and again, after twice as many batches each time that it was in vain, and half as many each
//! time that it was not.
//!
//! This decides how somebody waits, never for what: nothing relies on it, and the figures may be of any age.

use core::sync::atomic::Ordering::Relaxed;

use seawall_wire::desk::Desk;

/// How often answers are looked for: some 25 µs.
const LOOKS: u32 = 40;
/// The most batches without a look between two trials: what those cost is some 25 µs of a processor each.
const MOST: u32 = 64;

/// How often whoever leads looks for answers before it sleeps.
pub(super) fn looks(desk: Desk<'_>) -> u32 {
    let left = desk.unheard().load(Relaxed).min(MOST);
    if left == 0 {
        return LOOKS;
    }
    desk.unheard().store(left - 1, Relaxed);
    0
}

/// To be told what came of that: whether enough had answered by then.
pub(super) fn learn(desk: Desk<'_>, looked: u32, sufficed: bool) {
    if looked == 0 {
        return;
    }
    let pause = desk.pause().load(Relaxed).min(MOST);
    let pause = if sufficed { pause / 2 } else { (2 * pause + 1).min(MOST) };
    desk.pause().store(pause, Relaxed);
    desk.unheard().store(pause, Relaxed);
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::super::desk_memory::desk_memory;
    use super::*;

    /// How many of so many batches were listened for.
    fn heard(desk: Desk<'_>, batches: u32, suffices: bool) -> u32 {
        (0..batches)
            .filter(|_| {
                let looked = looks(desk);
                learn(desk, looked, suffices);
                looked > 0
            })
            .count() as u32
    }

    #[test]
    fn who_listens_in_vain_does_so_rarely_and_who_hears_goes_on() {
        let region = desk_memory();
        let desk = Desk::new(&region, 0);
        assert_eq!(heard(desk, 1000, true), 1000);
        let tried = heard(desk, 10_000, false);
        assert!((10_000 / (MOST + 1)..300).contains(&tried), "{tried}");
        // Once it helps again it is done for each batch after a few trials.
        let again = heard(desk, 1000, true);
        assert!(again > 1000 - 3 * MOST, "{again}");
    }

    #[test]
    fn words_of_any_value_do_no_lasting_harm() {
        let region = desk_memory();
        let desk = Desk::new(&region, 0);
        desk.unheard().store(u32::MAX, Relaxed);
        desk.pause().store(u32::MAX, Relaxed);
        assert!(heard(desk, 1000, true) > 1000 - 4 * MOST);
    }
}
