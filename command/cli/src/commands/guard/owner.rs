//! Whose is a guarded directory: the pool's that the guard names, or is it a copy of that one's?

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use seawall_core::table::{self, RootEntry};
use seawall_daemon::guard::Claim;
use seawall_daemon::kept;
use seawall_media::identity;

use crate::commands::inspect;
use crate::pool::is_served;

/// As many files are named, others counted.
const NAMED: usize = 4;

/// What a guard stands for.
#[derive(Clone, Debug)]
pub enum Standing {
    /// Half a guard, of which nobody knows the pool: what a crash, an older version or a hand left.
    Leftover,
    /// The pool is not there any more.
    PoolGone { pool: PathBuf, why: String },
    /// The pool is there, and cannot be read.
    Unreadable { pool: PathBuf, why: String },
    /// The pool's log belongs to other files: this is a copy.
    Copy { pool: PathBuf, live: u64, files: Vec<String> },
    /// The pool's own files, and a daemon serves it.
    Served { pool: PathBuf },
    /// The pool's own files, and its log holds records that they may lack.
    Live { pool: PathBuf, live: u64, files: Vec<String> },
    /// The pool's own files, and nothing in the log.
    Closed { pool: PathBuf },
}

impl Standing {
    /// For scripts.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Leftover => "leftover",
            Self::PoolGone { .. } => "pool gone",
            Self::Unreadable { .. } => "pool unreadable",
            Self::Copy { .. } => "copy",
            Self::Served { .. } => "served",
            Self::Live { .. } => "original",
            Self::Closed { .. } => "original, nothing live",
        }
    }

    /// Records in the pool's log that its files may lack.
    pub fn live(&self) -> Option<u64> {
        match self {
            Self::Copy { live, .. } | Self::Live { live, .. } => Some(*live),
            Self::Closed { .. } => Some(0),
            _ => None,
        }
    }

    /// What it is.
    pub fn words(&self) -> String {
        match self {
            Self::Leftover => {
                "half a guard: the file that it stood for is beside it, and no log holds anything for it"
                    .into()
            }
            Self::PoolGone { pool, why } => format!("its pool {} is gone: {why}", pool.display()),
            Self::Unreadable { pool, why } => format!("its pool {} cannot be read: {why}", pool.display()),
            Self::Copy { pool, .. } => {
                format!("a copy: the log in {} belongs to other files, and stays as it is", pool.display())
            }
            Self::Served { .. } => "the pool's own files: the database runs with Seawall".into(),
            Self::Live { live, files, .. } => {
                format!(
                    "the pool's own files, and its log holds {live} records that they may lack{}",
                    named(files)
                )
            }
            Self::Closed { .. } => "the pool's own files, and nothing is left for them in the log".into(),
        }
    }

    /// Why it is not lowered, and what to do instead.
    pub fn refusal(&self) -> Option<String> {
        match self {
            Self::Served { pool } => Some(format!(
                "these are the files of a database that runs with Seawall; the guard goes when the database \
                 ends: stop it, or `seawall stop --pool {0}`. For a copy without a guard: `seawall freeze \
                 --pool {0}`",
                pool.display()
            )),
            Self::Live { pool, .. } => Some(format!(
                "the pool {0} still exists and may hold commits that these files lack: `seawall recover \
                 --pool {0}` brings them to the files and lowers the guard. If the pool is too damaged for \
                 that, move it away and try again",
                pool.display()
            )),
            Self::Unreadable { pool, why } => Some(format!(
                "the pool {0} still exists and may hold commits that these files lack, but it cannot be read \
                 ({why}): run `seawall recover --pool {0}` as its owner or root. If the pool is too damaged \
                 for that, move it away and try again",
                pool.display()
            )),
            _ => None,
        }
    }

    /// What is lost by lowering it.
    pub fn loss(&self) -> Option<String> {
        match self {
            Self::PoolGone { pool, .. } => Some(format!(
                "Lost: the commits that only the pool {} held, since its log was last drained. The files may \
                 be torn, as after a power cut with fsync=off: prefer a backup.",
                pool.display()
            )),
            Self::Copy { live, files, .. } => Some(format!(
                "This copy may lack the commits that were acknowledged between the last drain of the log \
                 before the copy and the copy itself. {}",
                match live {
                    0 => "The log holds nothing of its files now.".into(),
                    n => format!("The log holds {n} records now that the copy cannot have{}.", named(files)),
                }
            )),
            _ => None,
        }
    }
}

