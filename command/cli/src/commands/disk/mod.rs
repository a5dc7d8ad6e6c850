//! `seawall disk`: an image as a virtual machine's disk.
//!
//! ```text
//! look at the image ─ find pool ─ start or join the daemon (it recovers) ─ register the image's directory
//!   ─ open the image, lock it, take it into the log ─ listen ─ say so
//!   ─ serve guests; replace a dead daemon ─ SIGTERM: the last answers ─ drain and close if nobody else is left
//! ```
//!
//! One process, and the daemon. Killed at any moment it is started again: QEMU connects once more, and gives back the requests that
//! had no answer.

mod how;
mod resize;
pub mod served;

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nix::sys::signalfd::SignalFd;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use seawall_core::stand_in::is_image;
use seawall_disk::{Disk as Served, Limits, Options, Refused, Server};
use seawall_wire::shm::{Policy, Preset};

pub use how::Disk;

use super::serving::{self, close};
use crate::run::database;
use crate::run::join::{self, Link};
use crate::{interrupt, pool};

/// Serves it until a signal ends it.
pub fn disk(how: &Disk) -> Result<()> {
    let image = image(how)?;
    if let Some(bytes) = how.resize {
        return resize::resize(&image, how.socket.as_deref(), bytes);
    }
    let signals = interrupt::block()?;
    if how.read_only {
        return serve(how, &image, Path::new(""), None, &signals);
    }
    let directory = image.parent().unwrap_or(Path::new("/"));
    let pool = pool::for_run(&how.wanted, directory)?;
    crate::run::say_what_it_survives(&pool, how.quiet)?;
    let roots = vec![database::root(Preset::Disk, how.policy(), directory)?];
    let cache = how.cache.options();
    let start = join::How { keep: false, boot: !how.no_boot, watch: None, cache: cache.clone() };
    let mut link = Link::new(pool.clone(), roots, start)?;
    crate::run::say_what_cache(&link, cache.as_ref());
    let served = serve(how, &image, &pool, Some(&mut link), &signals);
    close(&mut link, "start", how.quiet);
    served
}

/// The image's real path. Its guard may be there in its place.
fn image(how: &Disk) -> Result<PathBuf> {
    let name = how.image.file_name().with_context(|| format!("{} is not a file", how.image.display()))?;
    if !is_image(name.as_encoded_bytes()) {
        bail!(Refused::Name(how.image.clone()));
    }
    let directory = how.image.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let directory = std::fs::canonicalize(directory).with_context(|| directory.display().to_string())?;
    let path = directory.join(name);
    if let Some(bytes) = how.create {
        make(&path, bytes)?;
    }
    // By a link it would be guarded where nobody looks.
    std::fs::canonicalize(&path).with_context(|| match how.create {
        None => format!("cannot find {} (--create SIZE makes one)", path.display()),
        Some(_) => path.display().to_string(),
    })
}

fn make(path: &Path, bytes: u64) -> Result<()> {
    if bytes == 0 || !bytes.is_multiple_of(512) {
        bail!("--create: the size of a disk must be a multiple of 512 bytes, and more than 0");
    }
    match File::create_new(path) {
        Ok(file) => file.set_len(bytes).with_context(|| format!("cannot create {}", path.display())),
        Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e).with_context(|| format!("cannot create {}", path.display())),
    }
}

fn serve(how: &Disk, image: &Path, pool: &Path, link: Option<&mut Link>, signals: &SignalFd) -> Result<()> {
    let options = Options {
        image: image.into(),
        is_read_only: how.read_only,
        is_atomic: how.policy() == Policy::Atomic,
        serial: how.serial.clone(),
        queues: how.queues,
        limits: Limits { requests: how.iops, bytes: how.bytes_per_second },
        is_incoming: how.incoming,
    };
    let group = how.group.as_deref().map(group).transpose()?;
    let socket =
        how.socket.as_deref().context("--socket is missing: name the socket that QEMU connects to")?;
    let server = Server::new(Served::new(options, pool)?, socket, group)?;
    let (stop, ended) = (event()?, event()?);
    let (stopped, ends) = (stop.try_clone()?, ended.try_clone()?);
    let guests = std::thread::Builder::new().name("guests".into()).spawn(move || {
        let done = server.serve(stopped);
        let _ = say(&ends);
        done
    });
    let guests = guests.context("cannot start a thread")?;
    if !how.quiet {
        errln!("seawall: {} is served at {}", image.display(), socket.display());
    }
    super::daemon::tell_systemd();
    let over = || Ok(rustix::io::read(&ended, &mut [0; 8]).ok());
    let told = || {
        let _ = say(&stop);
    };
    serving::look_after(link, signals, &ended, over, told)?;
    match guests.join() {
        Ok(done) => done.context("cannot serve the disk"),
        Err(_) => bail!("the thread that served the disk has ended"),
    }
}

fn group(name: &str) -> Result<u32> {
    let found =
        nix::unistd::Group::from_name(name).with_context(|| format!("cannot look up the group {name}"))?;
    Ok(found.with_context(|| format!("there is no group {name}"))?.gid.as_raw())
}

fn event() -> Result<OwnedFd> {
    eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).context("cannot make an eventfd")
}

fn say(event: &OwnedFd) -> rustix::io::Result<usize> {
    rustix::io::write(event, &1_u64.to_ne_bytes())
}
