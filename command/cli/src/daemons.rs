//! Which pool is meant: by a service, a directory or a pool's path; or the one that is in use now.
//!
//! Root sees the daemons of everybody, others see their own. They are found as processes, since a pool may be anywhere.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use seawall_core::path_text::Shown;
use seawall_daemon::control::Control;
use seawall_daemon::status::Status;
use seawall_wire::message::Kind;
use serde_json::{Value, json};

use crate::{attach, beside, pool, show, size, user};

/// How long a daemon has to say what it does, where many are asked.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(2);

/// A pool, named in one of several ways.
#[derive(clap::Args, Clone)]
pub struct Named {
    /// Which log: an attached service, a database's directory, or a pool; without it the one that is in use
    #[arg(value_name = "SERVICE|DIRECTORY|POOL", conflicts_with = "pool")]
    pub what: Option<OsString>,
    /// The pool
    #[arg(long)]
    pub pool: Option<PathBuf>,
}

impl Named {
    /// The attached service that is named.
    pub fn service(&self) -> Option<&str> {
        self.what.as_deref().filter(|what| !is_path(what)).and_then(OsStr::to_str)
    }
}

/// What a name leads to.
pub enum Meant {
    /// One pool.
    One(PathBuf),
    /// These are in use, and none was named.
    Several(Vec<Running>),
}

/// A daemon.
pub struct Running {
    pid: u32,
    uid: u32,
    /// Its pool, a real path.
    pub pool: PathBuf,
}

/// Finds out.
///
/// # Errors
/// If there is no such service, directory or pool.
pub fn find(named: &Named) -> Result<Meant> {
    let one = |pool: Result<PathBuf>| pool.map(Meant::One);
    match (&named.what, &named.pool) {
        (None, Some(pool)) => one(pool::existing(Some(pool))),
        (Some(what), _) if is_path(what) => one(by_path(Path::new(what))),
        (Some(what), _) => {
            let service =
                what.to_str().with_context(|| format!("{} is not the name of a service", what.display()))?;
            one(attach::attached(service).map(|(pool, _)| pool))
        }
        (None, None) => in_use(),
    }
}

/// The one pool that is meant.
///
/// # Errors
/// Also if several are in use: they are listed.
pub fn find_one(named: &Named) -> Result<PathBuf> {
    match find(named)? {
        Meant::One(pool) => Ok(pool),
        Meant::Several(all) => {
            let lines: Vec<String> = all.iter().map(|one| format!("  {}", one.line())).collect();
            bail!("{} pools are in use: name one, or its directory\n{}", all.len(), lines.join("\n"))
        }
    }
}

/// A word with a slash is no service's name; one that names a file may be a service's, too, and then means the service.
fn is_path(what: &OsStr) -> bool {
    let is_service = || what.to_str().is_some_and(|name| attach::attached(name).is_ok());
    what.as_bytes().contains(&b'/') || Path::new(what).exists() && !is_service()
}

fn by_path(path: &Path) -> Result<PathBuf> {
    let real = std::fs::canonicalize(path).with_context(|| path.display().to_string())?;
    if !real.is_dir() {
        return pool::existing(Some(&real));
    }
    of_directory(&real).with_context(|| {
        format!(
            "no daemon serves {}: `seawall guard {0}` says which pool it was used with, `seawall status` which are in use",
            real.display()
        )
    })
}

/// The pool from which a daemon serves this directory, which is a real path.
pub fn of_directory(dir: &Path) -> Option<PathBuf> {
    let running = running().into_iter().map(|one| one.pool);
    let mut all: Vec<PathBuf> = running.chain(beside::noted()).collect();
    all.push(pool::emulated_default());
    all.extend(beside::place(dir, Path::to_owned));
    all.into_iter().find(|pool| serves(pool, dir))
}

fn serves(pool: &Path, dir: &Path) -> bool {
    ask(pool).is_ok_and(|status| {
        status.roots.iter().any(|root| root.path.starts_with(dir) || dir.starts_with(&root.path))
    })
}

