//! Who is connected to a keeper, and how many may be.
//!
//! A connection is a *stranger's* until it has said which log it is about, and was not refused. A stranger has little time
//! for that, and strangers are few: when one more comes, one is cut off, of the address that has the most of them. So
//! whoever only connects, by the thousand or a byte at a time, takes no place from a writer.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Shutdown, TcpStream};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use seawall_media::locks::lock;
use seawall_wire::keeper::Refusal;

use crate::log::Refused;

/// How many may be connected, and how long a stranger is waited for.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From the connection until the client has said which log it is about, encryption included.
    pub greeting: Duration,
    /// Strangers at a time.
    pub strangers: usize,
    /// Connections of one log.
    pub of_a_log: usize,
    /// All connections that are no stranger's.
    pub known: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { greeting: Duration::from_secs(10), strangers: 64, of_a_log: 32, known: 256 }
    }
}

/// Those that are cut off are still here until their threads have seen it: not more than so many of them.
const LEAVING: usize = 64;

/// Everybody who is connected.
pub(crate) struct Guests {
    limits: Limits,
    all: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    next: u64,
    guests: BTreeMap<u64, Guest>,
}

struct Guest {
    socket: TcpStream,
    from: IpAddr,
    since: Instant,
    log: Option<[u8; 16]>,
    is_cut: bool,
}

impl Guest {
    fn is_stranger(&self) -> bool {
        self.log.is_none() && !self.is_cut
    }

    fn cut(&mut self) {
        self.is_cut = true;
        // It has hung up already, if that fails.
        let _ = self.socket.shutdown(Shutdown::Both);
    }
}

impl Guests {
    pub fn new(limits: Limits) -> Self {
        Self { limits, all: Mutex::default() }
    }

    /// Somebody connects. `None`: there is no room even for a stranger.
    ///
    /// # Errors
    /// The kernel's.
    pub fn admit(&self, socket: &TcpStream, from: IpAddr) -> io::Result<Option<u64>> {
        let table = &mut *lock(&self.all);
        if table.guests.values().filter(|guest| guest.is_stranger()).count() >= self.limits.strangers {
            table.cut_one_of_the_most();
        }
        if table.guests.len() >= self.limits.known + self.limits.strangers + LEAVING {
            return Ok(None);
        }
        let (id, since) = (table.next, Instant::now());
        let guest = Guest { socket: socket.try_clone()?, from, since, log: None, is_cut: false };
        table.guests.insert(id, guest);
        table.next += 1;
        Ok(Some(id))
    }

    /// A stranger may use this log: it is none any more.
    ///
    /// # Errors
    /// [`Refused`]: too many have come for that, or in all.
    pub fn knows(&self, id: u64, log: [u8; 16]) -> Result<(), Refused> {
        let table = &mut *lock(&self.all);
        let known = |of: Option<[u8; 16]>| {
            let others = table.guests.iter().filter(|(other, guest)| **other != id && !guest.is_cut);
            others
                .filter(|(_, guest)| guest.log.is_some() && of.is_none_or(|log| guest.log == Some(log)))
                .count()
        };
        let full = match (known(Some(log)), known(None)) {
            (of_it, _) if of_it >= self.limits.of_a_log => Some(format!("{of_it} connections for this log")),
            (_, all) if all >= self.limits.known => Some(format!("{all} connections")),
            _ => None,
        };
        if let Some(full) = full {
            let why = format!("this keeper already has {full}, and accepts no more");
            return Err(Refused::new(Refusal::Quota, why));
        }
        if let Some(guest) = table.guests.get_mut(&id) {
            guest.log = Some(log);
        }
        Ok(())
    }

    /// It is gone.
    pub fn leaves(&self, id: u64) {
        lock(&self.all).guests.remove(&id);
    }

    /// Cuts off strangers that take too long.
    pub fn cut_late(&self) {
        let late = |guest: &&mut Guest| guest.is_stranger() && guest.since.elapsed() > self.limits.greeting;
        lock(&self.all).guests.values_mut().filter(late).for_each(Guest::cut);
    }

    /// Cuts off everybody.
    pub fn cut_all(&self) {
        lock(&self.all).guests.values_mut().for_each(Guest::cut);
    }
}

impl Table {
    /// Of the address with the most strangers, the one that came first.
    fn cut_one_of_the_most(&mut self) {
        let mut from: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for guest in self.guests.values().filter(|guest| guest.is_stranger()) {
            *from.entry(guest.from).or_default() += 1;
        }
        let Some((most, _)) = from.into_iter().max_by_key(|(_, strangers)| *strangers) else { return };
        if let Some(first) = self.guests.values_mut().find(|guest| guest.is_stranger() && guest.from == most)
        {
            first.cut();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::net::TcpListener;

    use super::*;

    /// A connection's two ends.
    fn pair(listener: &TcpListener) -> (TcpStream, TcpStream) {
        let client = TcpStream::connect(listener.local_addr().expect("bound")).expect("connected");
        (client, listener.accept().expect("accepted").0)
    }

    fn is_cut(client: &TcpStream) -> bool {
        client.set_nonblocking(true).expect("set");
        matches!((&mut &*client).read(&mut [0]), Ok(0))
    }

    #[test]
    fn a_crowd_from_one_address_takes_no_place_from_another() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let limits = Limits { strangers: 4, of_a_log: 2, known: 3, ..Limits::default() };
        let guests = Guests::new(limits);
        let (crowd, other) = (IpAddr::from([192, 0, 2, 1]), IpAddr::from([192, 0, 2, 2]));
        let mut clients = Vec::new();
        let mut come = |from| {
            let (client, socket) = pair(&listener);
            let id = guests.admit(&socket, from).expect("the kernel's").expect("room");
            clients.push((client, socket));
            id
        };
        let (first, alone) = (come(crowd), come(other));
        let more: Vec<u64> = (0..5).map(|_| come(crowd)).collect();
        let cut: Vec<usize> = (0..clients.len()).filter(|i| is_cut(&clients[*i].0)).collect();
        assert_eq!(cut, [0, 2, 3], "the crowd's first ones");
        guests.leaves(first);
        guests.knows(alone, [1; 16]).expect("room");
        guests.knows(alone, [1; 16]).expect("it again");
        guests.knows(more[4], [1; 16]).expect("room");
        assert_eq!(guests.knows(more[3], [1; 16]).expect_err("two have it").refusal, Refusal::Quota);
        guests.knows(more[3], [2; 16]).expect("room");
        assert_eq!(guests.knows(more[2], [3; 16]).expect_err("three in all").refusal, Refusal::Quota);
        guests.leaves(alone);
        guests.knows(more[2], [1; 16]).expect("room again");
    }
}
