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
use super::in_kernel;
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
            .map_err(|_| TlsError::Refused(format!("{host} is not a name that a certificate can have")))?;
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
        config.enable_secret_extraction = in_kernel::may_be();
        let mut session =
            ClientConnection::new(Arc::new(config), name).map_err(|error| damaged(directory, error))?;
        session.set_buffer_limit(None);
        Ok(Self { session, end: End::Writer { files: directory.into(), keeper: host.into() } })
    }

    /// Agrees on keys, for at most so long. The kernel gets them, if it can use them.
    ///
    /// # Errors
    /// The kernel's; [`TlsError`] within.
    pub fn shake(self, socket: TcpStream, patience: Duration) -> io::Result<Stream> {
        let is_the_kernels = in_kernel::is_asked_for(&socket);
        let tls = Tls::shake(socket, self.session.into(), self.end, patience)?;
        if is_the_kernels { tls.into_kernel() } else { Ok(Stream::Tls(Box::new(tls))) }
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
        // Nobody uses one, and whoever has the kernel decrypt takes nothing but data.
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

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpListener};

    use super::super::making::{self, For, Validity};
    use super::*;
    use crate::wire::Wire as _;

    const PATIENCE: Duration = Duration::from_secs(10);

    /// A CA with a keeper's files, and an owner's.
    fn authority() -> (tempfile::TempDir, PathBuf, PathBuf) {
        let ca = tempfile::tempdir().expect("a directory");
        let days = Validity::days(3);
        making::ca(ca.path(), days, false).expect("a CA");
        let sign = |whose: &For| making::certificate(ca.path(), whose, days, false).expect("signed");
        let (keeper, owner) = (sign(&For::Keeper(vec!["127.0.0.1".into()])), sign(&For::Owner("db1".into())));
        (ca, keeper, owner)
    }

    /// Both ends, and a client of the first.
    fn connected(owner: &Path) -> (TcpStream, TcpStream, Client) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address: SocketAddr = listener.local_addr().expect("bound");
        let near = TcpStream::connect(address).expect("connected");
        let (far, _) = listener.accept().expect("accepted");
        (near, far, Client::new(owner, &address.to_string()).expect("a client"))
    }

    /// One that speaks right behind its part of the handshake, without a word from the client; then it does this.
    fn speaks_at_once(
        keeper: &Path,
        mut far: TcpStream,
        then: impl FnOnce(&mut ServerConnection) + Send + 'static,
    ) -> std::thread::JoinHandle<TcpStream> {
        let files = files::read(keeper).expect("its files");
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let config = config.with_protocol_versions(&[&TLS13]).expect("TLS 1.3").with_no_client_auth();
        let mut config = config.with_single_cert(files.chain, files.key).expect("a certificate");
        (config.send_half_rtt_data, config.send_tls13_tickets) = (true, 0);
        std::thread::spawn(move || {
            let mut session = ServerConnection::new(Arc::new(config)).expect("a session");
            while !session.wants_write() {
                session.read_tls(&mut far).expect("read");
                session.process_new_packets().expect("understood");
            }
            session.writer().write_all(b"at once").expect("taken");
            let mut flight = Vec::new();
            while session.wants_write() {
                session.write_tls(&mut flight).expect("written");
            }
            // In one piece: whoever reads what is there gets all of it.
            far.write_all(&flight).expect("sent");
            while session.is_handshaking() {
                session.read_tls(&mut far).expect("read");
                session.process_new_packets().expect("understood");
            }
            then(&mut session);
            while session.wants_write() {
                session.write_tls(&mut far).expect("sent");
            }
            far
        })
    }

    #[test]
    fn what_comes_right_behind_the_handshake_is_not_lost() {
        let (_ca, keeper, owner) = authority();
        let (near, far, client) = connected(&owner);
        let far = speaks_at_once(&keeper, far, |_| {});
        let stream = client.shake(near, PATIENCE).expect("agreed");
        assert!(!stream.has_more(), "it was not read with the handshake");
        let mut heard = [0; 7];
        (&stream).read_exact(&mut heard).expect("it is there");
        assert_eq!(&heard, b"at once");
        drop(far.join().expect("no panic"));
    }

    /// Only where the kernel has TLS: else rustls answers by itself.
    // Holds: R24
    #[test]
    fn new_keys_end_a_connection_of_the_kernels() {
        let (_ca, keeper, owner) = authority();
        let (near, far, client) = connected(&owner);
        let far = speaks_at_once(&keeper, far, |session| {
            session.refresh_traffic_keys().expect("renewed");
            session.writer().write_all(b"later").expect("taken");
        });
        let stream = client.shake(near, PATIENCE).expect("agreed");
        let mut heard = [0; 7];
        (&stream).read_exact(&mut heard).expect("it is there");
        let far = far.join().expect("no panic");
        let mut more = [0; 5];
        let read = (&stream).read_exact(&mut more);
        if stream.wears() {
            let said = read.expect_err("these keys are not the kernel's").to_string();
            assert!(said.contains("new keys"), "{said}");
        } else {
            read.expect("it is there");
            assert_eq!(&more, b"later");
        }
        drop(far);
    }
}
