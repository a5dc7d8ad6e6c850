//! Watching over the twin while it follows: how far it is, whether it could take over, and that its own file is never far
//! from durable, so that a takeover has little to wait for.

use std::fs::File;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::control::Control;
use crate::feed::Observer;
use crate::log::Place;
use crate::state::sync_directory;

/// Between two looks.
const EVERY: Duration = Duration::from_millis(100);
/// Between two syncs.
const SYNC_EVERY: Duration = Duration::from_secs(1);
/// A twin that loads answers when it gets to it.
const LIMIT: Duration = Duration::from_secs(5);
/// Under load it is always a little behind. So much it applies in well under a tenth of a second.
const NEAR: u64 = 4 << 20;
/// A rewrite may replace files while they are synced.
const TRIES: usize = 20;

/// What was seen last.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// In this synchronisation it could take over.
    pub ready: Option<String>,
    /// How far it has applied what it was sent.
    pub applied: u64,
    /// Its memory, in bytes.
    pub memory: u64,
    /// Why it was not seen.
    pub trouble: Option<String>,
}

/// The thread that watches.
pub struct Watch {
    seen: Arc<Mutex<Seen>>,
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Whom it watches.
pub struct Watched {
    /// The twin's socket.
    pub socket: PathBuf,
    /// What proves who we are.
    pub token: String,
    /// The twin's own append-only file.
    pub place: Place,
    /// What it is sent.
    pub feed: Observer,
}

impl Watch {
    /// Begins.
    ///
    /// # Errors
    /// If there can be no thread.
    pub fn start(watched: Watched) -> Result<Self> {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (stop, stopped) = channel();
        let shared = seen.clone();
        let thread =
            thread::Builder::new().name("watch".into()).spawn(move || watched.run(&shared, &stopped))?;
        Ok(Self { seen, stop: Some(stop), thread: Some(thread) })
    }

    /// What was seen last.
    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().map(JoinHandle::join);
    }
}

impl Watched {
    fn run(&self, seen: &Mutex<Seen>, stopped: &Receiver<()>) {
        let (mut control, mut synced) = (None, Instant::now());
        while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            let looked = self.look(&mut control, seen);
            let trouble = looked.err().map(|e| format!("{e:#}"));
            if trouble.is_some() {
                control = None;
            }
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.trouble = trouble;
            let is_ready = seen.ready.is_some();
            drop(seen);
            if is_ready && synced.elapsed() >= SYNC_EVERY {
                // What fails here fails again in a takeover, which reports it.
                let _ = sync(&self.place);
                synced = Instant::now();
            }
        }
    }

    fn look(&self, control: &mut Option<Control>, seen: &Mutex<Seen>) -> Result<()> {
        if control.is_none() {
            *control = Some(Control::open(&self.socket, &self.token, LIMIT)?);
        }
        let control = control.as_mut().context("there is no connection")?;
        let progress = self.feed.progress();
        let info = control.info()?;
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.memory = info.number("used_memory_rss").unwrap_or(0);
        let applied = info.applied(&progress.id).filter(|_| progress.streams);
        seen.applied = applied.unwrap_or(0);
        let was_ready = seen.ready.as_ref() == Some(&progress.id);
        let becomes_ready =
            applied.is_some_and(|applied| applied + NEAR >= progress.whole && info.has_whole_file());
        seen.ready = applied.and((was_ready || becomes_ready).then_some(progress.id));
        Ok(())
    }
}

/// Makes an append-only file durable as it is now, names included.
///
/// # Errors
/// If it is not.
pub fn sync(place: &Place) -> Result<()> {
    for _ in 0..TRIES {
        let manifest = place.read()?;
        let files = manifest.names().map(|name| File::open(place.directory.join(name)));
        let Ok(files) = files.collect::<std::io::Result<Vec<_>>>() else { continue };
        files.iter().try_for_each(File::sync_data).context("cannot sync the twin's append-only file")?;
        sync_directory(&place.directory)?;
        if place.read()? == manifest {
            return place.directory.ancestors().skip(1).take(2).try_for_each(sync_directory);
        }
    }
    bail!("{} changes all the time", place.manifest().display())
}
