//! The pools of one lab run: made, asked for their medium, drained, removed.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use seawall_media::Medium;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::identity::Identity;
use crate::process::{self, run};
use crate::tools::Tools;

const PREFIX: &str = "seawall-lab-";

/// A pool; removed on drop.
pub struct Pool {
    path: PathBuf,
    size: u64,
    emulated: bool,
    tools: Tools,
    identity: Identity,
    medium: String,
    uuid: String,
    /// Bytes of the block cache that its daemon has; 0: none.
    cache: u64,
    /// Its spill area, a file.
    area: Option<PathBuf>,
}

impl Pool {
    /// Creates a pool in `/dev/shm`, asked for by name (`--emulated`), and learns what its medium survives.
    /// A lab's second one has a `name` of its own.
    pub fn create(tools: &Tools, identity: &Identity, size: u64, name: &str) -> Result<Self> {
        remove_abandoned();
        let path = path_of(name);
        Self::make(tools, identity, size, path, &["--emulated"])
    }

    /// [`Self::create`], with a spill area of so many bytes at this place.
    pub fn with_area(
        tools: &Tools,
        identity: &Identity,
        size: u64,
        name: &str,
        (area, bytes): (PathBuf, u64),
    ) -> Result<Self> {
        let path = path_of(name);
        let place = area.to_str().context("the spill area's path is not UTF-8")?;
        let options = ["--emulated", "--spill", place, "--spill-size", &bytes.to_string()];
        let mut pool = Self::make(tools, identity, size, path, &options)?;
        pool.area = Some(area);
        Ok(pool)
    }

    /// A pool at this place, on a medium that survives power loss, or an error.
    pub fn durable(tools: &Tools, identity: &Identity, size: u64, path: PathBuf) -> Result<Self> {
        Self::make(tools, identity, size, path, &[])
    }

    /// A pool whose log lies on a block device, in a file at this place.
    pub fn on_block(tools: &Tools, identity: &Identity, size: u64, path: PathBuf) -> Result<Self> {
        Self::make(tools, identity, size, path, &["--block"])
    }

    /// A pool whose log keepers at these addresses keep, and so many of them confirm; what says so lies at this place.
    pub fn on_keepers(
        tools: &Tools,
        identity: &Identity,
        size: u64,
        path: PathBuf,
        (keepers, acks): (&[SocketAddr], u8),
    ) -> Result<Self> {
        let named = keepers.iter().flat_map(|keeper| ["--keeper".to_owned(), keeper.to_string()]);
        let options: Vec<String> = named.chain(["--acks".to_owned(), acks.to_string()]).collect();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        let mut pool = Self::make(tools, identity, size, path, &options)?;
        #[derive(Deserialize)]
        struct Named {
            log: String,
        }
        // Whoever only looks at such a log is sent all of it.
        let named: Named = serde_json::from_slice(&fs::read(&pool.path)?)
            .context("cannot read the file of a log that keepers keep")?;
        (pool.medium, pool.uuid) = (Medium::Replicated.label().into(), named.log);
        Ok(pool)
    }

    fn make(tools: &Tools, identity: &Identity, size: u64, path: PathBuf, options: &[&str]) -> Result<Self> {
        let emulated = options.contains(&"--emulated");
        let (tools, identity) = (tools.clone(), identity.clone());
        let mut pool = Pool {
            path,
            size,
            emulated,
            tools,
            identity,
            medium: String::new(),
            uuid: String::new(),
            cache: 0,
            area: None,
        };
        let mut init = pool.seawall();
        init.arg("init").arg(&pool.path).args(["--size", &size.to_string()]).args(options);
        // What keepers have is never started over.
        init.args((!options.contains(&"--keeper")).then_some("--force"));
        run(init, "seawall init")?;
        if !options.contains(&"--keeper") {
            (pool.medium, pool.uuid) = pool.ask_medium()?;
        }
        Ok(pool)
    }

    /// The same with a block cache of so many bytes, in memory too.
    pub fn with_cache(mut self, bytes: u64) -> Self {
        self.cache = bytes;
        self
    }

    /// Bytes of its block cache; 0: none.
    pub fn cache(&self) -> u64 {
        self.cache
    }

    /// The options of `seawall run` and `mount` that ask for its block cache, if it has one.
    pub fn cache_options(&self) -> Vec<String> {
        if self.cache == 0 { Vec::new() } else { vec!["--cache".into(), self.cache.to_string()] }
    }

    /// The options of `seawall run` on it. With an area its daemon stays, which knows what was copied there.
    pub fn run_options(&self) -> Vec<String> {
        let keep = self.area.as_ref().map(|_| "--keep".into());
        self.cache_options().into_iter().chain(keep).collect()
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its size in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The option that asks for memory by name, where it is that.
    pub fn by_name(&self) -> Option<&'static str> {
        self.emulated.then_some("--emulated")
    }

    /// Whether it is memory that was asked for by name.
    pub fn is_emulated(&self) -> bool {
        self.emulated
    }

    /// What it survives, in `seawall status`'s words.
    pub fn medium(&self) -> &str {
        &self.medium
    }

    /// A `seawall` command.
    pub fn seawall(&self) -> Command {
        let mut command = self.identity.command(self.tools.seawall.as_os_str());
        if let Some(preload) = &self.tools.preload {
            command.env("SEAWALL_PRELOAD", preload);
        }
        command.env("XDG_DATA_HOME", &self.tools.state);
        command
    }

