//! Encrypted connections between real ends: who is let in, what each end says of what is wrong, and what it costs nobody
//! else.

use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::net::sockopt;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use seawall_keeper::guests::Limits;
use seawall_keeper::keeper::{Keeper, Options};
use seawall_keeper::log::{Harden, Refused};
use seawall_keeper::peer::{Peer, PeerError};
use seawall_keeper::server::{Server, Stop};
use seawall_keeper::stream::Stream;
use seawall_keeper::tls::making::{self, For, MakeError, Validity};
use seawall_keeper::transport::Transport;
use seawall_keeper::wire::Wire;
use seawall_media::LINE;
use seawall_wire::keeper::{Epoch, Frame, Kind, Position, Refusal};

const LOG: [u8; 16] = [7; 16];
const IMAGE: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(10);
const DAY: i64 = 86_400;

/// A CA, and what it signed.
struct Authority(tempfile::TempDir);

impl Authority {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        making::ca(directory.path(), Validity::days(100), false).expect("a CA");
        Self(directory)
    }

    fn keeper(&self) -> PathBuf {
        self.sign(&For::Keeper(vec!["127.0.0.1".into(), "localhost".into()]), Validity::days(10), false)
    }

    fn owner(&self, name: &str) -> PathBuf {
        self.sign(&For::Owner(name.into()), Validity::days(10), false)
    }

    fn sign(&self, whose: &For, validity: Validity, renew: bool) -> PathBuf {
        making::certificate(self.0.path(), whose, validity, renew).expect("signed")
    }
}

/// Seconds since 1970.
fn now() -> i64 {
    std::time::UNIX_EPOCH.elapsed().expect("after 1970").as_secs() as i64
}

struct Running {
    address: String,
    stop: Stop,
    thread: JoinHandle<Result<(), Refused>>,
    directory: tempfile::TempDir,
}

fn run(tls: Option<&Path>) -> Running {
    run_in(tempfile::tempdir().expect("a directory"), tls, Limits::default())
}

fn run_in(directory: tempfile::TempDir, tls: Option<&Path>, limits: Limits) -> Running {
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
    fn end(self) -> tempfile::TempDir {
        self.stop.stop();
        self.thread.join().expect("joined").expect("closed");
        self.directory
    }

    fn port(&self) -> u16 {
        self.address.parse::<SocketAddr>().expect("an address").port()
    }

    /// Connects and asks for a log, which is made.
    fn ask(&self, transport: &Transport) -> Result<Peer, PeerError> {
        let mut peer = Peer::connect(&self.address, transport, PATIENCE)?;
        peer.greet(LOG, Some(IMAGE), None)?;
        Ok(peer)
    }

    fn refuses(&self, transport: &Transport, words: &[&str]) {
        let error = self.ask(transport).err().expect("refused").to_string();
        for word in words {
            assert!(error.contains(word), "{word:?} is not in {error:?}");
        }
    }
}

/// Lets this process have so many files open.
fn more_files(wanted: u64) {
    let now = getrlimit(Resource::Nofile);
    if now.current.is_some_and(|current| current < wanted) {
        setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: now.maximum }).expect("allowed");
    }
}

fn tls(directory: &Path) -> Transport {
    Transport::Tls(directory.into())
}

fn epoch(counter: u64) -> Epoch {
    Epoch { counter, writer: 5 }
}

