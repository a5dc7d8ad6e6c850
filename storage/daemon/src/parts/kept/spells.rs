//! How often something was so, and for how long.

use std::time::{Duration, Instant};

/// How often something was so, and for how long.
#[derive(Default)]
pub(super) struct Spells {
    since: Option<Instant>,
    before: Duration,
    /// How often it began.
    pub times: u64,
}

impl Spells {
    /// It is so now, or not.
    pub fn note(&mut self, is_so: bool) {
        match (is_so, self.since) {
            (true, None) => (self.since, self.times) = (Some(Instant::now()), self.times + 1),
            (false, Some(since)) => (self.since, self.before) = (None, self.before + since.elapsed()),
            _ => {}
        }
    }

    /// For how long it has been so now, if it is.
    pub fn now(&self) -> Option<Duration> {
        self.since.map(|since| since.elapsed())
    }

    pub fn total(&self) -> Duration {
        self.before + self.now().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spell_is_counted_once_however_often_it_is_seen() {
        let mut spells = Spells::default();
        spells.note(false);
        assert_eq!((spells.times, spells.total(), spells.now()), (0, Duration::ZERO, None));
        spells.note(true);
        let since = spells.since;
        spells.note(true);
        assert_eq!((spells.times, spells.since), (1, since), "it goes on");
        std::thread::sleep(Duration::from_millis(2));
        assert!(spells.total() >= Duration::from_millis(2), "also before it is over");
        spells.note(false);
        let total = spells.total();
        assert!(total >= Duration::from_millis(2));
        spells.note(false);
        assert_eq!((spells.times, spells.total(), spells.now()), (1, total, None), "it is over");
        spells.note(true);
        assert_eq!(spells.times, 2);
    }
}
