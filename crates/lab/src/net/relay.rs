//! A way to another host that takes its time: every byte is passed on so much later than it came, in order, in both directions.
//!
//! A stand-in for a network's delay where the kernel has none to offer (netem). Two threads for each direction of a
//! connection: one notes when bytes came, the other one waits until they are due. So a delay takes nothing of the
//! bandwidth, and nothing overtakes. What waits sleeps: it is late by what this machine takes to wake somebody, which
//! adds to the delay, as another hop would. What a round trip really takes is measured on the same way ([`super::ping()`]).

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::spawn;
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// Bytes that are passed on at once, and how many such pieces may be on their way: 64 MiB.
const PIECE: usize = 64 << 10;
const PIECES: usize = 1024;

/// A way to somewhere. Connections that are open when it is dropped stay until either end closes them.
pub struct Relay {
    address: SocketAddr,
    over: Arc<AtomicBool>,
}

/// Bytes, and when they are due, on the monotonic clock in nanoseconds.
type Piece = (u64, Vec<u8>);

impl Relay {
    /// The way to this address, in which each direction takes so long. It begins at this host's loopback.
    ///
    /// # Errors
    /// Of bind(2).
    pub fn to(target: SocketAddr, delay: Duration) -> Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("listen for a relay")?;
        let (address, over) = (listener.local_addr()?, Arc::new(AtomicBool::new(false)));
        let told = Arc::clone(&over);
        spawn(move || {
            for came in listener.incoming().flatten() {
                if told.load(Relaxed) {
                    return;
                }
                // A target that is not there is one that hangs up: so it looks from here.
                if let Ok(target) = TcpStream::connect(target) {
                    let _ = join(came, target, delay);
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

fn join(a: TcpStream, b: TcpStream, delay: Duration) -> Result<()> {
    for (from, to) in [(a.try_clone()?, b.try_clone()?), (b, a)] {
        to.set_nodelay(true)?;
        let (sender, receiver) = sync_channel(PIECES);
        spawn(move || note(from, &sender, delay.as_nanos() as u64));
        spawn(move || pass_on(to, &receiver));
    }
    Ok(())
}

/// Notes when bytes came, until their end.
fn note(mut from: TcpStream, pieces: &SyncSender<Piece>, delay_ns: u64) {
    let mut bytes = vec![0; PIECE];
    while let Ok(len @ 1..) = from.read(&mut bytes) {
        if pieces.send((now_ns() + delay_ns, bytes[..len].to_vec())).is_err() {
            break;
        }
    }
    // Whoever wrote to it is told that nobody reads any more.
    let _ = from.shutdown(Shutdown::Read);
}

/// Passes bytes on when they are due.
fn pass_on(mut to: TcpStream, pieces: &Receiver<Piece>) {
    // Fifty microseconds otherwise, for whoever asks for less exactness.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZero::new(1));
    while let Ok((due_ns, bytes)) = pieces.recv() {
        wait_until(due_ns);
        if to.write_all(&bytes).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

fn wait_until(due_ns: u64) {
    let due = Timespec { tv_sec: (due_ns / 1_000_000_000) as i64, tv_nsec: (due_ns % 1_000_000_000) as i64 };
    // A signal wakes it early.
    while now_ns() < due_ns {
        let _ = rustix::thread::clock_nanosleep_absolute(ClockId::Monotonic, &due);
    }
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