// Holds: R21
#[test]
fn a_log_is_written_and_read_by_its_owner_and_by_nobody_else() {
    let ca = Authority::new();
    let keeper = run(Some(&ca.keeper()));
    let (owner, other) = (tls(&ca.owner("db1")), tls(&ca.owner("db2")));
    let mut peer = keeper.ask(&owner).expect("its owner");
    peer.promise(epoch(1), None).expect("the first");
    peer.begin().expect("begun");
    let bytes = vec![9; 300 << 10];
    peer.piece(4096, &bytes).expect("sent");
    peer.complete(1).expect("complete");
    let mut image = vec![0; IMAGE as usize];
    peer.fetch(|at, bytes| image[at as usize..][..bytes.len()].copy_from_slice(bytes)).expect("the image");
    assert_eq!((image[4095], image[4096], image[4096 + bytes.len()]), (0, 9, 0));
    assert!(image[4096..][..bytes.len()] == bytes);
    // Whoever owns none of it, whether it asks, fences, makes or looks.
    let refused = keeper.ask(&other).err().expect("another's");
    assert!(matches!(refused, PeerError::Refused { refusal: Some(Refusal::Forbidden), .. }), "{refused}");
    assert!(
        refused.to_string().contains("owner db1") && refused.to_string().contains("owner db2"),
        "{refused}"
    );
    let logs = |transport: &Transport| {
        let peer = Peer::connect(&keeper.address, transport, PATIENCE);
        peer.and_then(|mut peer| peer.report()).expect("a report").logs
    };
    assert_eq!((logs(&owner)[0].owner.as_str(), logs(&other).len()), ("db1", 0));
    // The keeper's own certificate looks at everything and owns nothing.
    let keepers = tls(&ca.0.path().join("keeper-127.0.0.1"));
    assert_eq!(logs(&keepers).len(), 1);
    keeper.refuses(&keepers, &["a keeper's, and a keeper owns no log"]);
    // It is remembered, and another certificate of the same name is as good.
    let directory = keeper.end();
    let keeper = run_in(directory, Some(&ca.0.path().join("keeper-127.0.0.1")), Limits::default());
    fs::remove_dir_all(ca.0.path().join("owner-db1")).expect("lost");
    keeper.refuses(&other, &["owner db1"]);
    drop(keeper.ask(&tls(&ca.owner("db1"))).expect("its owner, on another host"));
    // Nor is it anybody's in clear text.
    let keeper = run_in(keeper.end(), None, Limits::default());
    keeper.refuses(&Transport::Near, &["owner db1", "no owner (clear text)"]);
    keeper.end();
}

// Holds: R21
#[test]
fn what_a_certificate_lacks_is_said_at_both_ends() {
    let (ca, foreign) = (Authority::new(), Authority::new());
    let files = ca.keeper();
    let keeper = run(Some(&files));
    let owner = tls(&ca.owner("db1"));
    keeper.refuses(&tls(&foreign.owner("db1")), &["was not signed by the CA", "ca.crt"]);
    // Of this CA's keepers, but not of its owners.
    let stranger = foreign.owner("db2");
    fs::copy(ca.0.path().join("ca.crt"), stranger.join("ca.crt")).expect("copied");
    keeper
        .refuses(&tls(&stranger), &["does not trust the CA that signed this host's certificate", "tls.crt"]);
    // By another name.
    let name = format!("localhost.localdomain:{}", keeper.port());
    if let Err(error) = Peer::connect(&name, &owner, PATIENCE) {
        let error = error.to_string();
        let is_unknown =
            error.contains("not for localhost.localdomain") && error.contains("127.0.0.1 and localhost");
        assert!(is_unknown || error.contains("lookup"), "{error}");
    }
    let named = run(Some(&ca.sign(&For::Keeper(vec!["k1.example".into()]), Validity::days(1), false)));
    named.refuses(&owner, &["is for k1.example, not for 127.0.0.1", "seawall keeper cert keeper"]);
    named.end();
    // A keeper whose certificate is an owner's.
    let owners = run(Some(&ca.owner("db3")));
    owners.refuses(&owner, &["was made for another purpose"]);
    owners.end();
    keeper.ask(&owner).expect("what is right is let in");
    keeper.end();
}

