//! A service's block cache, and how long its recovery may take, as its drop-in remembers them.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use seawall_daemon::cache::CacheOptions;

use crate::cache::arguments;
use crate::{size, time};

/// A service's block cache.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Cached {
    /// Bytes of it.
    pub size: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Its file, or device.
    pub path: PathBuf,
    /// Bytes that it can grow to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<u64>,
    /// Bytes that may be written to it in a day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub write_budget: Option<u64>,
}

impl Cached {
    /// For people.
    pub fn words(&self) -> String {
        format!("{}, {}, blocks of {}", self.path.display(), size::human(self.size), self.block())
    }

    pub(super) fn block(&self) -> String {
        size::human(u64::from(self.block_bytes))
    }

    pub(super) fn options(&self) -> CacheOptions {
        let Self { size, max, block_bytes, path, write_budget } = self.clone();
        CacheOptions { size, max, block_bytes, write_budget, path: Some(path), is_needed: false }
    }

    /// The daemon's arguments.
    pub fn arguments(&self) -> String {
        let words = arguments(&self.options());
        words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
    }

    /// What the service's drop-in remembers.
    pub fn settings(&self) -> String {
        let line =
            |name: &str, bytes: Option<u64>| bytes.map_or(String::new(), |bytes| format!("{name}={bytes}\n"));
        let more = line("CacheMax", self.max) + &line("CacheWriteBudget", self.write_budget);
        format!(
            "Cache={}\nCacheBlock={}\nCachePath={}\n{more}",
            self.size,
            self.block_bytes,
            self.path.display()
        )
    }

    /// The same read back; `None` if there is none, or it is not as it was written.
    pub fn of(get: impl Fn(&str) -> Option<String>) -> Option<Self> {
        Some(Self {
            size: get("Cache")?.parse().ok()?,
            block_bytes: get("CacheBlock")?.parse().ok()?,
            path: get("CachePath")?.into(),
            max: get("CacheMax").and_then(|max| max.parse().ok()),
            write_budget: get("CacheWriteBudget").and_then(|budget| budget.parse().ok()),
        })
    }
}

/// How long the recovery of a service may take, and where that is set.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Near {
    /// As it was asked: `1s`.
    pub time: String,
    /// The server's settings.
    pub file: PathBuf,
    /// The user who asks PostgreSQL for checkpoints; `None`: the settings alone hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
}

/// The value of `--recovery`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Goal(pub String, pub Duration);

impl FromStr for Goal {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(Self(text.to_owned(), time::goal(text)?))
    }
}
