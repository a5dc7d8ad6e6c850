//! Both ends: keepers that run, and those who connect with what a CA signed.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use seawall_keeper::guests::Limits;
use seawall_keeper::keeper::{Keeper, Options};
use seawall_keeper::log::{Harden, Refused};
use seawall_keeper::peer::{Peer, PeerError};
use seawall_keeper::server::{Server, Stop};
use seawall_keeper::tls::making::{self, For, Validity};
use seawall_keeper::transport::Transport;
use seawall_wire::keeper::Epoch;

pub const LOG: [u8; 16] = [7; 16];
pub const IMAGE: u64 = 1 << 20;
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A CA, and what it signed.
pub struct Authority(pub tempfile::TempDir);

impl Authority {
    pub fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        making::ca(directory.path(), Validity::days(100), false).expect("a CA");
        Self(directory)
    }

    pub fn keeper(&self) -> PathBuf {
        self.sign(&For::Keeper(vec!["127.0.0.1".into(), "localhost".into()]), Validity::days(10), false)
    }

    pub fn owner(&self, name: &str) -> PathBuf {
        self.sign(&For::Owner(name.into()), Validity::days(10), false)
    }

    pub fn sign(&self, whose: &For, validity: Validity, renew: bool) -> PathBuf {
        making::certificate(self.0.path(), whose, validity, renew).expect("signed")
    }
}

pub struct Running {
    pub address: String,
    stop: Stop,
    thread: JoinHandle<Result<(), Refused>>,
    directory: tempfile::TempDir,
}

pub fn run(tls: Option<&Path>) -> Running {
    run_in(tempfile::tempdir().expect("a directory"), tls, Limits::default())
}

pub fn run_in(directory: tempfile::TempDir, tls: Option<&Path>, limits: Limits) -> Running {
    let options = Options { harden: Harden::NoAffirm, witness: false, quota: 16 << 20 };
    let keeper = Arc::new(Keeper::open(directory.path(), options).expect("a keeper"));
    let server = Server::bind(keeper, "127.0.0.1:0".parse().expect("an address")).expect("a port");
    let mut server = server.with_limits(limits);
    if let Some(files) = tls {
        server = server.with_tls(files.into());
    }
    let (address, stop) = (server.address().expect("bound").to_string(), server.stop().expect("bound"));
    Running { address, stop, thread: std::thread::spawn(|| server.run()), directory }
}

impl Running {
    pub fn end(self) -> tempfile::TempDir {
        self.stop.stop();
        self.thread.join().expect("joined").expect("closed");
        self.directory
    }

    pub fn port(&self) -> u16 {
        self.address.parse::<SocketAddr>().expect("an address").port()
    }

    /// Connects and asks for a log, which is made.
    pub fn ask(&self, transport: &Transport) -> Result<Peer, PeerError> {
        let mut peer = Peer::connect(&self.address, transport, PATIENCE)?;
        peer.greet(LOG, Some(IMAGE), None)?;
        Ok(peer)
    }

    pub fn refuses(&self, transport: &Transport, words: &[&str]) {
        let error = self.ask(transport).err().expect("refused").to_string();
        for word in words {
            assert!(error.contains(word), "{word:?} is not in {error:?}");
        }
    }
}

pub fn tls(directory: &Path) -> Transport {
    Transport::Tls(directory.into())
}

pub fn epoch(counter: u64) -> Epoch {
    Epoch { counter, writer: 5 }
}
