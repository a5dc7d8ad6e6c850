//! Sockets at which QEMU finds this process. Their names are in no directory: nothing is left behind, and no path
//! is too long.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use anyhow::{Context, Result};

/// Listens at a name that nobody else has: an abstract one, as QEMU calls it.
///
/// # Errors
/// Of the kernel.
pub fn listen(what: &str) -> Result<(UnixListener, String)> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let number = COUNT.fetch_add(1, Relaxed);
    let name = format!("seawall-vmtest-{}-{number}-{what}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name)?;
    let listener =
        UnixListener::bind_addr(&address).with_context(|| format!("cannot make a socket for the {what}"))?;
    Ok((listener, name))
}