    /// Starts its daemon for this data, to stay when what it is asked for has ended.
    pub fn start_daemon(&self, data: &Path, preset: &str) -> Result<()> {
        let mut start = self.seawall();
        start.args(["run", "--keep", "--quiet", "--preset", preset]).args(self.by_name());
        start.args(self.cache_options()).arg("--pool").arg(&self.path).arg("--data").arg(data);
        start.args(["--", "true"]);
        run(start, "seawall run --keep").map(drop)
    }

    /// Asks its block cache to `keep` or `prewarm` what lies there.
    pub fn tell_cache(&self, word: &str, data: &Path) -> Result<()> {
        let mut tell = self.seawall();
        tell.args(["cache", word]).arg(data).arg("--pool").arg(&self.path);
        run(tell, &format!("seawall cache {word}")).map(drop)
    }

    /// The daemon that owns this pool, if one is running.
    pub fn daemon(&self) -> Option<u32> {
        let path = self.path.to_string_lossy().into_owned();
        process::descendants(std::process::id()).into_iter().find(|&pid| {
            let line = process::command_line(pid);
            line.contains(" daemon ") && line.contains(&path)
        })
    }

    /// Has every record brought to its file, so that nothing is left to do in somebody else's time.
    pub fn drain_if_running(&self) -> Result<()> {
        if self.daemon().is_none() {
            return Ok(());
        }
        let mut drain = self.seawall();
        drain.arg("drain").arg("--pool").arg(&self.path);
        match run(drain, "seawall drain") {
            Err(_) if self.daemon().is_none() => Ok(()), // it ended meanwhile, drained
            other => other.map(drop),
        }
    }

    /// Has its daemon empty the log and end, if it is running.
    ///
    /// # Errors
    /// If it is still there.
    pub fn stop(&self) -> Result<()> {
        let mut stop = self.seawall();
        stop.arg("stop").arg("--pool").arg(&self.path);
        let said = stop.output()?;
        ensure!(
            self.daemon().is_none(),
            "seawall stop left the daemon running: {}",
            String::from_utf8_lossy(&said.stderr).trim()
        );
        Ok(())
    }

    /// `seawall status --json`, as far as `T` has fields for it.
    ///
    /// # Errors
    /// If the command cannot read the pool, or `T` has a field of another kind.
    pub fn status<T: DeserializeOwned>(&self) -> Result<T> {
        self.ask(&["status", "--pool"])
    }

    /// The files in memory that belong to it and that a restart of the machine takes: what processes share, and the
    /// image of one on a block device. Both are gone after an orderly end.
    pub fn memory(&self) -> [PathBuf; 2] {
        ["rt", "image"].map(|kind| PathBuf::from(format!("/dev/shm/seawall-{}.{kind}", self.uuid)))
    }

    /// The last number that a record in the log has.
    pub fn last_lsn(&self) -> Result<u64> {
        #[derive(Deserialize)]
        struct Inspected {
            last_lsn: u64,
        }
        Ok(self.ask::<Inspected>(&["inspect"])?.last_lsn)
    }

    /// The number of the last write to the log's device.
    pub fn last_batch(&self) -> Result<u64> {
        #[derive(Deserialize)]
        struct Verified {
            last_batch: u64,
        }
        Ok(self.ask::<Verified>(&["verify"])?.last_batch)
    }

    fn ask_medium(&self) -> Result<(String, String)> {
        #[derive(Deserialize)]
        struct Status {
            medium: String,
            uuid: String,
        }
        let status: Status = self.status()?;
        Ok((status.medium, status.uuid))
    }

    /// What a `seawall` command of these words says of this pool.
    fn ask<T: DeserializeOwned>(&self, words: &[&str]) -> Result<T> {
        let mut command = self.seawall();
        command.args(words).arg(&self.path).arg("--json");
        let what = format!("seawall {}", words[0]);
        let json = run(command, &what)?;
        serde_json::from_slice(&json).with_context(|| format!("cannot read the output of `{what} --json`"))
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.daemon().is_some() {
            let _ = self.stop();
        }
        let _ = fs::remove_file(&self.path);
        if let Some(area) = &self.area {
            let _ = fs::remove_file(area);
        }
        for beside in [".cache", ".cache.policies"] {
            let mut path = self.path.clone().into_os_string();
            path.push(beside);
            let _ = fs::remove_file(path);
        }
        // Of a daemon that was killed; without the pool nobody asks for it again.
        for memory in self.memory() {
            let _ = fs::remove_file(memory);
        }
    }
}

fn path_of(name: &str) -> PathBuf {
    PathBuf::from(format!("/dev/shm/{PREFIX}{}{name}.pool", std::process::id()))
}

/// Pools of lab runs that were killed: their memory would be lost until the next boot.
fn remove_abandoned() {
    for entry in fs::read_dir("/dev/shm").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let made_by = |name: &str| {
            let rest = name.strip_prefix(PREFIX)?.strip_suffix(".pool")?;
            rest.split('-').next()?.parse().ok()
        };
        let pid = name.to_str().and_then(made_by);
        if pid.is_some_and(|pid| !seawall_media::process::is_alive(pid)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
