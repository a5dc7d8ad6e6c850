//! Which pool is meant: the one that is named, or a default one that exists.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};
use nix::unistd::geteuid;
use seawall_core::pool::PoolError;
use seawall_daemon::control::Control;
use seawall_media::dax_mounts;

use crate::beside;

/// Where the user's pool in RAM is.
pub fn emulated_default() -> PathBuf {
    format!("/dev/shm/seawall-{}.pool", geteuid()).into()
}

/// Where the user's pool on a DAX mount is.
pub(super) fn on_mount(mount: &Path) -> PathBuf {
    mount.join(format!("seawall-{}.pool", geteuid()))
}

/// The pool to ask about, which exists: the named one, or a default one.
///
/// # Errors
/// If there is none.
pub fn existing(named: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = named {
        return std::fs::canonicalize(path).map_err(|e| match e.kind() {
            std::io::ErrorKind::NotFound => PoolError::Missing(path.into()).into(),
            _ => anyhow!(e).context(format!("cannot find the pool {}", path.display())),
        });
    }
    let on_dax = dax_mounts().iter().map(|mount| on_mount(mount)).find(|path| is_mine(path));
    let logs: Vec<PathBuf> = beside::noted().into_iter().filter(|path| is_mine(path)).collect();
    let emulated = Some(emulated_default()).filter(|path| is_mine(path));
    let all = on_dax.iter().chain(&logs).chain(&emulated);
    // The user means the one in use now, else the strongest.
    match all.filter(|path| is_served(path)).collect::<Vec<_>>().as_slice() {
        [] => {}
        [one] => return Ok((*one).clone()),
        many => return several(many),
    }
    match (on_dax, logs.as_slice(), emulated) {
        (Some(one), ..) | (None, [], Some(one)) => Ok(one),
        (None, [one], _) => Ok(one.clone()),
        (None, [], None) => bail!("you have no default pool{}: name one with --pool", others()),
        (None, many, _) => several(many),
    }
}

fn several<P: AsRef<Path>>(pools: &[P]) -> Result<PathBuf> {
    bail!("you have several pools: name one with --pool ({})", list(pools))
}

/// True if a daemon answers for this pool.
pub fn is_served(pool: &Path) -> bool {
    matches!(Control::connect(pool), Ok(Some(_)))
}

fn list<P: AsRef<Path>>(paths: &[P]) -> String {
    paths.iter().map(|p| p.as_ref().display().to_string()).collect::<Vec<_>>().join(", ")
}

/// Pools of others in RAM, for the message.
fn others() -> String {
    let names = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten().map(|e| e.path());
    let pools: Vec<_> = names.filter(|p| p.extension().is_some_and(|e| e == "pool")).collect();
    if pools.is_empty() { String::new() } else { format!(" (in /dev/shm there are {})", list(&pools)) }
}

/// True for a file of this user's.
pub(super) fn is_mine(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|m| m.is_file() && m.uid() == geteuid().as_raw())
}