// Holds: R21
#[test]
fn one_that_is_not_valid_now_is_named_with_both_times() {
    let ca = Authority::new();
    let keeper = run(Some(&ca.keeper()));
    let whose = For::Owner("db1".into());
    let past = Validity { from: now() - 9 * DAY, until: now() - 3 * DAY };
    let files = ca.sign(&whose, past, false);
    keeper.refuses(&tls(&files), &["tls.crt: it is valid from", "Z until 20", "--renew", "set the clock"]);
    let future = Validity { from: now() + DAY, until: now() + 3 * DAY };
    ca.sign(&whose, future, true);
    keeper.refuses(&tls(&files), &["tls.crt: it is valid from"]);
    ca.sign(&whose, Validity::days(10), true);
    drop(keeper.ask(&tls(&files)).expect("renewed"));
    let directory = keeper.end();
    // The keeper's own: it was good at its start, and each connection looks anew.
    let keepers = For::Keeper(vec!["127.0.0.1".into()]);
    let keeper = run_in(directory, Some(&ca.0.path().join("keeper-127.0.0.1")), Limits::default());
    ca.sign(&keepers, past, true);
    keeper.refuses(&tls(&files), &["its log says why"]);
    ca.sign(&keepers, Validity::days(10), true);
    drop(keeper.ask(&tls(&files)).expect("renewed"));
    keeper.end();
}

