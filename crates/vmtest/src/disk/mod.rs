//! The data disk: it has a volatile write cache, and loses what was not flushed when the power fails.
//!
//! A raw image loses nothing when the emulator is killed, so it would prove nothing. QEMU reaches this disk
//! over a socket; the cache lives in this process, which the power cut leaves alone.

mod cache;
mod nbd;

use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Release};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use cache::Cache;
pub use cache::Cut;
use nbd::Drive;

use crate::random::Random;
use crate::socket;

/// A disk that is switched on.
pub struct Disk {
    server: JoinHandle<(Cache, std::io::Result<()>)>,
    off: Arc<AtomicBool>,
    socket: String,
}

impl Disk {
    /// Switches the disk on. It works from when QEMU connects to its socket until that is gone.
    ///
    /// # Errors
    /// If the image cannot be opened.
    pub fn start(image: &Path, flush_time: Duration) -> Result<Self> {
        let file = File::options().read(true).write(true).open(image);
        let file = file.with_context(|| format!("the disk's image {}", image.display()))?;
        let (listener, socket) = socket::listen("disk")?;
        let off = Arc::new(AtomicBool::new(false));
        let drive = Drive { flush_time, off: Arc::clone(&off) };
        let server = thread::spawn(move || {
            let mut cache = Cache::new(file);
            let served = listener.accept().and_then(|(qemu, _)| nbd::serve(qemu, &mut cache, &drive));
            (cache, served)
        });
        Ok(Self { server, off, socket })
    }

    /// Name of the socket that QEMU connects to.
    pub fn socket(&self) -> &str {
        &self.socket
    }

    /// The power fails; [`cut`](Self::cut) follows when QEMU is gone.
    pub fn power_off(&self) {
        self.off.store(true, Release);
    }

    /// The power has failed (QEMU is gone): see [`Cut`].
    ///
    /// # Errors
    /// If the protocol was broken, or the image cannot be written.
    pub fn cut(self, keep: u64, random: &mut Random) -> Result<Cut> {
        let (cache, served) = self.server.join().map_err(|_| anyhow!("the disk panicked"))?;
        served.context("the disk")?;
        cache.cut(keep, random).context("the disk's image")
    }
}
