//! What recoveries of this data took: kept between runs, as a file for each data directory.

use std::path::Path;

use seawall_wire::shm::Preset;

use super::kept;
use super::speed::Speed;

/// One fast recovery, of pages that the kernel still had, says little about the next one: the known speed grows by no more
/// than this factor at a time, and falls at once.
const GROWS: f64 = 1.5;

/// The speed of this data's last recoveries, else what is assumed.
pub fn load(preset: Preset, data: &Path) -> Speed {
    kept::read(data, "json").unwrap_or_else(|| Speed::assumed(preset))
}

/// Keeps what a recovery showed. If that cannot be written, the next run assumes a speed again.
pub fn keep(data: &Path, known: &Speed, shown: Speed) -> Speed {
    let new = grown(known, shown);
    if let Err(e) = kept::write(data, "json", &new) {
        errln!("seawall: the speed of this recovery is forgotten: {e}");
    }
    new
}

fn grown(known: &Speed, shown: Speed) -> Speed {
    match known.measured {
        true => Speed { replayed: shown.replayed.min(known.replayed * GROWS), ..shown },
        false => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_speed_falls_at_once_and_grows_slowly() {
        let at = |replayed: f64, measured: bool| Speed { fixed_s: 0.2, replayed, measured };
        assert_eq!(grown(&at(1e7, true), at(1e9, true)).replayed, 1.5e7);
        assert_eq!(grown(&at(1e7, true), at(1e6, true)).replayed, 1e6);
        assert_eq!(grown(&at(1e7, false), at(1e9, true)).replayed, 1e9, "nothing was known");
    }
}
