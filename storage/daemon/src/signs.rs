//! The messages between a daemon and its [watchdog](crate::watchdog).

use rustix::time::{ClockId, clock_gettime};

/// What the watchdog says.
pub(crate) enum ToDaemon {
    /// Give a sign. Sent at this time.
    Beat { at_ns: u64 },
    /// This process opened this file. 0: it is not known which.
    Opened { dev: u64, ino: u64, pid: u32 },
}

impl ToDaemon {
    pub fn bytes(&self) -> Vec<u8> {
        let (tag, words) = match *self {
            Self::Beat { at_ns } => (b'b', vec![at_ns]),
            Self::Opened { dev, ino, pid } => (b'o', vec![dev, ino, pid.into()]),
        };
        std::iter::once(tag).chain(words.iter().flat_map(|word| word.to_ne_bytes())).collect()
    }

    pub fn of(bytes: &[u8]) -> Option<Self> {
        let (tag, rest) = bytes.split_first()?;
        let words: Vec<u64> =
            rest.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("8 bytes"))).collect();
        match (tag, words.as_slice()) {
            (b'b', [at_ns]) => Some(Self::Beat { at_ns: *at_ns }),
            (b'o', [dev, ino, pid]) => Some(Self::Opened { dev: *dev, ino: *ino, pid: *pid as u32 }),
            _ => None,
        }
    }
}

/// What the daemon says.
pub(crate) enum FromDaemon<'a> {
    /// The sign.
    Beat,
    /// This is answered to Hello from now on, with the descriptors that come along.
    Hello(&'a [u8]),
}

impl<'a> FromDaemon<'a> {
    pub fn of(bytes: &'a [u8]) -> Option<Self> {
        match bytes.split_first()? {
            (b'b', _) => Some(Self::Beat),
            (b'h', reply) => Some(Self::Hello(reply)),
            _ => None,
        }
    }
}

/// Of CLOCK_MONOTONIC: the time that a machine sleeps does not count.
pub(crate) fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_watchdog_says_is_understood() {
        let said = |what: ToDaemon| ToDaemon::of(&what.bytes()).expect("understood");
        assert!(matches!(said(ToDaemon::Beat { at_ns: 7 }), ToDaemon::Beat { at_ns: 7 }));
        let opened = said(ToDaemon::Opened { dev: 1, ino: 2, pid: 3 });
        assert!(matches!(opened, ToDaemon::Opened { dev: 1, ino: 2, pid: 3 }));
        for other in [&b""[..], b"b", b"b123", b"o12345678", b"x"] {
            assert!(ToDaemon::of(other).is_none());
        }
    }
}
