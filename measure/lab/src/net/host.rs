//! A host of its own, as far as the network goes: a namespace with one cable (veth) to it.

use std::ffi::OsStr;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::Command;
use std::sync::Mutex;

use anyhow::{Context, Result};
use seawall_media::locks::lock;

use crate::identity::Identity;
use crate::process::run;

/// A namespace; without the right to make one, this host itself, by its loopback. Removed on drop.
pub struct Host {
    name: Option<String>,
    _number: Option<Number>,
    address: Ipv4Addr,
    identity: Identity,
}

impl Host {
    /// One more host of the lab.
    ///
    /// # Errors
    /// Of `ip`, where we are root.
    pub fn make(identity: &Identity) -> Result<Self> {
        let identity = identity.clone();
        if !identity.is_other() {
            return Ok(Self { name: None, _number: None, address: Ipv4Addr::LOCALHOST, identity });
        }
        let number = Number::draw()?;
        let name = format!("sw{}n{}", std::process::id(), number.0);
        let [ours, theirs] = [1, 2].map(|end| number.address(end));
        let inside = format!("{name}i");
        let host = Self { name: Some(name.clone()), _number: Some(number), address: theirs, identity };
        ip(&["netns", "add", &name])?;
        ip(&["link", "add", &name, "type", "veth", "peer", "name", &inside, "netns", &name])?;
        ip(&["addr", "add", &format!("{ours}/30"), "dev", &name])?;
        ip(&["link", "set", &name, "up"])?;
        ip(&["-n", &name, "addr", "add", &format!("{theirs}/30"), "dev", &inside])?;
        ip(&["-n", &name, "link", "set", &inside, "up"])?;
        ip(&["-n", &name, "link", "set", "lo", "up"])?;
        Ok(host)
    }

    /// True for a namespace of its own.
    pub fn is_apart(&self) -> bool {
        self.name.is_some()
    }

    /// A port on it that is free.
    ///
    /// # Errors
    /// Of bind(2).
    pub fn port(&self, wanted: u16) -> Result<SocketAddr> {
        let port = match self.is_apart() {
            true => wanted,
            // Whoever is there may want it too: the kernel knows one that is free.
            false => TcpListener::bind((self.address, 0))?.local_addr()?.port(),
        };
        Ok((self.address, port).into())
    }

    /// A command there, as the databases' user.
    pub fn command(&self, program: &OsStr) -> Command {
        self.command_as(&self.identity, program)
    }

    /// A command there, as whoever we are.
    pub fn command_as_ourselves(&self, program: &OsStr) -> Command {
        self.command_as(&Identity::ourselves(), program)
    }

    fn command_as(&self, identity: &Identity, program: &OsStr) -> Command {
        let Some(name) = &self.name else { return identity.command(program) };
        // Only root enters a namespace, and steps down there.
        let mut command = Identity::ourselves().command(OsStr::new("nsenter"));
        command.arg(format!("--net=/run/netns/{name}"));
        if let Some((uid, gid)) = identity.ids() {
            command.args(["-S", &uid.to_string(), "-G", &gid.to_string()]);
        }
        command.arg("--").arg(program);
        command
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let Some(name) = &self.name else { return };
        // The cable goes with its end in the namespace.
        for words in [["link", "del", name], ["netns", "del", name]] {
            let _ = Command::new("ip").args(words).output();
        }
    }
}

/// Of a host, as long as it is there: no other one of this process has it.
struct Number(u8);

static IN_USE: Mutex<[bool; HOSTS]> = Mutex::new([false; HOSTS]);
/// Networks of four addresses in one of 256.
const HOSTS: usize = 64;

impl Number {
    fn draw() -> Result<Self> {
        let mut in_use = lock(&IN_USE);
        let free = in_use.iter().position(|used| !used).context("no network is free for another host")?;
        in_use[free] = true;
        Ok(Number(free as u8))
    }

    /// A link-local address in its network. The first and the last 256 of those are reserved.
    fn address(&self, end: u8) -> Ipv4Addr {
        Ipv4Addr::new(169, 254, 1 + (std::process::id() % 254) as u8, self.0 * 4 + end)
    }
}

impl Drop for Number {
    fn drop(&mut self) {
        lock(&IN_USE)[usize::from(self.0)] = false;
    }
}

fn ip(words: &[&str]) -> Result<()> {
    let mut ip = Command::new("ip");
    ip.args(words);
    run(ip, "ip").with_context(|| format!("cannot run ip {}", words.join(" "))).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_have_addresses_of_their_own_and_give_them_back() {
        let numbers: Vec<_> = (0..HOSTS).map(|_| Number::draw().expect("a number")).collect();
        assert!(Number::draw().is_err(), "all are in use");
        let all: std::collections::BTreeSet<_> =
            numbers.iter().flat_map(|number| [1, 2].map(|end| number.address(end))).collect();
        assert_eq!(all.len(), 2 * HOSTS);
        assert!(all.iter().all(Ipv4Addr::is_link_local));
        drop(numbers);
        assert_eq!(Number::draw().expect("a number").0, 0);
    }
}
