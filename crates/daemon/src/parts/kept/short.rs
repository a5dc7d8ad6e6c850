//! For how long too few keepers counted, and how often.

use std::time::{Duration, Instant};

/// For how long too few keepers counted.
#[derive(Default)]
pub(super) struct Short {
    since: Option<Instant>,
    before: Duration,
    pub times: u64,
}

impl Short {
    /// They are too few now, or not.
    pub fn note(&mut self, is_short: bool) {
        match (is_short, self.since) {
            (true, None) => (self.since, self.times) = (Some(Instant::now()), self.times + 1),
            (false, Some(since)) => (self.since, self.before) = (None, self.before + since.elapsed()),
            _ => {}
        }
    }

    /// For how long they have been too few now.
    pub fn now(&self) -> Duration {
        self.since.map_or(Duration::ZERO, |since| since.elapsed())
    }

    pub fn total(&self) -> Duration {
        self.before + self.now()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_short_of_keepers_is_counted_once_however_often_it_is_seen() {
        let mut short = Short::default();
        short.note(false);
        assert_eq!((short.times, short.total()), (0, Duration::ZERO));
        short.note(true);
        let since = short.since;
        short.note(true);
        assert_eq!((short.times, short.since), (1, since), "it goes on");
        std::thread::sleep(Duration::from_millis(2));
        assert!(short.total() >= Duration::from_millis(2), "also before it is over");
        short.note(false);
        let total = short.total();
        assert!(total >= Duration::from_millis(2));
        short.note(false);
        assert_eq!((short.times, short.total()), (1, total), "it is over");
        short.note(true);
        assert_eq!(short.times, 2);
    }
}
