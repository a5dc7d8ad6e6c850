//! A daemon with a block cache, and a database's directory: what the tests of the cache share.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Child;

use serde_json::{Value, json};

use super::front::{BLOCK, Front};
use super::served::{self, add_root};
use super::{Place, Said, kill};

/// A place with a daemon, which ends with it.
pub struct Scene {
    pub place: Place,
    /// The database's directory, a real path.
    pub data: PathBuf,
    daemon: Child,
    /// What is registered with each daemon: presets, and the directories that the log manages.
    roots: Vec<(String, PathBuf)>,
    /// Where the zone is, if not beside the pool.
    dir: Option<tempfile::TempDir>,
}

impl Scene {
    /// A daemon with these options, to which no directory is known.
    pub fn serving(options: &[&str]) -> Self {
        Self::of(Place::new(), None, options)
    }

    /// The directory is one of SQLite's, with files of so many blocks of ones.
    pub fn with(files: &[(&str, usize)], options: &[&str]) -> Self {
        Self::with_zone_in(None, files, options)
    }

    /// The same with the zone in a directory below this one: of a disk, or in memory.
    pub fn with_zone_below(dir: &str, files: &[(&str, usize)], options: &[&str]) -> Self {
        Self::with_zone_in(Some(tempfile::tempdir_in(dir).expect("a directory")), files, options)
    }

    fn with_zone_in(dir: Option<tempfile::TempDir>, files: &[(&str, usize)], options: &[&str]) -> Self {
        let place = Place::new();
        for (name, blocks) in files {
            fs::write(place.file(name), vec![1; blocks * BLOCK]).expect("written");
        }
        let mut scene = Self::of(place, dir, options);
        scene.add("sqlite", "");
        scene
    }

    fn of(place: Place, dir: Option<tempfile::TempDir>, options: &[&str]) -> Self {
        let data = place.data.path().canonicalize().expect("it exists");
        let daemon = daemon(&place, dir.as_ref(), options);
        Self { place, data, daemon, roots: Vec::new(), dir }
    }

    /// The directory is this database's; the log manages a part of it.
    pub fn add(&mut self, preset: &str, managed: &str) {
        let path = if managed.is_empty() { self.data.clone() } else { self.data.join(managed) };
        add_root(&self.place, preset, &path, &self.data);
        self.roots.push((preset.into(), path));
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.data.join(name)
    }

    /// Ends the daemon cleanly.
    pub fn stop(&mut self) {
        self.seawall(&["stop"]).succeeds();
        self.daemon.wait().expect("it ended");
    }

    pub fn kill(&mut self) {
        kill(self.daemon.id().into());
        self.daemon.wait().expect("killed");
    }

    /// Another daemon, when the former one has ended.
    pub fn start(&mut self, options: &[&str]) {
        self.daemon = daemon(&self.place, self.dir.as_ref(), options);
        for (preset, path) in &self.roots {
            add_root(&self.place, preset, path, &self.data);
        }
    }

    pub fn restart(&mut self, options: &[&str]) {
        self.stop();
        self.start(options);
    }

    /// A command on the pool.
    pub fn seawall(&self, words: &[&str]) -> Said {
        self.place.seawall(&[words, &["--pool", self.place.pool()]].concat())
    }

    /// `seawall cache`.
    pub fn cache(&self, words: &[&str]) -> Said {
        self.seawall(&[&["cache"], words].concat())
    }

    /// What a policy says of a path, and what there is of it.
    pub fn policy(&self, path: &Path) -> Value {
        let listed = self.cache(&["list", "--json"]).json();
        let policies = listed["policies"].as_array().expect("policies").clone();
        policies.into_iter().find(|policy| policy["path"] == json!(path)).unwrap_or(Value::Null)
    }

    /// What `seawall status` says of the cache.
    pub fn status(&self) -> Value {
        self.place.status()["cache"].clone()
    }

    /// The daemon's log.
    pub fn log(&self) -> String {
        fs::read_to_string(self.place.status()["log"].as_str().expect("a path")).expect("the log")
    }

    /// A process that reads and writes through the cache as a program with the preload does: the test program itself, by
    /// a test of its own.
    pub fn front(&self) -> Front {
        Front::start(&self.place.pool)
    }

    /// The same with the first file entered.
    pub fn entered(&self) -> Front {
        self.front_of(&self.file("x.db"))
    }

    /// The same with a file entered.
    pub fn front_of(&self, file: &Path) -> Front {
        let mut front = self.front();
        assert_eq!(front.enter(file), "Ok");
        front
    }

    pub fn zone(&self) -> PathBuf {
        let own = self.dir.as_ref().map(zone_in);
        own.unwrap_or_else(|| format!("{}.cache", self.place.pool()).into())
    }

    /// The index in memory of a zone on a disk.
    pub fn index(&self) -> PathBuf {
        self.place.index_of(&self.zone())
    }

    fn is_on_disk(&self) -> bool {
        self.dir.as_ref().is_some_and(|dir| !dir.path().starts_with("/dev/shm")) && self.zone().exists()
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        if self.is_on_disk() {
            let _ = fs::remove_file(self.index());
        }
    }
}

fn zone_in(dir: &tempfile::TempDir) -> PathBuf {
    dir.path().join("zone")
}

fn daemon(place: &Place, dir: Option<&tempfile::TempDir>, options: &[&str]) -> Child {
    let zone = dir.map(|dir| zone_in(dir).display().to_string());
    let at: Vec<&str> = zone.iter().flat_map(|zone| ["--cache-path", zone]).collect();
    served::start(place, &[options, &at].concat())
}
