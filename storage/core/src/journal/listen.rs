//! Listening: whether a thread that waits for keepers looks for their answers for a while before it sleeps.
//!
//! A keeper in the same rack answers before a thread can fall asleep and be woken. A keeper that is far away does not,
//! nor does one that needs the very processor which the listening thread occupies. Only a trial shows which it is. So
//! trials are repeated: after twice as many batches each time that one was in vain, and after half as many each time
//! that it was not.
//!
//! This decides how a thread waits, never for what: nothing relies on it, and the figures may be out of date.

use core::sync::atomic::Ordering::Relaxed;

use seawall_wire::desk::Desk;

/// How often to look for answers: some 25 µs.
const LOOKS: u32 = 40;
/// The most batches without a look between two trials: a trial costs some 25 µs of a processor.
const MOST: u32 = 64;

/// How often a leader looks for answers before it sleeps.
pub(super) fn looks(desk: Desk<'_>) -> u32 {
    let left = desk.unheard().load(Relaxed).min(MOST);
    if left == 0 {
        return LOOKS;
    }
    desk.unheard().store(left - 1, Relaxed);
    0
}

/// Call this with the outcome: whether enough had answered by then.
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

    /// For how many of these batches it listened.
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
        // Once it helps again, each batch is listened for after a few trials.
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
