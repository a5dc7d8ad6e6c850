//! How a daemon is run.

use std::path::PathBuf;

use crate::cache::CacheOptions;

/// How a daemon is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The pool.
    pub pool: PathBuf,
    /// Stay when the last client has gone.
    pub keep: bool,
    /// Have the pool recovered when this machine starts after a crash.
    pub boot: bool,
    /// Say everything on stderr too.
    pub journal: bool,
    /// The block cache to have beside the log.
    pub cache: Option<CacheOptions>,
    /// What starts the [watchdog](crate::watchdog), if there is to be one.
    pub watchdog: Option<fn() -> std::process::Command>,
}
