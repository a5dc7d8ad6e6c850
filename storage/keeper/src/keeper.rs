//! All logs of a keeper, and who it is.

mod report;
mod tidy;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::fs::FlockOperation;
use seawall_media::locks::lock;
use seawall_media::{durable, random_uuid};
use seawall_wire::keeper::{Greeting, KEEPER_VERSION, Refusal, State};
use thiserror::Error;

use crate::log::{Harden, Identity, Log, Refused, meta_of};
use crate::meta::{Meta, Roster, replace};
use crate::uuid::{low_half, parse_uuid, uuid_text};
pub use report::{LogReport, Report};

/// The most logs: a witness' take no room that a quota could limit.
const LOGS_MAX: usize = 1024;

/// What a keeper does for its logs.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// When its own disk has what it confirms.
    pub harden: Harden,
    /// It keeps numbers and no data.
    pub witness: bool,
    /// Bytes of memory for all images. Each takes twice its length: a copy is brought up to date beside the old one.
    pub quota: u64,
}

/// Why a keeper does not start.
#[derive(Debug, Error)]
pub enum KeeperError {
    /// Its directory.
    #[error("{}: {error}", path.display())]
    Directory {
        /// What.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Another one runs there.
    #[error("{}: another keeper runs there", .0.display())]
    Taken(PathBuf),
    /// What it must not forget cannot be read.
    #[error(
        "{}: {error}: the keeper no longer knows what it promised there. Keepers must not forget their \
         promises while a writer of that log may be alive: restore the file, or remove the directory if the \
         log is gone",
        path.display()
    )]
    Forgotten {
        /// What.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
}

/// A keeper.
pub struct Keeper {
    directory: PathBuf,
    _lock: File,
    who: Identity,
    options: Options,
    logs: Mutex<BTreeMap<[u8; 16], Arc<Mutex<Log>>>>,
}

