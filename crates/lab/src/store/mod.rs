//! Embedded stores: a small C program around each library, built when it is needed, as each side runs it.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::lab::Lab;
use crate::process::run;
use crate::side::{self, Preset, Side};

/// Which one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Store {
    Rocksdb,
    Lmdb,
}

const SHARED: [(&str, &str); 2] = [("main.c", include_str!("main.c")), ("store.h", include_str!("store.h"))];

impl Store {
    /// Its name, and its library's.
    pub fn name(self) -> &'static str {
        match self {
            Store::Rocksdb => "rocksdb",
            Store::Lmdb => "lmdb",
        }
    }

    fn preset(self) -> Preset {
        match self {
            Store::Rocksdb => Preset::Rocksdb,
            Store::Lmdb => Preset::Lmdb,
        }
    }

    fn source(self) -> &'static str {
        match self {
            Store::Rocksdb => include_str!("rocksdb.c"),
            Store::Lmdb => include_str!("lmdb.c"),
        }
    }

    /// What the distribution calls its library's headers.
    fn package(self) -> &'static str {
        match self {
            Store::Rocksdb => "librocksdb-dev",
            Store::Lmdb => "liblmdb-dev",
        }
    }
}

/// A store's program, built.
pub struct Program {
    pub store: Store,
    pub path: PathBuf,
}

impl Program {
    /// Builds it, with such options of the compiler's.
    pub fn build(lab: &Lab, store: Store, options: &[&str]) -> Result<Self> {
        let dir = lab.work.bin().join(store.name());
        lab.fresh_dir(&dir)?;
        let path = dir.join(format!("seawall-{}", store.name()));
        for (name, text) in SHARED.iter().chain(&[("store.c", store.source())]) {
            std::fs::write(dir.join(name), text).with_context(|| format!("write {name}"))?;
        }
        let mut cc = Command::new("cc");
        cc.args(options)
            .args(["-O2", "-pthread", "-o"])
            .arg(&path)
            .args([dir.join("main.c"), dir.join("store.c")]);
        cc.arg(format!("-l{}", store.name()));
        let built = run(cc, "cc");
        built.with_context(|| format!("build {}: is {} installed?", store.name(), store.package()))?;
        Ok(Self { store, path })
    }

    /// A command of the program on `data`, as `side` runs it.
    pub fn command(&self, lab: &Lab, side: Side, data: &Path, args: &[&str]) -> Result<Command> {
        let all = [data.as_os_str()].into_iter().chain(args.iter().map(AsRef::as_ref));
        side::command(lab, side, self.store.preset(), data, &self.path, all)
    }

    /// Commits a second, on an empty store; durable but on the unsafe side.
    pub fn measure(&self, lab: &Lab, side: Side, data: &Path, seconds: f64) -> Result<f64> {
        let sync = if side == Side::Unsafe { "nosync" } else { "sync" };
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
