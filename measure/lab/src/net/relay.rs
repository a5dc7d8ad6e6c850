//! A way to another host that takes its time: every byte is passed on so much later than it came, in order, in both directions.
//!
//! A stand-in for a network's delay where the kernel has none to offer (netem). One thread passes on what is on all ways of
//! this process: whatever comes or is due at the same time costs one wake-up, since each one is taken from the few
//! processors that the hosts of a lab share. So a delay takes nothing of the bandwidth, and nothing overtakes. The
//! thread sleeps while nothing is due, so bytes are late by what this machine takes to wake it; that adds to the delay, as
//! another hop would. What a round trip really takes is measured on the same way ([`super::ping()`]).

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::spawn;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Bytes that are read at once, and how many of a direction may be on their way.
const PIECE: usize = 64 << 10;
const MOST: usize = 64 << 20;

/// A way to somewhere. Connections that are open when it is dropped stay until either end closes them.
pub struct Relay {
    address: SocketAddr,
    over: Arc<AtomicBool>,
}

impl Relay {
    /// The way to this address, in which each direction takes so long. It begins at this host's loopback.
    ///
    /// # Errors
    /// Of bind(2).
    pub fn to(target: SocketAddr, delay: Duration) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("cannot listen for a relay")?;
        let (address, over) = (listener.local_addr()?, Arc::new(AtomicBool::new(false)));
        let told = Arc::clone(&over);
        spawn(move || {
            for came in listener.incoming().flatten() {
                if told.load(Relaxed) {
                    return;
                }
                // A target that is not there is one that hangs up: so it looks from here.
                if let Ok(target) = TcpStream::connect(target) {
                    let _ = join(&came, &target, delay);
                }
            }
        });
        Ok(Self { address, over })
    }

    /// Where it begins.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.over.store(true, Relaxed);
        // It looks up once more.
        let _ = TcpStream::connect(self.address);
    }
}

/// One direction of a connection.
struct Direction {
    from: TcpStream,
    to: TcpStream,
    delay_ns: u64,
    /// Bytes, and when they are due, on the monotonic clock in nanoseconds.
    pieces: VecDeque<(u64, Vec<u8>)>,
    /// Bytes of them.
    bytes: usize,
    /// Of the first one, so many are passed on.
    passed: usize,
    /// Nothing more comes, or nobody is there who takes it.
    is_over: bool,
}

/// The thread that passes bytes on, for all ways of this process.
struct Carrier {
    more: Sender<Direction>,
    bell: Arc<OwnedFd>,
}

fn carrier() -> Result<&'static Carrier> {
    static ONE: OnceLock<Carrier> = OnceLock::new();
    if let Some(carrier) = ONE.get() {
        return Ok(carrier);
    }
    let bell = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
    Ok(ONE.get_or_init(|| {
        let (more, news) = channel();
        let heard = Arc::clone(&bell);
        spawn(move || carry(&news, &heard));
        Carrier { more, bell }
    }))
}

fn join(a: &TcpStream, b: &TcpStream, delay: Duration) -> Result<()> {
    let carrier = carrier()?;
    for (from, to) in [(a, b), (b, a)] {
        let (from, to) = (from.try_clone()?, to.try_clone()?);
        to.set_nodelay(true)?;
        from.set_nonblocking(true)?;
        let (delay_ns, pieces) = (delay.as_nanos() as u64, VecDeque::new());
        let way = Direction { from, to, delay_ns, pieces, bytes: 0, passed: 0, is_over: false };
        carrier.more.send(way).ok().context("the relay's thread has ended")?;
    }
    rustix::io::write(&carrier.bell, &1_u64.to_ne_bytes())?;
    Ok(())
}

/// Passes on what comes, when it is due.
fn carry(news: &Receiver<Direction>, bell: &OwnedFd) {
    // Fifty microseconds otherwise, for whoever asks for less exactness.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZero::new(1));
    let (mut ways, mut bytes) = (Vec::<Direction>::new(), vec![0; PIECE]);
    loop {
        let _ = rustix::io::read(bell, &mut [0; 8]);
        ways.extend(news.try_iter());
        ways.iter_mut().for_each(|way| way.take(&mut bytes));
        let now = now_ns();
        ways.iter_mut().for_each(|way| way.pass_on(now));
        ways.retain(|way| !way.is_gone());
        wait(&ways, bell);
    }
}

