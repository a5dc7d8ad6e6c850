//! Embedded stores' programs ([`seawall_load::store`]), as each side runs them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use seawall_load::store::{SETTINGS, Store};

use crate::lab::Lab;
use crate::launch;
use crate::process::run;
use crate::side::{Preset, Side};

/// A store's program, built.
pub struct Program {
    pub store: Store,
    pub path: PathBuf,
    settings: &'static str,
}

impl Program {
    /// Builds it. `settings`: how it opens its store.
    pub fn build(lab: &Lab, store: Store, settings: &'static str) -> Result<Self> {
        let dir = lab.work.bin().join(store.name());
        lab.fresh_dir(&dir)?;
        Ok(Self { store, path: store.build(&dir)?, settings })
    }

    /// A command of the program on `data`, as `side` runs it.
    pub fn command(&self, lab: &Lab, side: Side, data: &Path, args: &[&str]) -> Result<Command> {
        let preset = match self.store {
            Store::Rocksdb => Preset::Rocksdb,
            Store::Lmdb => Preset::Lmdb,
        };
        let all = [data.as_os_str()].into_iter().chain(args.iter().map(AsRef::as_ref));
        let mut command = launch::command(lab, side, preset, data, &self.path, all)?;
        command.env(SETTINGS, self.settings);
        Ok(command)
    }

    /// Commits a second, on an empty store; durable but on the unsafe side.
    pub fn measure(&self, lab: &Lab, side: Side, data: &Path, seconds: f64) -> Result<f64> {
        let sync = if side.is_unsafe() { "nosync" } else { "sync" };
        let said = run(
            self.command(lab, side, data, &["run", sync, &seconds.to_string()])?,
            &format!("the {} load", self.store.name()),
        )?;
        let said = String::from_utf8_lossy(&said);
        let mut words = said.split_whitespace().map(str::parse::<f64>);
        let (Some(Ok(commits)), Some(Ok(seconds))) = (words.next(), words.next()) else {
            anyhow::bail!("the {} load said {said:?}", self.store.name())
        };
        ensure!(commits > 0.0 && seconds > 0.0, "the {} load did nothing", self.store.name());
        Ok(commits / seconds)
    }
}
