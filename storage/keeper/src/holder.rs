//! The host that has a log: whose writer has the keepers' promise.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use seawall_media::utc;
use serde::{Deserialize, Serialize};

/// A host, as its writer said who it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// Its machine id (machine-id(5)); empty where there is none.
    pub machine: String,
    /// Its name.
    pub host: String,
    /// Since when it has the promise, by the keeper's clock: seconds since 1970. 0: nobody knows.
    #[serde(default)]
    pub since: u64,
}

impl Holder {
    /// This host.
    pub fn here() -> Self {
        let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default().trim().to_owned();
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { machine, host, since: 0 }
    }

    /// True if both are the same host. Where a host has no machine id its name tells.
    pub fn is(&self, other: &Self) -> bool {
        match (self.machine.as_str(), other.machine.as_str()) {
            ("", _) | (_, "") => self.host == other.host,
            (one, another) => one == another,
        }
    }

    /// The same, since now.
    #[must_use]
    pub(crate) fn since_now(self) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self { since, ..self }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host {}", if self.host.is_empty() { "(without a name)" } else { &self.host })?;
        if self.since == 0 {
            Ok(())
        } else {
            write!(f, " since {}", utc(UNIX_EPOCH + Duration::from_secs(self.since)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(machine: &str, host: &str) -> Holder {
        Holder { machine: machine.into(), host: host.into(), since: 0 }
    }

    #[test]
    fn a_host_is_known_by_its_machine_id_and_without_one_by_its_name() {
        assert!(holder("1", "a").is(&holder("1", "b")), "it was renamed");
        assert!(!holder("1", "a").is(&holder("2", "a")));
        assert!(holder("", "a").is(&holder("2", "a")) && !holder("", "a").is(&holder("2", "b")));
        let here = Holder::here();
        assert!(here.is(&Holder::here()) && !here.host.is_empty());
    }

    #[test]
    fn it_is_named_with_the_time_if_that_is_known() {
        let named = Holder { since: 1_795_248_000, ..holder("1", "db-b") };
        assert_eq!(named.to_string(), "host db-b since 2026-11-21T08:00:00Z");
        assert_eq!(holder("", "").to_string(), "host (without a name)");
    }
}