// Holds: R21
#[test]
fn who_speaks_something_else_learns_what_is_spoken() {
    let ca = Authority::new();
    let (clear, encrypted) = (run(None), run(Some(&ca.keeper())));
    let owner = tls(&ca.owner("db1"));
    clear.refuses(&owner, &["does not speak TLS", "started without --tls"]);
    encrypted.refuses(&Transport::Near, &["speaks TLS only", "--tls"]);
    let mut stream = TcpStream::connect(&encrypted.address).expect("connected");
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("sent");
    assert_eq!(stream.read(&mut [0; 8]).unwrap_or(0), 0, "no answer to that");
    clear.ask(&Transport::Near).expect("clear text");
    encrypted.ask(&owner).expect("TLS");
    // A log that was made in clear text is nobody's, and no certificate makes it somebody's.
    let keeper = run_in(clear.end(), Some(&ca.0.path().join("keeper-127.0.0.1")), Limits::default());
    keeper.refuses(&owner, &["no owner (clear text)"]);
    keeper.end();
    encrypted.end();
}

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
    let mut together = false;
    for _ in 0..2000 {
        stream.send_all(&[ask, ask].concat()).expect("sent");
        let mut heard = 0;
        let begin = Instant::now();
        while heard < 2 {
            assert!(begin.elapsed() < PATIENCE, "no answer");
            let mut line = [0; LINE];
            match Wire::read(&stream, &mut line) {
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
        if together {
            break;
        }
    }
    assert!(together, "two answers never came together");
    keeper.end();
}

/// Carries bytes between a keeper and who connects here, until it is told to stand still.
fn relay(to: &str) -> (String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (address, stands) =
        (listener.local_addr().expect("bound").to_string(), Arc::new(AtomicBool::new(false)));
    let (to, still) = (to.to_owned(), Arc::clone(&stands));
    std::thread::spawn(move || {
        let (near, _) = listener.accept().expect("somebody");
        let far = TcpStream::connect(to).expect("connected");
        let back = (far.try_clone().expect("again"), near.try_clone().expect("again"));
        std::thread::spawn(move || std::io::copy(&mut &back.0, &mut &back.1));
        let mut bytes = vec![0; 64 << 10];
        while !still.load(SeqCst) {
            let Ok(read @ 1..) = (&near).read(&mut bytes) else { return };
            (&far).write_all(&bytes[..read]).expect("sent");
        }
        // Both ends stay open, and nothing moves.
        std::thread::sleep(PATIENCE);
        let _ = near.shutdown(std::net::Shutdown::Both);
    });
    (address, stands)
}

/// A stall is bounded by TLS as it is in clear text, and what was sent in pieces arrives whole.
#[test]
fn a_keeper_that_takes_nothing_is_lost_and_what_is_larger_than_a_buffer_arrives_whole() {
    let ca = Authority::new();
    let keeper = run(Some(&ca.keeper()));
    let owner = tls(&ca.owner("db1"));
    let (address, stands) = relay(&keeper.address);
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
    stands.store(true, SeqCst);
    let lost = (0..200).find_map(|_| stream.send_all(&piece).err()).expect("it takes no more");
    assert!(lost.to_string().contains("takes no more"), "{lost}");
    drop(stream);
    keeper.end();
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

#[test]
fn keys_are_their_owners_and_nothing_is_replaced_unasked() {
    let ca = Authority::new();
    let path = ca.0.path();
    let mode = |path: &Path| fs::metadata(path).expect("there").permissions().mode() & 0o777;
    let owner = ca.owner("db1");
    for (path, bits) in [(path.join("ca.key"), 0o600), (owner.join("tls.key"), 0o600), (owner.clone(), 0o700)]
    {
        assert_eq!(mode(&path), bits, "{}", path.display());
    }
    let (key, root) =
        (fs::read(owner.join("tls.key")).expect("read"), fs::read(path.join("ca.crt")).expect("read"));
    let whose = For::Owner("db1".into());
    let days = Validity::days(10);
    let again = making::certificate(path, &whose, days, false);
    assert!(matches!(again, Err(MakeError::Exists(_))), "{again:?}");
    assert!(matches!(making::ca(path, days, false), Err(MakeError::Exists(_))));
    let nobody = making::certificate(path, &For::Owner("db9".into()), days, true);
    assert!(matches!(nobody, Err(MakeError::Nothing(_))), "{nobody:?}");
    let late = making::certificate(path, &For::Owner("db8".into()), Validity::days(200), false);
    assert!(matches!(late, Err(MakeError::Outlives { .. })), "{late:?}");
    let empty = tempfile::tempdir().expect("a directory");
    let orphan = making::certificate(empty.path(), &whose, days, false);
    assert!(matches!(orphan, Err(MakeError::NoCa(_))), "{orphan:?}");
    for name in ["", "a/b", ".hidden", "a b", "ä", &"x".repeat(65)] {
        let bad = making::certificate(path, &For::Owner(name.into()), days, false);
        assert!(matches!(bad, Err(MakeError::Owner(_))), "{name}: {bad:?}");
    }
    for name in ["", "k1:7700", "../k", "k 1", "k1.", "*."] {
        let bad = making::certificate(path, &For::Keeper(vec![name.into()]), days, false);
        assert!(matches!(bad, Err(MakeError::Host(_))), "{name}: {bad:?}");
    }
    assert_eq!(fs::read(owner.join("tls.key")).expect("read"), key, "nothing was changed");
    // The CA is renewed: what it signed stays good, and it signs on.
    making::ca(path, Validity::days(300), true).expect("renewed");
    assert_ne!(fs::read(path.join("ca.crt")).expect("read"), root);
    let keeper = run(Some(&ca.sign(&For::Keeper(vec!["127.0.0.1".into()]), Validity::days(200), false)));
    keeper.ask(&tls(&owner)).expect("by the former certificate of the CA");
    // A renewed one keeps the names, and its key.
    let files = path.join("keeper-127.0.0.1");
    let (former, key) =
        (fs::read(files.join("tls.crt")).expect("read"), fs::read(files.join("tls.key")).expect("read"));
    ca.sign(&For::Keeper(vec!["127.0.0.1".into()]), Validity::days(250), true);
    assert_ne!(fs::read(files.join("tls.crt")).expect("read"), former);
    assert_eq!(fs::read(files.join("tls.key")).expect("read"), key);
    keeper.ask(&tls(&owner)).expect("by the new one");
    // What others can read is no secret.
    fs::set_permissions(owner.join("tls.key"), fs::Permissions::from_mode(0o644)).expect("set");
    keeper.refuses(&tls(&owner), &["tls.key", "chmod 600"]);
    fs::remove_file(owner.join("tls.key")).expect("removed");
    keeper.refuses(&tls(&owner), &["tls.key", "seawall keeper cert"]);
    fs::write(owner.join("tls.key"), "rubbish").expect("written");
    fs::set_permissions(owner.join("tls.key"), fs::Permissions::from_mode(0o600)).expect("set");
    keeper.refuses(&tls(&owner), &["tls.key"]);
    keeper.end();
}
