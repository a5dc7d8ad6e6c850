//! A scene played to its crash, and the power cut after it.

use super::bounded::Running;
use super::disk::Disk;
use super::files;
use super::processes;
use super::seawall::{Medium, Pool, bare};
use super::work::Work;
use std::collections::BTreeMap;
use std::io::{Seek as _, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// How long a scene may take from one word to the next.
const SCENE_LIMIT: Duration = Duration::from_secs(60);

/// How power will be cut.
pub enum Power {
    /// What the disk's image holds takes the disk's place.
    Image(Disk),
    /// These bytes, by inode, are written back.
    Stale(BTreeMap<u64, Vec<u8>>),
}

/// Everything that is left of a scene.
pub struct Crash {
    pub pool: Pool,
    pub power: Power,
    pub work: Work,
    directory: PathBuf,
    run: Option<Running>,
}

impl Crash {
    /// Plays `scene` until it is done.
    pub fn play(scene: &str, pool_size: &'static str) -> Crash {
        Crash::play_with(scene, pool_size, false)
    }

    /// [`Crash::play_with`] with the log on a block device.
    pub fn play_on_block(scene: &str, pool_size: &'static str, hung: bool) -> Crash {
        let pool = Pool::on(Medium::Block, scene, pool_size);
        Crash::play_in(pool, scene, hung, |_, directory| {
            bare(&["scene", scene, &directory.to_string_lossy()])
        })
    }

    /// The same; a `hung` daemon answers nobody from the scene's beginning on.
    pub fn play_with(scene: &str, pool_size: &'static str, hung: bool) -> Crash {
        Crash::play_program(scene, pool_size, hung, |_, directory| {
            bare(&["scene", scene, &directory.to_string_lossy()])
        })
    }

    /// The same with a program that says the words of a scene (`ready`, then `done`), made for a directory.
    pub fn play_program(
        scene: &str,
        pool_size: &'static str,
        hung: bool,
        program: impl FnOnce(&Work, &Path) -> Command,
    ) -> Crash {
        Crash::play_in(Pool::new(scene, pool_size), scene, hung, program)
    }

    fn play_in(pool: Pool, scene: &str, hung: bool, program: impl FnOnce(&Work, &Path) -> Command) -> Crash {
        let work = Work::new(scene);
        let stale_wanted = std::env::var_os("SEAWALL_CONTRACT_STALE").is_some();
        let disk = if stale_wanted { None } else { Disk::new(work.path(), 160) };
        let directory = match &disk {
            Some(disk) => disk.path().join("data"),
            None => work.path().join("data"),
        };
        std::fs::create_dir_all(&directory).expect("the file system is ours");
        // The directory's own name must survive the power cut as well.
        let parent = directory.parent().expect("joined above");
        std::fs::File::open(parent).and_then(|parent| parent.sync_all()).expect("directories can be synced");
        let program = program(&work, &directory);
        let mut run = Running::start(&mut pool.around(&directory, &program), &format!("scene {scene}"));
        run.wait_for("ready", SCENE_LIMIT);
        let power = match disk {
            Some(disk) => {
                if hung {
                    stop(&pool, &run);
                }
                Power::Image(disk)
            }
            None => Power::Stale(freeze(&pool, &run, &directory)),
        };
        run.tell("go");
        run.wait_for("done", SCENE_LIMIT);
        Crash { pool, power, work, directory, run: Some(run) }
    }

    /// Where the scene's files are.
    pub fn directory(&self) -> PathBuf {
        self.directory.clone()
    }

    /// kill -9 for everything, then the power cut. Returns what the files held before it.
    pub fn cut_power(&mut self) -> BTreeMap<String, Vec<u8>> {
        self.pool.kill_everything();
        drop(self.run.take());
        self.pool.lose_memory();
        let expected = files::contents(&self.directory);
        match &self.power {
            Power::Image(disk) => {
                let snapshot = disk.snapshot();
                disk.restore(&snapshot);
            }
            Power::Stale(stale) => put_back(&self.directory, stale),
        }
        let left = files::changed(&expected, &files::contents(&self.directory));
        eprintln!("the power cut changed {} files:\n  {}", left.len(), left.join("\n  "));
        expected
    }

    /// Cuts the power and replays: the files must be what they were.
    pub fn survives(mut self) {
        let expected = self.cut_power();
        let said = self.pool.replay();
        self.compare(&expected, "after the replay", &said.output());
        let said = self.pool.replay();
        self.compare(&expected, "after a second replay", &said.output());
    }

    /// Panics, with what recovery said, unless the files are as `expected`.
    pub fn compare(&self, expected: &BTreeMap<String, Vec<u8>>, when: &str, said: &str) {
        let changed = files::changed(expected, &files::contents(&self.directory));
        assert!(changed.is_empty(), "{when} (expected against found):\n{}\n{said}", changed.join("\n"));
    }
}

fn stop(pool: &Pool, run: &Running) {
    for pid in pool.daemon(run) {
        processes::signal(pid, libc::SIGSTOP);
    }
}

/// Stops the daemon, so that from here on nothing is synced in the background, and takes the bytes
/// that the disk may hold from now on.
fn freeze(pool: &Pool, run: &Running, directory: &Path) -> BTreeMap<u64, Vec<u8>> {
    stop(pool, run);
    let entries = std::fs::read_dir(directory).expect("the scene's directory");
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .map(|entry| {
            let inode = entry.metadata().expect("the scene is at rest").ino();
            (inode, std::fs::read(entry.path()).expect("the scene is at rest"))
        })
        .collect()
}

/// Writes the old bytes over the new ones, in place: the inodes, and so the handles, stay.
fn put_back(directory: &Path, stale: &BTreeMap<u64, Vec<u8>>) {
    for entry in std::fs::read_dir(directory).expect("the scene's directory").filter_map(Result::ok) {
        let Some(bytes) = entry.metadata().ok().and_then(|meta| stale.get(&meta.ino())) else { continue };
        let mut file = std::fs::File::options().write(true).open(entry.path()).expect("the file is ours");
        file.rewind().and_then(|()| file.write_all(bytes)).expect("old bytes fit");
        file.set_len(bytes.len() as u64).expect("old length");
    }
}