/// Waits until something comes, or is due.
fn wait(ways: &[Direction], bell: &OwnedFd) {
    let due = ways.iter().filter_map(Direction::due).min();
    let left = due.map(|due| due.saturating_sub(now_ns()));
    let limit =
        left.map(|ns| Timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 });
    let mut all = vec![PollFd::new(bell, PollFlags::IN)];
    all.extend(ways.iter().filter(|way| way.takes_more()).map(|way| PollFd::new(&way.from, PollFlags::IN)));
    all.extend(ways.iter().filter(|way| way.is_stuck()).map(|way| PollFd::new(&way.to, PollFlags::OUT)));
    // A signal wakes it early.
    let _ = poll(&mut all, limit.as_ref());
}

impl Direction {
    fn takes_more(&self) -> bool {
        !self.is_over && self.bytes < MOST
    }

    /// True if bytes are due that were not taken.
    fn is_stuck(&self) -> bool {
        self.pieces.front().is_some_and(|(due, _)| *due == 0)
    }

    /// When the next bytes are due that nobody has refused.
    fn due(&self) -> Option<u64> {
        self.pieces.front().map(|(due, _)| *due).filter(|due| *due != 0)
    }

    fn is_gone(&self) -> bool {
        self.is_over && self.pieces.is_empty()
    }

    /// Notes what came, and when.
    fn take(&mut self, bytes: &mut [u8]) {
        while self.takes_more() {
            match self.from.read(bytes) {
                Ok(0) => self.ends(),
                Ok(len) => {
                    self.bytes += len;
                    self.pieces.push_back((now_ns() + self.delay_ns, bytes[..len].to_vec()));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => self.ends(),
            }
        }
    }

    /// Nothing more comes. The writer learns that nobody reads any more.
    fn ends(&mut self) {
        self.is_over = true;
        let _ = self.from.shutdown(Shutdown::Read);
        if self.pieces.is_empty() {
            let _ = self.to.shutdown(Shutdown::Both);
        }
    }

    /// Passes on what is due.
    fn pass_on(&mut self, now: u64) {
        while let Some((due, bytes)) = self.pieces.front_mut()
            && *due <= now
        {
            match self.to.write(&bytes[self.passed..]) {
                Ok(len) => {
                    (self.passed, self.bytes) = (self.passed + len, self.bytes - len);
                    if self.passed == bytes.len() {
                        self.pieces.pop_front();
                        self.passed = 0;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    *due = 0;
                    return;
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => {
                    self.pieces.clear();
                    self.ends();
                }
            }
        }
        if self.is_gone() {
            let _ = self.to.shutdown(Shutdown::Both);
        }
    }
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    /// Answers each byte with that byte.
    fn echo() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        spawn(move || {
            for stream in listener.incoming().flatten() {
                let mut to = stream.try_clone().expect("cloned");
                spawn(move || std::io::copy(&mut &stream, &mut to).map(drop));
            }
        });
        address
    }

    #[test]
    fn nothing_comes_back_before_both_delays_are_over() {
        let relay = Relay::to(echo(), Duration::from_millis(5)).expect("a relay");
        let mut stream = TcpStream::connect(relay.address()).expect("connected");
        for byte in 0..10 {
            let begin = Instant::now();
            stream.write_all(&[byte]).expect("sent");
            let mut back = [0];
            stream.read_exact(&mut back).expect("answered");
            assert_eq!(back, [byte]);
            assert!(begin.elapsed() >= Duration::from_millis(10), "{:?}", begin.elapsed());
        }
    }

    #[test]
    fn everything_comes_in_order_and_is_on_its_way_at_the_same_time() {
        let relay = Relay::to(echo(), Duration::from_millis(20)).expect("a relay");
        let stream = TcpStream::connect(relay.address()).expect("connected");
        let sent: Vec<u8> = (0..4u32 << 20).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        let (mut to, bytes, begin) = (stream.try_clone().expect("cloned"), sent.clone(), Instant::now());
        let sender = spawn(move || to.write_all(&bytes));
        let mut back = vec![0; sent.len()];
        (&stream).read_exact(&mut back).expect("answered");
        sender.join().expect("no panic").expect("sent");
        assert!(back == sent);
        // One piece after another would take 64 times both delays.
        let one_by_one = Duration::from_millis(40) * (sent.len() / PIECE) as u32;
        assert!(begin.elapsed() < one_by_one, "{:?}", begin.elapsed());
    }

    #[test]
    fn an_end_that_hangs_up_is_seen_at_the_other_one() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let target = listener.local_addr().expect("an address");
        let relay = Relay::to(target, Duration::from_micros(100)).expect("a relay");
        let mut stream = TcpStream::connect(relay.address()).expect("connected");
        let (there, _) = listener.accept().expect("connected");
        drop(there);
        assert_eq!(stream.read(&mut [0]).expect("an end"), 0);
        drop(listener);
        let mut nobody = TcpStream::connect(relay.address()).expect("connected");
        assert!(matches!(nobody.read(&mut [0]), Ok(0) | Err(_)), "nobody is there");
    }
}
