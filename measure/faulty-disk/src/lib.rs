//! Disks that lose what was not flushed, for tests of power cuts and for measuring.
//!
//! One [`cache`] of what no flush has covered; two ways to reach it: [`Disk`], a file in a FUSE file system, for a loop
//! device and a real file system on top, with a switch for its power and faults to inject; and [`nbd::Disk`], for a
//! virtual machine. Invariant: after a cut nothing becomes durable any more.
//!
//! Not modelled: a disk that lies about a flush, or that damages sectors it did not write.

pub mod cache;
mod fuse;
mod image;
pub mod nbd;
mod power;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use fuser::{BackgroundSession, Config, MountOption};

pub use cache::{Cut, Loss};
pub use image::Image;
pub use power::{Counts, Request};

use fastrand::Rng;
use power::Shared;

/// How long a kernel may need to let go of a disk whose power is off.
const CLOSE_LIMIT: Duration = Duration::from_secs(60);

/// A mounted disk; unmounted when dropped.
pub struct Disk {
    shared: Arc<Shared>,
    file: PathBuf,
    _session: BackgroundSession,
}

impl Disk {
    /// Makes an empty disk of `size` bytes and mounts it on the directory `at`.
    ///
    /// # Errors
    /// If FUSE is not to be had, or we may not mount.
    pub fn mount(at: &Path, size: u64) -> Result<Self> {
        std::fs::create_dir_all(at).with_context(|| format!("create {}", at.display()))?;
        let shared = Arc::new(Shared::new(Image::new(size)));
        let mut config = Config::default();
        config.mount_options = vec![MountOption::FSName("seawall-powercut".to_owned()), MountOption::NoAtime];
        let session = fuser::spawn_mount(fuse::DiskFs(Arc::clone(&shared)), at, &config)
            .with_context(|| format!("mount a FUSE file system on {}", at.display()))?;
        Ok(Disk { shared, file: at.join(fuse::NAME), _session: session })
    }

    /// The disk, as a file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// The power fails. Of what was not flushed, `loss` says how much is left. Requests get no answer from
    /// now on: end everything that uses the disk, then call [`Disk::off`].
    pub fn cut(&self, loss: Loss, rng: &mut Rng) -> Cut {
        self.shared.cut(loss, rng)
    }

    /// Lets the kernel see that the disk is gone: EIO for every request.
    pub fn off(&self) {
        self.shared.off();
    }

    /// Switches the disk on again, once nothing that knew it before has it open.
    ///
    /// # Errors
    /// If somebody keeps it open.
    pub fn reboot(&self) -> Result<()> {
        self.wait_closed()?;
        self.shared.on();
        Ok(())
    }

    /// Waits until nobody has the disk open.
    ///
    /// # Errors
    /// If somebody keeps it open.
    pub fn wait_closed(&self) -> Result<()> {
        ensure!(
            self.shared.wait_closed(CLOSE_LIMIT),
            "the disk is still in use {} s after everything on it was ended",
            CLOSE_LIMIT.as_secs()
        );
        Ok(())
    }

    /// What is durable on it.
    pub fn image(&self) -> Image {
        self.shared.durable()
    }

    /// Plugs another disk in; nobody may have this one open.
    ///
    /// # Errors
    /// If somebody has.
    pub fn replace(&self, image: Image) -> Result<()> {
        self.wait_closed()?;
        self.shared.replace(image);
        Ok(())
    }

    /// The next `count` requests of this kind fail with EIO.
    pub fn fail(&self, request: Request, count: u64) {
        self.shared.fail(request, count);
    }

    /// No request fails any more.
    pub fn heal(&self) {
        self.shared.heal();
    }

    /// Lets each flush take so much time, during which the disk serves nothing else: it has one queue.
    pub fn slow_down(&self, flush: Duration) {
        self.shared.set_flush_time(flush);
    }

    /// Bytes that a cut could take now.
    pub fn pending_bytes(&self) -> usize {
        self.shared.pending_bytes()
    }

    /// What was asked of it so far.
    pub fn counts(&self) -> Counts {
        self.shared.counts()
    }
}
