//! Both ends of an encrypted connection: what each one shows, and what it wants to see.

use std::io;
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustls::client::Resumption;
use rustls::crypto::ring::default_provider;
use rustls::pki_types::ServerName;
use rustls::server::WebPkiClientVerifier;
use rustls::version::TLS13;
use rustls::{ClientConfig, ClientConnection, ServerConfig, ServerConnection};

use super::error::{End, TlsError};
use super::files::{self, CERTIFICATE, Who, damaged, said};
use crate::stream::{Stream, Tls};

/// What a writer shows a keeper.
pub(crate) struct Client {
    session: ClientConnection,
    end: End,
}

/// What a keeper shows whoever connects.
pub(crate) struct Server {
    config: Arc<ServerConfig>,
    files: PathBuf,
}

/// An encrypted connection, and who is at its other end.
pub(crate) struct Named {
    pub stream: Stream,
    pub who: Who,
}

impl Client {
    /// To a keeper at `HOST:PORT`, whose certificate must be for that host.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn new(directory: &Path, address: &str) -> Result<Self, TlsError> {
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| TlsError::Refused(format!("{host} is no name that a certificate can have")))?;
        let files = files::read(directory)?;
        let certificate = directory.join(CERTIFICATE);
        let provider = Arc::new(default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13]);
        let mut config = config
            .map_err(|error| damaged(directory, error))?
            .with_root_certificates(files.roots)
            .with_client_auth_cert(files.chain, files.key)
            .map_err(|error| damaged(&certificate, error))?;
        // Each connection looks at the certificates anew.
        config.resumption = Resumption::disabled();
        let mut session =
            ClientConnection::new(Arc::new(config), name).map_err(|error| damaged(directory, error))?;
        session.set_buffer_limit(None);
        Ok(Self { session, end: End::Writer { files: directory.into(), keeper: host.into() } })
    }

    /// Agrees on keys, for at most so long.
    ///
    /// # Errors
    /// The kernel's; [`TlsError`] within.
    pub fn shake(self, socket: TcpStream, patience: Duration) -> io::Result<Stream> {
        Tls::shake(socket, self.session.into(), self.end, patience).map(|tls| Stream::Tls(Box::new(tls)))
    }
}

impl Server {
    /// With the files of a directory.
    ///
    /// # Errors
    /// [`TlsError`].
    pub fn new(directory: &Path) -> Result<Self, TlsError> {
        let files = files::read(directory)?;
        let provider = Arc::new(default_provider());
        let roots = Arc::new(files.roots);
        let verifier = WebPkiClientVerifier::builder_with_provider(roots, Arc::clone(&provider)).build();
        let verifier = verifier.map_err(|error| damaged(&directory.join(files::CA), error))?;
        let config = ServerConfig::builder_with_provider(provider).with_protocol_versions(&[&TLS13]);
        let mut config = config
            .map_err(|error| damaged(directory, error))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(files.chain, files.key)
            .map_err(|error| damaged(&directory.join(CERTIFICATE), error))?;
        config.send_tls13_tickets = 0;
        Ok(Self { config: Arc::new(config), files: directory.into() })
    }

    /// Agrees on keys, for at most so long, and learns who is there.
    ///
    /// # Errors
    /// The kernel's; [`TlsError`] within.
    pub fn shake(self, socket: TcpStream, patience: Duration) -> io::Result<Named> {
        let end = End::Keeper { files: self.files };
        let session = ServerConnection::new(self.config).map_err(|error| TlsError::of(error, &end))?;
        let tls = Tls::shake(socket, session.into(), end, patience)?;
        let shown = tls.certificate().unwrap_or_default();
        let who = said(&shown)
            .map_err(|what| TlsError::Refused(format!("the certificate that it shows: {what}")))?;
        Ok(Named { stream: Stream::Tls(Box::new(tls)), who: who.who })
    }
}
