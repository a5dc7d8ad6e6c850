//! Files that were to be managed and are not, and why: without that nobody knows why a database is as slow as before.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use seawall_media::locks::lock;
use serde::{Deserialize, Serialize};

/// One of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// Which.
    #[serde(with = "seawall_core::path_text")]
    pub path: PathBuf,
    /// Why.
    pub why: String,
}

/// The newest one that is still left out, as far as anybody asked again.
#[derive(Default)]
pub(crate) struct Newest(Mutex<Option<LeftOut>>);

impl Newest {
    /// This one is left out.
    pub fn note(&self, path: &Path, why: &str) {
        *lock(&self.0) = Some(LeftOut { path: path.into(), why: why.into() });
    }

    /// This one is managed: what kept it out is over.
    pub fn taken(&self, path: &Path) {
        lock(&self.0).take_if(|newest| newest.path == path);
    }

    /// The newest, if there is one.
    pub fn get(&self) -> Option<LeftOut> {
        lock(&self.0).clone()
    }
}
