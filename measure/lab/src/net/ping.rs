//! What a round trip takes: a block out and a line back, nothing else. What a commit on another host's memory is compared with.
//!
//! Both ends block, as most programs' ends do; or both spin, which is what the way takes alone.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::event::{PollFd, PollFlags, poll};

use crate::spread::Spread;

/// Bytes out, bytes back: a batch with one block, and its confirmation.
const OUT: usize = 8192;
const BACK: usize = 64;
const WARM_UP: usize = 100;
const PATIENCE: Duration = Duration::from_secs(5);

/// How both ends wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ends {
    Block,
    Spin,
}

/// The median of so many round trips to somebody who runs [`pong`], in microseconds.
///
/// # Errors
/// If nobody answers.
pub fn ping(to: SocketAddr, ends: Ends, times: usize) -> Result<f64> {
    let mut stream = connect(to).with_context(|| format!("cannot connect to {to} for round trips"))?;
    stream.set_nodelay(true)?;
    stream.write_all(&[ends as u8])?;
    stream.set_nonblocking(ends == Ends::Spin)?;
    let (out, mut back, mut took) = (vec![0x5a; OUT], [0; BACK], Vec::new());
    for i in 0..WARM_UP + times {
        let begin = Instant::now();
        write_all(&mut stream, &out)?;
        ensure!(read_all(&mut stream, &mut back)?, "{to} closed the connection");
        if i >= WARM_UP {
            took.push(begin.elapsed().as_secs_f64() * 1e6);
        }
    }
    Ok(Spread::of(&took).context("no round trip was measured")?.median)
}

/// The median of so many round trips to all of these, which run [`pong`], each over when `wanted` of them have answered, in
/// microseconds: what a batch of one block takes that so many keepers have to confirm, without a log. All ends block.
///
/// # Errors
/// If one of them is not reached, or hangs up.
pub fn ping_all(to: &[SocketAddr], wanted: usize, times: usize) -> Result<f64> {
    let mut streams = Vec::new();
    for at in to {
        let mut stream = connect(*at).with_context(|| format!("cannot connect to {at} for round trips"))?;
        stream.set_nodelay(true)?;
        stream.write_all(&[Ends::Block as u8])?;
        streams.push((stream, 0));
    }
    let (out, mut took) = (vec![0x5a; OUT], Vec::new());
    for i in 0..WARM_UP + times {
        let begin = Instant::now();
        for (stream, _) in &mut streams {
            stream.write_all(&out)?;
        }
        let whole = (i + 1) * BACK;
        while streams.iter().filter(|(_, heard)| *heard >= whole).count() < wanted {
            hear(&mut streams)?;
        }
        if i >= WARM_UP {
            took.push(begin.elapsed().as_secs_f64() * 1e6);
        }
    }
    Ok(Spread::of(&took).context("no round trip was measured")?.median)
}

/// Sleeps until there are answers, and takes them.
fn hear(streams: &mut [(TcpStream, usize)]) -> Result<()> {
    let mut polled: Vec<_> = streams.iter().map(|(stream, _)| PollFd::new(stream, PollFlags::IN)).collect();
    poll(&mut polled, None)?;
    let came: Vec<_> = polled.iter().map(|fd| !fd.revents().is_empty()).collect();
    for ((stream, heard), _) in streams.iter_mut().zip(came).filter(|(_, came)| *came) {
        let read = stream.read(&mut [0; BACK])?;
        ensure!(read > 0, "one of the hosts closed the connection");
        *heard += read;
    }
    Ok(())
}

/// Answers [`ping`]s on this address, for ever.
///
/// # Errors
/// Of bind(2).
pub fn pong(at: SocketAddr) -> Result<()> {
    for stream in TcpListener::bind(at).with_context(|| format!("cannot listen at {at}"))?.incoming() {
        // One at a time; whoever hangs up makes room for the next one.
        let _ = answer(stream?);
    }
    Ok(())
}

fn answer(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut how = [0];
    stream.read_exact(&mut how)?;
    stream.set_nonblocking(how == [Ends::Spin as u8])?;
    let (mut out, back) = (vec![0; OUT], [0; BACK]);
    while read_all(&mut stream, &mut out)? {
        write_all(&mut stream, &back)?;
    }
    Ok(())
}

/// It may not listen yet.
fn connect(to: SocketAddr) -> io::Result<TcpStream> {
    let begin = Instant::now();
    loop {
        match TcpStream::connect(to) {
            Err(_) if begin.elapsed() < PATIENCE => std::thread::sleep(Duration::from_millis(10)),
            connected => return connected,
        }
    }
}

/// Fills the buffer, whether the stream blocks or not. False at its end.
fn read_all(stream: &mut TcpStream, mut into: &mut [u8]) -> io::Result<bool> {
    while !into.is_empty() {
        match stream.read(into) {
            Ok(0) => return Ok(false),
            Ok(len) => into = &mut into[len..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => return Err(error),
        }
    }
    Ok(true)
}

fn write_all(stream: &mut TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(len) => bytes = &bytes[len..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::thread::spawn;

    use super::super::Relay;
    use super::*;

    #[test]
    fn a_round_trip_is_at_least_the_delays_of_its_way() {
        let free = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
        spawn(move || pong(free));
        let relay = Relay::to(free, Duration::from_millis(1)).expect("a relay");
        for ends in [Ends::Block, Ends::Spin] {
            assert!(ping(free, ends, 10).expect("answered") > 0.0);
            let through = ping(relay.address(), ends, 10).expect("answered");
            assert!(through >= 2000.0, "{ends:?}: {through} µs");
        }
        let near = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
        spawn(move || pong(near));
        let both = [near, relay.address()];
        assert!(ping_all(&both, 2, 10).expect("answered") >= 2000.0, "the slower of two");
        assert!(ping_all(&both, 1, 10).expect("answered") > 0.0);
    }
}
