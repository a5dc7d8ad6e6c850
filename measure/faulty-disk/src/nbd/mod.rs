//! The disk of a virtual machine: an image file behind a volatile cache, which QEMU reaches over a socket.
//!
//! A raw image loses nothing when the emulator is killed, so it would prove nothing. The cache lives in this process, which
//! the power cut leaves alone; the image has what is durable after [`Disk::cut`].

mod protocol;

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Release};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use fastrand::Rng;
use protocol::Drive;

use crate::cache::{Cache, Cut, Loss};
use crate::image::Image;

/// A disk that is switched on.
pub struct Disk {
    server: JoinHandle<(Cache, std::io::Result<()>)>,
    off: Arc<AtomicBool>,
    image: PathBuf,
    socket: String,
}

impl Disk {
    /// Switches the disk on. It works from when QEMU connects to `listener` until that is gone; `socket` is what QEMU
    /// calls that. A flush that has something to do takes `flush_time`.
    ///
    /// # Errors
    /// If the image cannot be read.
    pub fn start(
        (listener, socket): (UnixListener, String),
        image: &Path,
        flush_time: Duration,
    ) -> Result<Self> {
        let mut cache = Cache::new(Image::load(image)?);
        let off = Arc::new(AtomicBool::new(false));
        let drive = Drive { flush_time, off: Arc::clone(&off) };
        let server = thread::spawn(move || {
            let served = listener.accept().and_then(|(qemu, _)| protocol::serve(qemu, &mut cache, &drive));
            (cache, served)
        });
        Ok(Self { server, off, image: image.to_owned(), socket })
    }

    /// Name of the socket that QEMU connects to.
    pub fn socket(&self) -> &str {
        &self.socket
    }

    /// The power fails; [`cut`](Self::cut) follows when QEMU is gone.
    pub fn power_off(&self) {
        self.off.store(true, Release);
    }

    /// The power has failed (QEMU is gone): of what was not flushed, each 4 KiB survive with a chance of `keep` in 100.
    ///
    /// # Errors
    /// If the protocol was broken, or the image cannot be written.
    pub fn cut(self, keep: u8, rng: &mut Rng) -> Result<Cut> {
        let (mut cache, served) = self.server.join().map_err(|_| anyhow!("the disk panicked"))?;
        served.context("the disk")?;
        // Torn at 512 bytes would be too hostile for XFS: its replay trusts the number in the first sector of a block,
        // and leaves a block alone of which only that sector was written.
        let cut = cache.cut(Loss::Pages(keep), rng);
        cache.durable().save(&self.image)?;
        Ok(cut)
    }
}
