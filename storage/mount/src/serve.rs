//! A mount's life: joined to the log, mounted, served, unmounted.

use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use fuser::{Config, MountOption, Session, SessionACL};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::adapter::Adapter;
use crate::flags::{self, Flag};
use crate::fs::Fs;
use crate::log::{Discover, Log};
use crate::mountpoint::{self, Refused};
use crate::node::Nodes;
use crate::uring::{self, FuseUring, Urings};
use crate::ways::{self, Ways};

/// Threads that read requests. What may wait runs elsewhere, so few are enough.
const THREADS: usize = 4;

/// What to mount, and how.
pub struct Options {
    /// The directory that holds the files.
    pub backing: PathBuf,
    /// Where programs see them.
    pub mountpoint: PathBuf,
    /// Other users may use it.
    pub allow_other: bool,
    /// By which way requests come.
    pub fuse_uring: FuseUring,
    /// What the kernel is to forbid.
    pub flags: Vec<Flag>,
}

/// A mount that is ready to serve.
pub struct Mount {
    session: Session<Adapter>,
    fs: Arc<Fs>,
    ways: Ways,
    urings: Vec<std::thread::JoinHandle<()>>,
}

impl Mount {
    /// Mounts. The pool's daemon must be there; it has recovered what was left in the log. Whoever calls has claimed
    /// the backing directory ([`mountpoint::claim`]).
    ///
    /// # Errors
    /// [`Refused`] with what is wrong and what to do.
    pub fn new(options: &Options, pool: &Path, discover: Discover) -> Result<Self, Refused> {
        allow_many_files();
        let failed = |what: &'static str| move |error: io::Error| Refused::Failed { what, error };
        let nodes = Nodes::new(&options.backing)
            .map_err(|e| failed("cannot open the backing directory")(e.into()))?;
        let log = Log::join(pool, discover).map_err(failed("cannot join the log"))?;
        let fs = Fs::new(log, nodes);
        let urings = prepare(options.fuse_uring, &fs);
        if let (FuseUring::On, Err(error)) = (options.fuse_uring, &urings) {
            return Err(no_uring(error));
        }
        fs.by_uring.store(urings.is_ok(), Relaxed);
        let session = Session::new(Adapter(Arc::clone(&fs)), &options.mountpoint, &config(options));
        let session = session.map_err(|e| mountpoint::explain(e, options.allow_other))?;
        let device = session.as_fd().try_clone_to_owned().map_err(failed("cannot keep /dev/fuse open"))?;
        let device = fs.device.get_or_init(|| Arc::new(device));
        fs.pages.start(session.notifier()).map_err(failed("cannot start a thread"))?;
        let urings = match urings {
            Ok(urings) if fs.by_uring.load(Relaxed) => urings.start(device),
            Ok(urings) => {
                urings.end();
                Err(not_offered())
            }
            Err(error) => Err(error),
        };
        if let (FuseUring::On, Err(error)) = (options.fuse_uring, &urings) {
            return Err(no_uring(error));
        }
        let readahead = ways::read_ahead(&options.mountpoint);
        let told = urings.as_ref().map(Vec::len).map_err(io::Error::to_string);
        let urings = urings.unwrap_or_default();
        let ways =
            Ways { passthrough: fs.passthrough.load(Relaxed), readahead, threads: THREADS, urings: told };
        Ok(Self { session, fs, ways, urings })
    }

    /// Which of the kernel's ways to be fast are in use.
    pub fn ways(&self) -> &Ways {
        &self.ways
    }

    /// Serves until it is unmounted.
    ///
    /// # Errors
    /// If the kernel's side fails.
    pub fn serve(self) -> io::Result<()> {
        let done = self.session.run();
        for uring in self.urings {
            let _ = uring.join();
        }
        self.fs.workers.finish();
        self.fs.log.leave();
        done
    }
}

fn no_uring(why: &io::Error) -> Refused {
    Refused::Failed { what: "FUSE over io_uring (--fuse-uring on)", error: io::Error::other(why.to_string()) }
}

fn not_offered() -> io::Error {
    io::Error::other("this kernel's FUSE does not offer io_uring")
}

/// An io_uring for each processor, if that is wanted.
fn prepare(wanted: FuseUring, fs: &Arc<Fs>) -> io::Result<Urings> {
    if wanted == FuseUring::Off {
        return Err(io::Error::other("--fuse-uring off"));
    }
    if !uring::is_allowed() {
        return Err(io::Error::other(
            "no io_uring: the module fuse has enable_uring off, or does not have it at all",
        ));
    }
    Urings::new(fs).map_err(|error| io::Error::other(format!("no io_uring: {error}")))
}

/// Each inode that the kernel remembers keeps a descriptor of ours open: as many as we are allowed.
fn allow_many_files() {
    let now = getrlimit(Resource::Nofile);
    let most = std::fs::read_to_string("/proc/sys/fs/nr_open").ok().and_then(|text| text.trim().parse().ok());
    let raised = Rlimit { current: most, maximum: most };
    // The most there is needs CAP_SYS_RESOURCE; what is granted anyhow does not.
    if most.is_none() || most <= now.maximum || setrlimit(Resource::Nofile, raised).is_err() {
        let _ = setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum });
    }
    // A log on a disk is a file that others are not to be limited by.
    let size = getrlimit(Resource::Fsize);
    let _ = setrlimit(Resource::Fsize, Rlimit { current: size.maximum, ..size });
}

fn config(options: &Options) -> Config {
    let mut config = Config::default();
    config.mount_options = vec![
        MountOption::FSName(options.backing.display().to_string()),
        // As the kernel takes it: fuser keeps `Subtype` to itself when root mounts.
        MountOption::CUSTOM(format!("subtype={}", mountpoint::TYPE)),
        MountOption::DefaultPermissions,
    ];
    config.mount_options.extend(flags::options(&options.flags));
    config.acl = if options.allow_other { SessionACL::All } else { SessionACL::Owner };
    config.n_threads = Some(THREADS);
    config.clone_fd = true;
    config
}