fn named(files: &[String]) -> String {
    let more = files.len().saturating_sub(NAMED);
    let names = files.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match (files.len(), more) {
        (0, _) => String::new(),
        (_, 0) => format!(", of {names}"),
        _ => format!(", of {names} and {more} more files"),
    }
}

/// A pool that guards name, as far as it can be looked into.
enum Owner {
    Gone(String),
    Unreadable(String),
    There { roots: Vec<RootEntry>, live: u64, files: Vec<String>, is_served: bool },
}

/// The pools that guards name, each looked into once.
pub struct Owners(BTreeMap<(u128, PathBuf), Owner>);

impl Owners {
    /// Those of these claims.
    pub fn of<'c>(claims: impl Iterator<Item = &'c Claim>) -> Self {
        let key = |claim: &Claim| (claim.uuid, claim.pool.clone());
        let mut all = BTreeMap::new();
        for claim in claims {
            all.entry(key(claim)).or_insert_with(|| look(claim));
        }
        Self(all)
    }

    /// What the guard at this place stands for.
    pub fn standing(&self, at: &Path, claim: Option<&Claim>) -> Standing {
        let Some(claim) = claim else { return Standing::Leftover };
        let pool = claim.pool.clone();
        match self.0.get(&(claim.uuid, pool.clone())) {
            None => Standing::Leftover,
            Some(Owner::Gone(why)) => Standing::PoolGone { pool, why: why.clone() },
            Some(Owner::Unreadable(why)) => Standing::Unreadable { pool, why: why.clone() },
            Some(Owner::There { roots, live, files, is_served }) => match is_original(at, roots) {
                false => Standing::Copy { pool, live: *live, files: files.clone() },
                true if *is_served => Standing::Served { pool },
                true if *live == 0 => Standing::Closed { pool },
                true => Standing::Live { pool, live: *live, files: files.clone() },
            },
        }
    }
}

fn look(claim: &Claim) -> Owner {
    if let Err(e) = std::fs::metadata(&claim.pool) {
        return match e.kind() {
            std::io::ErrorKind::NotFound => Owner::Gone("it is not on this machine".into()),
            _ => Owner::Unreadable(e.to_string()),
        };
    }
    let opened = match kept::open_read_only(&claim.pool) {
        Ok(opened) => opened,
        Err(e) => return Owner::Unreadable(e.to_string()),
    };
    if opened.uuid() != claim.uuid {
        return Owner::Gone("another pool is there now".into());
    }
    let roots = match table::roots(&opened) {
        Ok(roots) => roots.into_iter().map(|(_, root)| root).collect(),
        Err(e) => return Owner::Unreadable(e.to_string()),
    };
    drop(opened);
    match inspect::look(&claim.pool) {
        Ok(found) if found.damage.is_empty() => {
            let live = found.files.iter().filter(|file| file.live > 0).map(|file| file.path.clone());
            Owner::There { roots, live: found.live, files: live.collect(), is_served: is_served(&claim.pool) }
        }
        Ok(found) => Owner::Unreadable(found.damage.join("; ")),
        Err(e) => Owner::Unreadable(format!("{e:#}")),
    }
}

/// True if the place lies in a directory that the pool has registered, whatever that is called now: it may have moved.
fn is_original(at: &Path, roots: &[RootEntry]) -> bool {
    at.ancestors().skip(1).any(|dir| roots.iter().any(|root| is_of(root, dir)))
}

/// The directory itself, and not the same one of a snapshot of its file system, which has its identity too.
fn is_of(root: &RootEntry, dir: &Path) -> bool {
    let found = |path: &Path| {
        let file = File::open(path).ok()?;
        (identity(&file).ok()? == root.identity).then_some(file.metadata().ok()?.dev())
    };
    let Some(dev) = found(dir) else { return false };
    found(&root.path).is_none_or(|registered| registered == dev)
}
