//! A pool from hostile bytes: looked at, and recovered into a scratch directory.
//!
//! What must hold, whatever the pool says: no panic; nothing outside the registered directory is touched, nor
//! through a link planted in it; no name comes or goes; a refusal has written nothing; a success leaves
//! nothing to replay. Not checked here: that what was replayed is right (the model in `core/tests/replay.rs`).

mod build;
mod world;

use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

use seawall_core::inspect::inspect;
use seawall_core::pool;
use seawall_core::recover::{
    Directories, Locate, Mode, Options, RealDirectory, RecoverError, Report, Sink, Target, Unwritable,
    recover_into,
};
use seawall_core::table::{FileEntry, RootEntry};

use crate::input::Input;
use world::World;

static WORLD: LazyLock<Mutex<World>> = LazyLock::new(|| Mutex::new(World::new()));

/// The target.
pub fn target(bytes: &[u8]) {
    let mut world = WORLD.lock().unwrap_or_else(PoisonError::into_inner);
    world.reset();
    let mut input = Input::new(bytes);
    let how = input.u8();
    let mode = if how & 1 == 0 { Mode::Auto } else { Mode::Replay };
    let options = Options { mode, accept_loss: how & 2 != 0 };
    build::image(&mut world, &mut input);
    look(&world);
    let before = world.registered();
    let recovered = recover(&world, options);
    world.assert_unharmed();
    match recovered {
        None => assert!(world.registered() == before, "a pool that was not opened was written from"),
        Some(Err(RecoverError::Io { .. })) => {}
        Some(Err(refused)) => {
            assert!(world.registered() == before, "refused, and yet written: {refused}");
        }
        Some(Ok(_)) => {
            let after = world.registered();
            let again = recover(&world, options).expect("it was opened before");
            let again = again.unwrap_or_else(|e| panic!("recovered, and then refused: {e}"));
            assert_eq!(again.live, 0, "recovered, and yet live");
            assert!(world.registered() == after, "the second recovery changed something");
            world.assert_unharmed();
        }
    }
}

/// Inspect and verify, as the command line does them.
fn look(world: &World) {
    if let Ok(pool) = pool::open_read_only(&world.pool) {
        let seen = inspect(&pool);
        serde_json::to_string(&seen).expect("an inspection is JSON");
    }
}

/// `None`: the pool could not be opened.
fn recover(world: &World, options: Options) -> Option<Result<Report, RecoverError>> {
    let pool = pool::open(&world.pool).ok()?;
    Some(recover_into(&pool, options, &Unsynced(Directories::of(&pool))))
}

/// The real directories; only the disk is not waited for.
struct Unsynced(Directories);

struct UnsyncedFile(File);

impl Sink for UnsyncedFile {
    fn write_all_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        Sink::write_all_at(&self.0, bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Sink::set_len(&self.0, len)
    }

    fn sync_all(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Locate for Unsynced {
    type File = UnsyncedFile;
    type Names = RealDirectory;

    fn directory(&self, root: Option<&RootEntry>, entry: &FileEntry) -> Result<RealDirectory, Unwritable> {
        self.0.directory(root, entry)
    }

    fn locate(
        &self,
        root: Option<&RootEntry>,
        entry: &FileEntry,
        power_lost: bool,
    ) -> Result<Target<UnsyncedFile>, Unwritable> {
        let Target { file, path } = self.0.locate(root, entry, power_lost)?;
        Ok(Target { file: UnsyncedFile(file), path })
    }

    fn begin(&self) -> Result<(), (PathBuf, io::Error)> {
        self.0.begin()
    }

    fn end(&self) {
        self.0.end();
    }
}
