//! What clients connect to: ports and a socket's path, which go from the dead server to the twin.
//!
//! A dying server keeps its ports until the kernel has freed its memory, which takes 0.15 s a gigabyte. So its listening
//! sockets are borrowed while it lives (pidfd_getfd), and shut down when it is dead: a port is free at once.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use rustix::net::{AddressFamily, Shutdown, sockopt};
use rustix::process::{PidfdGetfdFlags, pidfd_getfd};

use crate::settings::Settings;

/// Where a server is found.
#[derive(Clone, Debug)]
pub struct Address {
    /// `port`; 0: none.
    pub port: u16,
    /// `tls-port`; 0: none.
    pub tls_port: u16,
    /// `unixsocket`.
    pub socket: Option<PathBuf>,
}

impl Address {
    /// As the configuration says of a server in the directory `home`.
    ///
    /// # Errors
    /// If it says what is no port.
    pub fn of(settings: &Settings, home: &Path) -> Result<Self> {
        const DEFAULT: u16 = 6379;
        Ok(Self {
            port: settings.port("port", DEFAULT)?,
            tls_port: settings.port("tls-port", 0)?,
            socket: settings.value("unixsocket").map(|path| home.join(path)),
        })
    }

    /// Gives the socket's path to the twin, which listens beside it.
    ///
    /// # Errors
    /// If it cannot be renamed.
    pub fn take_socket(&self, twins: &Path) -> Result<()> {
        let Some(path) = &self.socket else { return Ok(()) };
        fs::rename(twins, path).with_context(|| format!("cannot give {} to the twin", path.display()))
    }
}

/// Sockets on which a process listens for connections over a network.
#[derive(Default)]
pub struct Listening(Vec<OwnedFd>);

impl Listening {
    /// Borrows them. None if the kernel refuses: then a port is free when the process's memory is.
    pub fn borrow(number: i32, process: impl AsFd) -> Self {
        let files = fs::read_dir(format!("/proc/{number}/fd")).into_iter().flatten().flatten();
        let sockets = files.filter(|file| fs::read_link(file.path()).is_ok_and(|to| is_socket(&to)));
        let numbers = sockets.filter_map(|file| file.file_name().to_str()?.parse().ok());
        let borrowed = numbers.filter_map(|fd| pidfd_getfd(&process, fd, PidfdGetfdFlags::empty()).ok());
        Self(borrowed.filter(listens).collect())
    }

    /// The process is dead: its ports are free.
    pub fn shut_down(self) {
        for socket in &self.0 {
            let _ = rustix::net::shutdown(socket, Shutdown::Both);
        }
    }
}

fn is_socket(target: &Path) -> bool {
    target.to_string_lossy().starts_with("socket:")
}

fn listens(socket: &OwnedFd) -> bool {
    let family = sockopt::socket_domain(socket);
    let over_network =
        family.is_ok_and(|family| matches!(family, AddressFamily::INET | AddressFamily::INET6));
    over_network && sockopt::socket_acceptconn(socket).unwrap_or(false)
}
