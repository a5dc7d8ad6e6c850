//! Embedded stores' programs ([`seawall_load::store`]), as each side runs them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use seawall_load::store::{SETTINGS, Store};

use crate::lab::Lab;
use crate::launch;
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
        let dir = directory(lab, store);
        lab.fresh_dir(&dir)?;
        Ok(Self { store, path: store.build(&dir)?, settings })
    }

    /// Where a store's program is, once it is built.
    pub fn place(lab: &Lab, store: Store) -> PathBuf {
        store.program_in(&directory(lab, store))
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
}

fn directory(lab: &Lab, store: Store) -> PathBuf {
    lab.work.bin().join(store.name())
}
