//! How keepers are reached: in clear text, or by TLS.
//!
//! Clear text leaves a host only if somebody asked for it by name: whoever is on the way reads and changes the logs.

use std::io;
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::stream::Stream;
use crate::tls;

/// How keepers are reached.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// In clear text, at loopback and link-local addresses only.
    #[default]
    Near,
    /// In clear text, wherever they are.
    ClearText,
    /// By TLS 1.3, with the [files](tls::files) of this directory.
    Tls(PathBuf),
}

impl Transport {
    /// As two options of a command say. TLS, if both do.
    pub fn chosen(tls: Option<&Path>, clear_text: bool) -> Self {
        match tls {
            Some(directory) => Self::Tls(directory.into()),
            None if clear_text => Self::ClearText,
            None => Self::Near,
        }
    }

    /// True for what needs no mention: what was made without a word about it.
    pub fn is_default(&self) -> bool {
        *self == Self::default()
    }

    /// In words.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Near | Self::ClearText => "clear text",
            Self::Tls(_) => "TLS 1.3",
        }
    }

    /// True if it is by TLS.
    pub const fn is_encrypted(&self) -> bool {
        matches!(self, Self::Tls(_))
    }

    /// Until when this host's certificate is valid, in seconds since 1970; `None` without one that can be read.
    pub fn certificate_until(&self) -> Option<i64> {
        match self {
            Self::Near | Self::ClearText => None,
            Self::Tls(directory) => Some(tls::files::look(directory).ok()?.valid_until),
        }
    }

    /// Refuses what would send a log through a network in clear text, unless that was asked for.
    ///
    /// # Errors
    /// In words, with what to do.
    pub fn check(&self, place: SocketAddr) -> io::Result<()> {
        if *self != Self::Near || is_near(place) {
            return Ok(());
        }
        Err(io::Error::other(format!(
            "{} is neither loopback nor link-local, so everything that is sent there can be read and changed \
             on the way. Encrypt it with --tls (`seawall keeper cert` makes the certificates); or, if nobody \
             else uses that network, pass --clear-text",
            place.ip()
        )))
    }

    /// The first address of `HOST:PORT`, if it [may](Self::check) be used.
    ///
    /// # Errors
    /// It has none, or must not.
    pub fn place(&self, address: &str) -> io::Result<SocketAddr> {
        let place = address.to_socket_addrs()?.next().ok_or_else(no_address)?;
        self.check(place).map(|()| place)
    }

    /// Connects to `HOST:PORT`, and waits so long for it. Reading and writing wait so long too.
    ///
    /// # Errors
    /// The kernel's, [`tls::TlsError`] within, or why that must not be.
    pub fn connect(&self, address: &str, patience: Duration) -> io::Result<Stream> {
        match self.try_connect(address, patience) {
            // This process has given the keys away; and it does not try that again.
            Err(error) if tls::in_kernel::has_refused(&error) => self.try_connect(address, patience),
            done => done,
        }
    }

    fn try_connect(&self, address: &str, patience: Duration) -> io::Result<Stream> {
        // Before anything is sent: what is wrong on this host is wrong for every keeper.
        let client = match self {
            Self::Tls(directory) => Some(tls::Client::new(directory, address)?),
            Self::Near | Self::ClearText => None,
        };
        let mut last = no_address();
        for place in address.to_socket_addrs()? {
            self.check(place)?;
            match TcpStream::connect_timeout(&place, patience) {
                Ok(socket) => {
                    socket.set_nodelay(true)?;
                    socket.set_write_timeout(Some(patience))?;
                    let stream = match client {
                        Some(client) => client.shake(socket, patience)?,
                        None => Stream::Clear(socket),
                    };
                    stream.socket().set_read_timeout(Some(patience))?;
                    return Ok(stream);
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

/// True for an address whose packets no router carries.
fn is_near(place: SocketAddr) -> bool {
    match place {
        SocketAddr::V4(v4) => v4.ip().is_loopback() || v4.ip().is_link_local(),
        SocketAddr::V6(v6) => v6.ip().is_loopback() || v6.ip().is_unicast_link_local(),
    }
}

fn no_address() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the name has no address")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clear_text_leaves_the_host_only_if_asked_for() {
        let far: SocketAddr = "192.0.2.1:7700".parse().expect("an address");
        for near in ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "169.254.7.7:1", "[fe80::1]:1"] {
            Transport::Near.check(near.parse().expect("an address")).expect("near");
        }
        for far in
            ["192.0.2.1:1", "10.0.0.1:1", "0.0.0.0:1", "[::]:1", "[2001:db8::1]:1", "[::ffff:192.0.2.1]:1"]
        {
            let refused =
                Transport::Near.check(far.parse().expect("an address")).expect_err("far").to_string();
            assert!(refused.contains("--clear-text") && refused.contains("--tls"), "{refused}");
        }
        Transport::ClearText.check(far).expect("asked for");
        Transport::chosen(Some(Path::new("/d")), true).check(far).expect("encrypted");
        assert_eq!(Transport::chosen(Some(Path::new("/d")), true), Transport::Tls("/d".into()));
    }
}
