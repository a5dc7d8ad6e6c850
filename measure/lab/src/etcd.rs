//! One side's etcd: a cluster of one member, started, waited for, stopped.

use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use seawall_load::etcd::Connection;

use crate::lab::Lab;
use crate::launch;
use crate::process::{self, Running, start_captured};
use crate::side::{Preset, Side};
use crate::tools::find_in_path;

const UNSAFE: &str = "--unsafe-no-fsync";
const LIMIT: Duration = Duration::from_secs(60);
/// For clients, and for peers.
const PORTS: [u16; 2] = [2379, 2380];
const TRIES: u32 = 64;

/// A running server; dropping it ends it.
pub struct Server {
    server: Running,
    program: PathBuf,
    address: String,
}

/// The program.
pub fn program() -> Result<PathBuf> {
    find_in_path("etcd").context("etcd is not installed: apt-get install etcd-server")
}

/// Whether this etcd has an option not to sync (3.5 and later).
pub fn can_be_unsafe() -> bool {
    let help = program().ok().and_then(|program| Command::new(program).arg("--help").output().ok());
    help.is_some_and(|help| {
        [help.stdout, help.stderr].iter().any(|said| String::from_utf8_lossy(said).contains(UNSAFE))
    })
}

impl Server {
    /// Starts it on `data` with these options and waits until it serves.
    pub fn start(lab: &Lab, side: Side, data: &Path, options: &[&str]) -> Result<Self> {
        Self::launch(launch::command(lab, side, Preset::Etcd, data, &program()?, options)?, data)
    }

    /// Starts a server by a command, to which places are added, and waits until it serves.
    pub fn launch(mut command: Command, data: &Path) -> Result<Self> {
        let [address, peers] = free_addresses()?;
        let url = |address: &str| format!("http://{address}");
        let mut args = vec![format!("--data-dir={}", data.display()), "--name=lab".to_owned()];
        for role in ["--listen-client-urls", "--advertise-client-urls"] {
            args.push(format!("{role}={}", url(&address)));
        }
        for role in ["--listen-peer-urls", "--initial-advertise-peer-urls"] {
            args.push(format!("{role}={}", url(&peers)));
        }
        args.push(format!("--initial-cluster=lab={}", url(&peers)));
        args.push("--log-level=error".to_owned());
        command.args(args);
        // On a processor that it does not know etcd asks for this.
        command.env("ETCD_UNSUPPORTED_ARCH", std::env::consts::ARCH);
        // Answered only by a member of a cluster that has a leader.
        let answers = || Connection::open(&address).and_then(|mut etcd| etcd.count("nothing/")).is_ok();
        let server = start_captured(command, "etcd", libc::SIGTERM)?.until_ready(LIMIT, answers)?;
        Ok(Self { server, program: std::fs::canonicalize(program()?)?, address })
    }

    /// Where it takes clients.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The process that was started, and its program.
    pub fn into_parts(self) -> (Running, PathBuf) {
        (self.server, self.program)
    }

    /// Ends it in order.
    pub fn stop(self) -> Result<()> {
        process::signal(self.server.pid(), libc::SIGTERM);
        // It ends itself by that signal when everything is closed.
        self.server.wait_for(LIMIT).map(drop)
    }
}

/// Where one server takes its clients and its peers: a loopback address of its own, at etcd's ports.
///
/// A free port of 127.0.0.1 may go to any program that connects somewhere in the meantime; and a client that tries to
/// connect to it before the server listens is now and then connected to itself.
fn free_addresses() -> Result<[String; 2]> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let pid = std::process::id();
    for _ in 0..TRIES {
        let host = loopback(pid, NEXT.fetch_add(1, Relaxed));
        let free = PORTS.map(|port| TcpListener::bind((host, port)).map(|_| format!("{host}:{port}")));
        if let [Ok(clients), Ok(peers)] = free {
            return Ok([clients, peers]);
        }
    }
    bail!("found no loopback address at which the ports {PORTS:?} are free")
}

/// Different for processes at work at the same time, nearly always, and for the servers of one.
fn loopback(pid: u32, nth: u32) -> Ipv4Addr {
    let [_, _, high, low] = pid.to_be_bytes();
    // Neither 127.0.0.1 nor an address that ends in 0 or 255.
    Ipv4Addr::new(127, 1 + high % 254, low, 1 + (nth % 254) as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_do_not_meet() {
        let [a, b] = [(); 2].map(|()| free_addresses().expect("an address"));
        assert!(a[0] != b[0] && a[0] != a[1], "{a:?} {b:?}");
        assert_ne!(loopback(4_194_303, 0), loopback(4_194_302, 0));
        assert!(
            (0..600)
                .all(|n| loopback(255 << 8 | 255, n).is_loopback() && loopback(0, n) != Ipv4Addr::LOCALHOST)
        );
    }
}
