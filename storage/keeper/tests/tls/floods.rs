//! Connections that come to nothing: they keep nobody out, and nobody waiting.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use seawall_keeper::guests::Limits;
use seawall_keeper::peer::Peer;
use seawall_keeper::transport::Transport;
use seawall_wire::keeper::{Frame, Kind, Position};

use crate::ends::{Authority, PATIENCE, epoch, run_in, tls};

/// Lets this process have so many files open.
fn more_files(wanted: u64) {
    let now = getrlimit(Resource::Nofile);
    if now.current.is_some_and(|current| current < wanted) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: now.maximum }).expect("allowed");
    }
}

// Holds: R22
#[test]
fn a_thousand_idle_connections_and_one_byte_at_a_time_keep_nobody_out() {
    let ca = Authority::new();
    let limits = Limits { greeting: Duration::from_secs(4), ..Limits::default() };
    for files in [None, Some(ca.keeper())] {
        let owner = files.as_ref().map_or(Transport::Near, |_| tls(&ca.owner("db1")));
        let keeper = run_in(tempfile::tempdir().expect("a directory"), files.as_deref(), limits);
        let mut writer = keeper.ask(&owner).expect("before");
        writer.promise(epoch(1), None).expect("the first");
        more_files(4096);
        let idle: Vec<TcpStream> =
            (0..1000).map(|_| TcpStream::connect(&keeper.address).expect("connected")).collect();
        writer.adopt(Position::default(), 1).expect("who was there is served");
        drop(keeper.ask(&owner).expect("who comes is served"));
        // A byte at a time, of something that begins well.
        let slow = TcpStream::connect(&keeper.address).expect("connected");
        let begin = match files {
            Some(_) => vec![22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3],
            None => Frame::new(Kind::Hello, 0, epoch(1)).followed_by(48).seal().to_vec(),
        };
        let is_cut = (0..400).any(|i| {
            std::thread::sleep(Duration::from_millis(50));
            (&slow).write_all(&[begin.get(i).copied().unwrap_or(0)]).is_err()
        });
        assert!(is_cut, "it never ends");
        // All of them are gone by now, and the writer is not.
        for mut stream in idle {
            stream.set_read_timeout(Some(PATIENCE)).expect("set");
            assert!(matches!(stream.read(&mut [0]), Ok(0) | Err(_)));
        }
        writer.adopt(Position { epoch: epoch(1), number: 1 }, 2).expect("still served");
        keeper.end();
    }
}

// Holds: R23
#[test]
fn a_keeper_that_never_agrees_on_keys_is_given_up() {
    let ca = Authority::new();
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound").to_string();
    // A byte now and then: each one in time, and all of them never.
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody");
        let record = [22, 3, 3, 64, 0];
        for i in 0..200 {
            std::thread::sleep(Duration::from_millis(100));
            if stream.write_all(&[record.get(i).copied().unwrap_or(2)]).is_err() {
                return;
            }
        }
    });
    let error =
        Peer::connect(&address, &tls(&ca.owner("db1")), Duration::from_millis(600)).err().expect("given up");
    assert!(error.to_string().contains("timed out"), "{error}");
    thread.join().expect("ended");
}
