//! A mount's life: joined to the log, mounted, served, unmounted.

use std::io;
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
    /// What the kernel is to forbid.
    pub flags: Vec<Flag>,
}

/// A mount that is ready to serve.
pub struct Mount {
    session: Session<Adapter>,
    fs: Arc<Fs>,
    ways: Ways,
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
        let nodes =
            Nodes::new(&options.backing).map_err(|e| failed("opening the backing directory")(e.into()))?;
        let log = Log::join(pool, discover).map_err(failed("joining the log"))?;
        let fs = Fs::new(log, nodes);
        let session = Session::new(Adapter(Arc::clone(&fs)), &options.mountpoint, &config(options));
        let session = session.map_err(|e| mountpoint::explain(e, options.allow_other))?;
        let readahead = ways::read_ahead(&options.mountpoint);
        let ways = Ways { passthrough: fs.passthrough.load(Relaxed), readahead, threads: THREADS };
        Ok(Self { session, fs, ways })
    }

    /// Which of the kernel's ways to be fast are in use.
    pub fn ways(&self) -> Ways {
        self.ways
    }

    /// Serves until it is unmounted.
    ///
    /// # Errors
    /// If the kernel's side fails.
    pub fn serve(self) -> io::Result<()> {
        let done = self.session.run();
        self.fs.workers.finish();
        self.fs.log.leave();
        done
    }
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