impl Keeper {
    /// Opens a keeper's directory, or makes it.
    ///
    /// # Errors
    /// [`KeeperError`].
    pub fn open(directory: &Path, options: Options) -> Result<Self, KeeperError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |error| KeeperError::Directory { path, error }
        };
        fs::create_dir_all(directory).map_err(failed(directory))?;
        let lock = File::open(directory).map_err(failed(directory))?;
        rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive)
            .map_err(|_| KeeperError::Taken(directory.to_owned()))?;
        let id = identity(directory).map_err(failed(directory))?;
        let mut logs = BTreeMap::new();
        for entry in fs::read_dir(directory).map_err(failed(directory))? {
            let path = entry.map_err(failed(directory))?.path();
            if path.extension().is_some_and(|end| end == GONE) {
                remove_all(&path).map_err(failed(&path))?;
                continue;
            }
            let Some(uuid) = path.file_name().and_then(|name| parse_uuid(name.to_str()?)) else { continue };
            let forgotten = |error| KeeperError::Forgotten { path: meta_of(&path), error };
            // A directory without a promise is one that was being made.
            let Some(meta) = Meta::read(&meta_of(&path)).map_err(forgotten)? else { continue };
            let log = Log::open(&path, meta, low_half(uuid), options.harden, options.witness);
            logs.insert(uuid, Arc::new(Mutex::new(log.map_err(failed(&path))?)));
        }
        let who = Identity { id, host: host_name() };
        Ok(Self { directory: directory.into(), _lock: lock, who, options, logs: Mutex::new(logs) })
    }

    /// Its UUID.
    pub fn id(&self) -> String {
        uuid_text(self.who.id)
    }

    /// What it does for its logs.
    pub fn options(&self) -> Options {
        self.options
    }

    /// The log that somebody asks for, who is `owner` by its certificate; made if it is to be.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn greet(&self, greeting: &Greeting, owner: &str) -> Result<Arc<Mutex<Log>>, Refused> {
        if greeting.version != KEEPER_VERSION {
            let why = format!(
                "this keeper speaks version {KEEPER_VERSION}, and the request is in version {}",
                greeting.version
            );
            return Err(Refused::new(Refusal::Version, why));
        }
        if greeting.keeper != [0; 16] && greeting.keeper != self.who.id {
            let why =
                format!("this is keeper {}, and {} was expected", self.id(), uuid_text(greeting.keeper));
            return Err(Refused::new(Refusal::Differs, why));
        }
        let mut logs = lock(&self.logs);
        match logs.get(&greeting.log) {
            Some(log) => self.known(log, greeting, owner),
            None if greeting.make == 0 => Err(Refused::new(
                Refusal::Unknown,
                format!("this keeper does not keep log {}", uuid_text(greeting.log)),
            )),
            None => {
                let log = Arc::new(Mutex::new(self.make(greeting, owner, &logs)?));
                logs.insert(greeting.log, Arc::clone(&log));
                Ok(log)
            }
        }
    }

    fn known(
        &self,
        log: &Arc<Mutex<Log>>,
        greeting: &Greeting,
        owner: &str,
    ) -> Result<Arc<Mutex<Log>>, Refused> {
        let held = lock(log);
        if held.meta().owner != owner {
            let why = format!(
                "log {} belongs to {}, and the request comes from {}",
                held.meta().log,
                whose(&held.meta().owner),
                whose(owner)
            );
            return Err(Refused::new(Refusal::Forbidden, why));
        }
        if greeting.make != 0 && greeting.image != held.meta().image {
            let why = format!(
                "this keeper already has log {}, with an image of {} bytes",
                held.meta().log,
                held.meta().image
            );
            return Err(Refused::new(Refusal::Differs, why));
        }
        drop(held);
        Ok(Arc::clone(log))
    }

    fn make(
        &self,
        greeting: &Greeting,
        owner: &str,
        logs: &BTreeMap<[u8; 16], Arc<Mutex<Log>>>,
    ) -> Result<Log, Refused> {
        if logs.len() >= LOGS_MAX {
            return Err(Refused::new(Refusal::Quota, format!("this keeper already has {LOGS_MAX} logs")));
        }
        let (used, wanted) = (self.used(logs), greeting.image.saturating_mul(2));
        let is_sane =
            greeting.image > 0 && greeting.image.is_multiple_of(4096) && usize::try_from(wanted).is_ok();
        if !is_sane {
            return Err(Refused::new(
                Refusal::Malformed,
                format!("no log can have an image of {} bytes", greeting.image),
            ));
        }
        if !self.options.witness && used.saturating_add(wanted) > self.options.quota {
            let why = format!(
                "a log of {} bytes takes {wanted} bytes here, and {used} of {} are in use (--quota)",
                greeting.image, self.options.quota
            );
            return Err(Refused::new(Refusal::Quota, why));
        }
        let log = uuid_text(greeting.log);
        let meta = Meta {
            log: log.clone(),
            image: greeting.image,
            owner: owner.to_owned(),
            promised: (0, 0),
            holder: None,
            roster: Roster::default(),
            affirmed: self.options.harden == Harden::Affirm,
            closed_at: None,
        };
        let path = self.directory.join(log);
        Log::create(&path, meta, low_half(greeting.log), self.options.harden, self.options.witness)
            .map_err(|e| Refused::new(Refusal::Disk, format!("{}: {e}", path.display())))
    }

    fn used(&self, logs: &BTreeMap<[u8; 16], Arc<Mutex<Log>>>) -> u64 {
        if self.options.witness {
            0
        } else {
            logs.values().map(|log| 2 * lock(log).copy().image_bytes()).sum()
        }
    }

    /// The state of a log, as its writer sees it.
    pub fn state(&self, log: &Log) -> State {
        log.state(self.who)
    }

    /// Removes a log: nobody needs it any more.
    ///
    /// # Errors
    /// [`Refused`]: the disk.
    pub fn forget(&self, uuid: [u8; 16]) -> Result<(), Refused> {
        self.forget_if(uuid, |_| Ok(()))
    }

    /// The same, if it `may` be: nobody is promised it after that was asked.
    ///
    /// # Errors
    /// [`Refused`]: the disk, or what `may` said.
    pub(crate) fn forget_if(
        &self,
        uuid: [u8; 16],
        may: impl FnOnce(&Log) -> Result<(), Refused>,
    ) -> Result<(), Refused> {
        let mut logs = lock(&self.logs);
        let path = self.directory.join(uuid_text(uuid));
        let gone = path.with_extension(GONE);
        let failed = |e: io::Error| Refused::new(Refusal::Disk, format!("{}: {e}", path.display()));
        let log = logs.get(&uuid).cloned();
        let held = log.as_deref().map(lock);
        held.as_deref().map_or(Ok(()), may)?;
        remove_all(&gone).map_err(failed)?;
        // At once, and by another name: others still have the log, and would make files in it while it is removed.
        fs::rename(&path, &gone).map_err(failed)?;
        held.into_iter().for_each(|mut log| log.is_gone_to(&gone));
        logs.remove(&uuid);
        durable::sync_directory(&self.directory).map_err(failed)?;
        remove_all(&gone).map_err(failed)
    }

    /// A clean end of all of them. Nobody is served any more.
    ///
    /// # Errors
    /// The first that failed; the others were closed all the same.
    pub fn close(&self) -> Result<(), Refused> {
        let logs = lock(&self.logs);
        let ends: Vec<_> = logs.values().map(|log| lock(log).close()).collect();
        ends.into_iter().collect()
    }

    /// What it keeps.
    pub fn report(&self) -> Report {
        let logs = lock(&self.logs);
        let end = self.who.host.iter().position(|byte| *byte == 0).unwrap_or(self.who.host.len());
        Report {
            id: self.id(),
            host: String::from_utf8_lossy(&self.who.host[..end]).into_owned(),
            witness: self.options.witness,
            harden: self.options.harden.name().into(),
            quota: self.options.quota,
            used: self.used(&logs),
            logs: logs.values().map(|log| LogReport::of(&lock(log))).collect(),
        }
    }
}

/// The extension of a log's directory that is being removed.
const GONE: &str = "gone";

/// Removes a directory, if it is there. Whoever had found its way there before it was renamed may still make a file.
fn remove_all(directory: &Path) -> io::Result<()> {
    for _ in 0..100 {
        match fs::remove_dir_all(directory) {
            Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(()),
            done => return done,
        }
    }
    fs::remove_dir_all(directory)
}

/// An owner, by its certificate, in words.
fn whose(owner: &str) -> String {
    if owner.is_empty() { "no owner (clear text)".into() } else { format!("owner {owner}") }
}

/// This host's name, cut short, zeros behind.
fn host_name() -> [u8; 64] {
    let mut host = [0; 64];
    let name = rustix::system::uname();
    let name = name.nodename().to_bytes();
    let len = name.len().min(host.len());
    host[..len].copy_from_slice(&name[..len]);
    host
}

/// The keeper's number: drawn once, and kept in its directory.
fn identity(directory: &Path) -> io::Result<[u8; 16]> {
    let path = directory.join("keeper.id");
    match fs::read_to_string(&path) {
        Ok(text) => parse_uuid(text.trim()).ok_or_else(|| io::Error::other("keeper.id is damaged")),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let id = random_uuid()?;
            replace(&path, format!("{}\n", uuid_text(id)).as_bytes())?;
            Ok(id)
        }
        Err(e) => Err(e),
    }
}
