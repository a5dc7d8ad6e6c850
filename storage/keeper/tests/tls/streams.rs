//! What an encrypted connection carries, whoever encrypts.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use rustix::net::sockopt;
use seawall_keeper::peer::Peer;
use seawall_keeper::stream::Stream;
use seawall_keeper::wire::Wire;
use seawall_media::LINE;
use seawall_wire::keeper::{Frame, Kind, Position};

use crate::ends::{Authority, IMAGE, LOG, PATIENCE, epoch, run, tls};

/// Whoever has the kernel decrypt takes nothing but data.
#[test]
fn a_keeper_says_nothing_before_it_is_asked() {
    let ca = Authority::new();
    let keeper = run(Some(&ca.keeper()));
    let stream = tls(&ca.owner("db1")).connect(&keeper.address, PATIENCE).expect("let in");
    let socket = stream.socket();
    socket.set_read_timeout(Some(Duration::from_millis(300))).expect("set");
    let heard = socket.peek(&mut [0]);
    assert_eq!(heard.expect_err("there is nothing").kind(), ErrorKind::WouldBlock);
    keeper.end();
}

/// One that encrypts in the kernel is one like any other: the keeper does not know.
#[test]
fn whoever_encrypts_a_log_is_written_and_read() {
    let ca = Authority::new();
    let keeper = run(Some(&ca.keeper()));
    let mut peer = keeper.ask(&tls(&ca.owner("db1"))).expect("let in");
    peer.promise(epoch(1), None).expect("the first");
    peer.begin().expect("begun");
    let bytes: Vec<u8> = (0..900_u32 << 10).map(|i| (i / 3) as u8 | 1).collect();
    bytes
        .chunks(200_000)
        .enumerate()
        .for_each(|(i, part)| peer.piece(i as u64 * 200_000, part).expect("sent"));
    peer.complete(1).expect("complete");
    let mut image = vec![0; IMAGE as usize];
    peer.fetch(|at, bytes| image[at as usize..][..bytes.len()].copy_from_slice(bytes)).expect("the image");
    assert!(image[..bytes.len()] == bytes);
    let stream = peer.into_stream();
    let (is_kernels, has_tls) =
        (matches!(stream, Stream::Kernel(_)), Path::new("/proc/net/tls_stat").exists());
    assert_eq!((is_kernels, stream.shared().is_some(), stream.wears()), (has_tls, has_tls, has_tls));
    // Answers are heard whole, whoever decrypts.
    stream.socket().set_nonblocking(true).expect("set");
    let ask = Frame::new(Kind::Ask, u64::from_le_bytes([7; 8]), epoch(1)).seal();
    stream.send_all(&[ask, ask, ask].concat()).expect("sent");
    let (begin, mut heard) = (Instant::now(), 0);
    while heard < 3 {
        assert!(begin.elapsed() < PATIENCE, "no answer");
        let mut line = [0; LINE];
        match Wire::read(&stream, &mut line) {
            Ok(read) => {
                assert_eq!(read, LINE);
                assert_eq!(Frame::parse(&line).and_then(|frame| frame.kind()), Some(Kind::Ack));
                heard += 1;
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
    }
    let end = keeper.end();
    let mut line = [0; LINE];
    while !matches!(Wire::read(&stream, &mut line), Ok(0)) {
        assert!(begin.elapsed() < PATIENCE, "it is gone");
    }
    drop(end);
}

#[test]
fn what_was_taken_from_the_socket_with_something_else_is_not_slept_over() {
    let ca = Authority::new();
    let keeper = run(Some(&ca.keeper()));
    let mut peer = keeper.ask(&tls(&ca.owner("db1"))).expect("let in");
    peer.promise(epoch(1), None).expect("the first");
    peer.adopt(Position::default(), 0).expect("empty");
    let stream = peer.into_stream();
    if matches!(stream, Stream::Kernel(_)) {
        return keeper.end().close().expect("removed");
    }
    stream.socket().set_nonblocking(true).expect("set");
    assert!(!stream.has_more());
    let low = u64::from_le_bytes([7; 8]);
    let ask = Frame::new(Kind::Ask, low, epoch(1)).seal();
    // A record holds what is sent at once: both answers may come together or not, so ask until they did.
    let together = (0..2000).any(|_| {
        stream.send_all(&[ask, ask].concat()).expect("sent");
        hears_two(&stream)
    });
    assert!(together, "two answers never came together");
    keeper.end();
}

/// Hears two answers. True if they came together: the second one was taken from the socket with the first.
fn hears_two(stream: &Stream) -> bool {
    let (begin, mut heard, mut together) = (Instant::now(), 0, false);
    while heard < 2 {
        assert!(begin.elapsed() < PATIENCE, "no answer");
        let mut line = [0; LINE];
        match Wire::read(stream, &mut line) {
            Ok(read) => {
                assert_eq!(read, LINE, "a record is one answer");
                assert_eq!(Frame::parse(&line).and_then(|frame| frame.kind()), Some(Kind::Ack));
                heard += 1;
                let more = stream.has_more();
                together |= more;
                if heard == 2 {
                    assert!(!more, "there is no third one");
                }
            }
            Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
        }
        if heard == 0 {
            // Time for both.
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    together
}

/// Carries bytes between a keeper and whoever connects here, until it stalls: that is the second result.
fn relay(to: &str) -> (String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    let stalls = Arc::new(AtomicBool::new(false));
    let (to, stalled) = (to.to_owned(), Arc::clone(&stalls));
    std::thread::spawn(move || {
        let (near, _) = listener.accept().expect("somebody");
        let far = TcpStream::connect(to).expect("connected");
        let back = (far.try_clone().expect("again"), near.try_clone().expect("again"));
        std::thread::spawn(move || std::io::copy(&mut &back.0, &mut &back.1));
        let mut bytes = vec![0; 64 << 10];
        while !stalled.load(SeqCst) {
            let Ok(read @ 1..) = (&near).read(&mut bytes) else { return };
            (&far).write_all(&bytes[..read]).expect("sent");
        }
        // Both ends stay open, and nothing moves.
        std::thread::sleep(PATIENCE);
        let _ = near.shutdown(std::net::Shutdown::Both);
    });
    (address, stalls)
}

/// A stall is bounded by TLS as it is in clear text, and what was sent in pieces arrives whole.
#[test]
fn a_keeper_that_takes_nothing_is_lost_and_what_is_larger_than_a_buffer_arrives_whole() {
    let ca = Authority::new();
    let keeper = run(Some(&ca.keeper()));
    let owner = tls(&ca.owner("db1"));
    let (address, stalls) = relay(&keeper.address);
    let mut peer = Peer::connect(&address, &owner, PATIENCE).expect("connected");
    peer.greet(LOG, Some(IMAGE), None).expect("made");
    peer.promise(epoch(1), None).expect("the first");
    peer.begin().expect("begun");
    let stream = peer.into_stream();
    stream.socket().set_nonblocking(true).expect("set");
    sockopt::set_socket_send_buffer_size(stream.socket(), 4 << 20).expect("set");
    let low = u64::from_le_bytes([7; 8]);
    let frame = |kind, number| Frame::new(kind, low, epoch(1)).numbered(number, 0);
    let bytes: Vec<u8> = (0..1 << 20).map(|i: u32| (i / 7) as u8).collect();
    let piece = [&frame(Kind::Piece, 0).followed_by(1 << 20).seal(), &bytes[..]].concat();
    stream.send_all(&piece).expect("taken");
    stream.send_all(&frame(Kind::Complete, 1).seal()).expect("taken");
    let mut line = [0; LINE];
    let begin = Instant::now();
    while let Err(error) = Wire::read(&stream, &mut line) {
        assert!(error.kind() == ErrorKind::WouldBlock && begin.elapsed() < PATIENCE, "{error}");
    }
    assert_eq!(Frame::parse(&line).and_then(|frame| frame.kind()), Some(Kind::Ack));
    let mut image = vec![0; IMAGE as usize];
    let mut reader = keeper.ask(&owner).expect("let in");
    reader.fetch(|at, bytes| image[at as usize..][..bytes.len()].copy_from_slice(bytes)).expect("the image");
    assert!(image == bytes);
    stalls.store(true, SeqCst);
    let lost = (0..200).find_map(|_| stream.send_all(&piece).err()).expect("it takes no more");
    assert!(lost.to_string().contains("takes no more"), "{lost}");
    drop(stream);
    keeper.end();
}