fn in_use() -> Result<Meant> {
    let mut running = running();
    match running.len() {
        0 => pool::existing(None).map(Meant::One),
        1 => Ok(Meant::One(running.remove(0).pool)),
        _ => Ok(Meant::Several(running)),
    }
}

/// The daemons that we may ask, by their pools.
pub fn running() -> Vec<Running> {
    // A process with notes of its own is in a test, and not alone on the machine.
    if std::env::var_os("SEAWALL_NOTES").is_some() {
        return Vec::new();
    }
    let me = rustix::process::geteuid().as_raw();
    let mut all: Vec<Running> = seawall_daemon::process::all()
        .filter_map(daemon)
        .filter(|one| (me == 0 || one.uid == me) && pool::is_served(&one.pool))
        .collect();
    all.sort_by(|a, b| a.pool.cmp(&b.pool));
    all.dedup_by(|a, b| a.pool == b.pool);
    all
}

/// The process, if it is a daemon: `seawall daemon --pool POOL`.
fn daemon(pid: u32) -> Option<Running> {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let mut words = line.split(|byte| *byte == 0);
    words.next().filter(|_| words.next() == Some(b"daemon"))?;
    let pool = loop {
        let word = words.next()?;
        if word == b"--pool" {
            break words.next()?;
        }
        if let Some(pool) = word.strip_prefix(b"--pool=") {
            break pool;
        }
    };
    let uid = std::fs::metadata(format!("/proc/{pid}")).ok()?.uid();
    let pool = std::fs::canonicalize(OsString::from_vec(pool.to_vec())).ok()?;
    Some(Running { pid, uid, pool })
}

fn ask(pool: &Path) -> Result<Status> {
    let control = Control::connect(pool)?.ok_or_else(|| anyhow!("no daemon answers"))?;
    set_socket_timeout(&control, Timeout::Recv, Some(PATIENCE))?;
    Ok(control.request(Kind::Status, &())?)
}

impl Running {
    /// For an error.
    fn line(&self) -> String {
        let directories = match ask(&self.pool) {
            Ok(status) => directories(&status),
            Err(_) => "does not answer".into(),
        };
        format!("{} of {} (pid {}): {directories}", self.pool.display(), user::name(self.uid), self.pid)
    }

    fn row(&self) -> Vec<String> {
        let told = match ask(&self.pool) {
            Ok(s) => [
                s.medium_name.clone(),
                s.clients.len().to_string(),
                size::human(s.backlog_bytes),
                s.frozen.as_ref().map_or_else(|| directories(&s), |_| format!("FROZEN {}", directories(&s))),
            ],
            Err(e) => ["?", "?", "?", &format!("does not answer: {e:#}")].map(Into::into),
        };
        let first = [self.pool.display().to_string(), user::name(self.uid), self.pid.to_string()];
        first.into_iter().chain(told).collect()
    }

    fn json(&self) -> Value {
        let status = ask(&self.pool).ok().and_then(|status| serde_json::to_value(status).ok());
        json!({ "pool": Shown(&self.pool), "user": user::name(self.uid), "daemon_pid": self.pid, "status": status })
    }
}

fn directories(status: &Status) -> String {
    let all: Vec<String> = status.roots.iter().map(|root| root.path.display().to_string()).collect();
    if all.is_empty() { "–".into() } else { all.join(", ") }
}

/// One line for each.
pub fn list(all: &[Running], as_json: bool) -> Result<()> {
    if as_json {
        return show::json(&json!({ "daemons": all.iter().map(Running::json).collect::<Vec<_>>() }));
    }
    let head = ["pool", "user", "pid", "medium", "clients", "backlog", "directories"];
    show::table(&head, &all.iter().map(Running::row).collect::<Vec<_>>());
    outln!("\nFor one of them: `seawall status POOL`, or a directory of it");
    Ok(())
}
