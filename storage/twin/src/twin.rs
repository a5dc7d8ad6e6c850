//! A twin: its process, what it is sent, and what is seen of it.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::address::Address;
use crate::control::Control;
use crate::feed::{Feed, Observer};
use crate::log::Place;
use crate::server::{self, Server};
use crate::settings::Settings;
use crate::state::{random_hex, replace};
use crate::watch::{Watch, Watched};

/// What the kernel takes as a socket's path.
const LONGEST_SOCKET: usize = 107;

/// A server that follows.
pub struct Twin {
    // Dropped in this order: the watch and the feed end before anything else.
    /// What is seen of it.
    pub watch: Watch,
    /// What it is sent.
    pub feed: Feed,
    /// What it was sent, for looking.
    pub sent: Observer,
    /// Its process.
    pub server: Server,
    /// Its directory.
    pub directory: PathBuf,
    /// Where it listens.
    pub socket: PathBuf,
    token: String,
}

/// Where a new twin belongs.
pub struct Site<'a> {
    /// The server's command.
    pub command: &'a [OsString],
    /// What it will find in its configuration.
    pub settings: &'a Settings,
    /// What clients connect to.
    pub address: &'a Address,
    /// The append-only file to follow.
    pub follows: Place,
    /// The twin's directory, and the addition to its configuration.
    pub directory: PathBuf,
    /// See there.
    pub addition: PathBuf,
}

impl Twin {
    /// Starts a twin in a new directory.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(site: Site<'_>) -> Result<Self> {
        let token = random_hex(64)?;
        DirBuilder::new()
            .mode(0o700)
            .create(&site.directory)
            .with_context(|| site.directory.display().to_string())?;
        let socket = socket(site.address, &site.directory)?;
        let feed = Feed::start(site.follows, token.clone())?;
        let twin =
            server::Twin { directory: &site.directory, socket: &socket, feed: feed.port(), token: &token };
        replace(&site.addition, twin.addition().as_bytes())?;
        let server = Server::start(site.command, &site.addition)?;
        let place = site.settings.place(&site.directory);
        let watched = Watched { socket: socket.clone(), token: token.clone(), place, feed: feed.observer() };
        let (watch, sent) = (Watch::start(watched)?, feed.observer());
        Ok(Self { watch, feed, sent, server, directory: site.directory, socket, token })
    }

    /// Connects to it.
    ///
    /// # Errors
    /// If it does not answer.
    pub fn control(&self, limit: Duration) -> Result<Control> {
        Control::open(&self.socket, &self.token, limit)
    }
}

/// Beside the socket that clients connect to, to be renamed to it; else in the twin's own directory.
fn socket(address: &Address, directory: &Path) -> Result<PathBuf> {
    let path = match &address.socket {
        Some(path) => {
            let mut beside = path.clone().into_os_string();
            beside.push(".twin");
            PathBuf::from(beside)
        }
        None => directory.join("socket"),
    };
    ensure!(
        path.as_os_str().as_bytes().len() <= LONGEST_SOCKET,
        "{} is too long for a socket",
        path.display()
    );
    Ok(path)
}
