//! Limits: so many requests, so many bytes a second, over all queues of a disk.
//!
//! A bucket for each, a tenth of a second deep: whoever takes more than there is waits until it is there again.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use seawall_media::locks::lock;

/// What a disk may do in a second. `None`: whatever it can.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Reads and writes.
    pub requests: Option<u64>,
    /// Bytes, read and written.
    pub bytes: Option<u64>,
}

/// So much may be taken before it is there.
const DEPTH: Duration = Duration::from_millis(100);

/// Keeps a disk to its limits.
pub struct Pace {
    limits: Limits,
    /// When everything that was taken has been there, by requests and by bytes.
    until: Mutex<[Instant; 2]>,
}

impl Pace {
    /// By these.
    pub fn new(limits: Limits) -> Self {
        Self { limits, until: Mutex::new([Instant::now(); 2]) }
    }

    /// Takes a request of so many bytes, and says how long it is to wait.
    pub fn take(&self, bytes: u64) -> Duration {
        if self.limits.requests.is_none() && self.limits.bytes.is_none() {
            return Duration::ZERO;
        }
        let now = Instant::now();
        let mut until = lock(&self.until);
        let takes = [(self.limits.requests, 1), (self.limits.bytes, bytes)];
        let mut wait = Duration::ZERO;
        for (until, (rate, taken)) in until.iter_mut().zip(takes) {
            let Some(rate) = rate.filter(|rate| *rate > 0) else { continue };
            *until = (*until).max(now) + Duration::from_secs_f64(taken as f64 / rate as f64);
            wait = wait.max((*until - now).saturating_sub(DEPTH));
        }
        wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_takes_more_than_there_is_waits_as_long_as_it_takes_to_be_there() {
        let pace = Pace::new(Limits { requests: Some(100), bytes: Some(1 << 20) });
        let waits: Vec<Duration> = (0..20).map(|_| pace.take(512)).collect();
        assert_eq!(waits[5], Duration::ZERO, "a tenth of a second is there at once");
        assert!(
            waits[19] > Duration::from_millis(80) && waits[19] <= Duration::from_millis(100),
            "{waits:?}"
        );
        assert!(pace.take(2 << 20) > Duration::from_millis(1500), "bytes count too");
        assert_eq!(Pace::new(Limits::default()).take(u64::MAX), Duration::ZERO);
    }
}
