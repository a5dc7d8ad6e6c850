//! A keeper over real connections, on a real disk, ended cleanly or as by a kill.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use seawall_keeper::keeper::{Keeper, KeeperError, Options};
use seawall_keeper::log::{Harden, Refused};
use seawall_keeper::meta::{Member, Mode, Roster};
use seawall_keeper::peer::{Peer, PeerError};
use seawall_keeper::server::{Server, Stop};
use seawall_keeper::transport::Transport;
use seawall_keeper::turn;
use seawall_keeper::uuid::{low_half, uuid_text};
use seawall_media::block::Draft;
use seawall_media::{LINE, Region};
use seawall_wire::keeper::{Epoch, Frame, Kind, Position, Refusal};

const LOG: [u8; 16] = [7; 16];
const IMAGE: u64 = 1 << 20;
const PATIENCE: Duration = Duration::from_secs(10);

struct Running {
    address: String,
    stop: Stop,
    thread: JoinHandle<Result<(), Refused>>,
}

fn options(harden: Harden) -> Options {
    Options { harden, witness: false, quota: 16 << 20 }
}

fn run(directory: &Path, options: Options) -> Running {
    let keeper = Arc::new(Keeper::open(directory, options).expect("a keeper"));
    let server = Server::bind(keeper, "127.0.0.1:0".parse().expect("an address")).expect("a port");
    let (address, stop) = (server.address().expect("bound").to_string(), server.stop().expect("bound"));
    Running { address, stop, thread: std::thread::spawn(|| server.run()) }
}

impl Running {
    fn end(self) {
        self.stop.stop();
        self.thread.join().expect("joined").expect("closed");
    }

    fn connect(&self) -> Peer {
        Peer::connect(&self.address, &Transport::Near, PATIENCE).expect("connected")
    }
}

fn epoch(counter: u64) -> Epoch {
    Epoch { counter, writer: 5 }
}

fn at(counter: u64, number: u64) -> Position {
    Position { epoch: epoch(counter), number }
}

/// Makes batches.
struct Press(Region);

impl Press {
    fn new() -> Self {
        let file = tempfile::tempfile_in("/dev/shm").expect("a file");
        file.set_len(2 << 20).expect("room");
        Self(Region::map(&file, 2 << 20, false).expect("a mapping"))
    }

    /// A batch that fills a line with a byte.
    fn batch(&self, line: usize, byte: u8, number: u64) -> Vec<u8> {
        self.0.copy_in(line * LINE, &[byte; LINE]);
        let mut draft = Draft::begin(&self.0, (1 << 20, 64 << 10), (1536 << 10, 64));
        assert!(draft.take(line * LINE, LINE));
        let mut bytes = vec![0; draft.seal(number, number - 1, 0, low_half(LOG), LINE as u32)];
        self.0.read(1 << 20, &mut bytes);
        bytes
    }
}

fn image(peer: &mut Peer) -> Vec<u8> {
    let mut image = vec![0; IMAGE as usize];
    peer.fetch(|at, bytes| image[at as usize..][..bytes.len()].copy_from_slice(bytes)).expect("the image");
    image
}

/// A writer whose log is at batch 3: lines 1 to 3.
fn written(keeper: &Running, press: &Press) -> Peer {
    let mut peer = keeper.connect();
    let (state, _) = peer.greet(LOG, Some(IMAGE), None).expect("made");
    assert!(state.is_kept() && state.position == Position::default());
    peer.promise(epoch(1), None).expect("the first");
    peer.adopt(Position::default(), 0).expect("empty");
    for number in 1..=3 {
        let batch = press.batch(number as usize, number as u8, number);
        assert_eq!(peer.batch(number, number - 1, &batch).expect("taken"), number);
    }
    peer
}

/// As a kill leaves it: what is in the page cache is there, what was in memory is not.
fn killed(from: &Path) -> tempfile::TempDir {
    let to = tempfile::tempdir().expect("a directory");
    for entry in std::fs::read_dir(from).expect("listed") {
        let path = entry.expect("an entry").path();
        let target = to.path().join(path.file_name().expect("a name"));
        if path.is_dir() {
            std::fs::create_dir(&target).expect("made");
            for file in std::fs::read_dir(&path).expect("listed") {
                let file = file.expect("an entry").path();
                std::fs::copy(&file, target.join(file.file_name().expect("a name"))).expect("copied");
            }
        } else {
            std::fs::copy(&path, &target).expect("copied");
        }
    }
    to
}

// Holds: admin/KEEPERS#what-it-survives
#[test]
fn what_a_keeper_has_after_its_end_and_whether_it_says_so() {
    let press = Press::new();
    for (harden, is_clean, is_kept) in [
        (Harden::Affirm, true, true),
        (Harden::Affirm, false, true),
        (Harden::NoAffirm, true, true),
        (Harden::NoAffirm, false, false),
        (Harden::Memory, true, false),
        (Harden::Memory, false, false),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let keeper = run(directory.path(), options(harden));
        drop(written(&keeper, &press));
        let copy = killed(directory.path());
        keeper.end();
        let again = run(if is_clean { directory.path() } else { copy.path() }, options(harden));
        let mut peer = again.connect();
        let (state, _) = peer.greet(LOG, None, None).expect("known");
        assert_eq!(state.is_kept(), is_kept, "{harden:?}, clean: {is_clean}");
        assert_eq!(state.promised, epoch(1), "a promise is never forgotten");
        if is_kept {
            assert_eq!(state.position, at(1, 3));
            peer.promise(epoch(2), None).expect("newer");
            let image = image(&mut peer);
            assert_eq!((image[LINE], image[3 * LINE], image[4 * LINE]), (1, 3, 0));
        }
        again.end();
    }
}

#[test]
fn a_former_writer_is_refused_and_a_copy_is_brought_up_to_date() {
    let (press, directory) = (Press::new(), tempfile::tempdir().expect("a directory"));
    let keeper = run(directory.path(), options(Harden::NoAffirm));
    let mut first = written(&keeper, &press);
    let mut second = keeper.connect();
    second.greet(LOG, None, None).expect("known");
    let roster = Roster {
        acks: 1,
        members: vec![Member { id: "a".into(), address: "b:1".into(), witness: false }],
        mode: Mode::default(),
    };
    let (state, _) = second.promise(epoch(2), Some(&roster)).expect("newer");
    assert_eq!(state.position, at(1, 3));
    let refused = first.batch(4, 3, &press.batch(4, 4, 4)).expect_err("fenced");
    assert!(refused.is_fenced(), "{refused}");
    let mut again = keeper.connect();
    assert_eq!(
        again.greet(LOG, None, None).expect("known").1,
        roster,
        "who keeps it stands with the promise"
    );
    assert!(again.promise(epoch(1), None).expect_err("older").is_fenced());

    second.begin().expect("its turn");
    second.piece(5 * LINE as u64, &[5; LINE]).expect("sent");
    second.batch(8, 7, &press.batch(6, 6, 8)).expect("taken");
    second.complete(8).expect("whole");
    second.batch(9, 8, &press.batch(7, 7, 9)).expect("taken");
    let image = image(&mut second);
    assert_eq!((image[LINE], image[5 * LINE], image[6 * LINE], image[7 * LINE]), (0, 5, 6, 7));
    keeper.end();
    let keeper = run(directory.path(), options(Harden::NoAffirm));
    let mut peer = keeper.connect();
    assert_eq!(peer.greet(LOG, None, None).expect("known").0.position, at(2, 9));
    peer.promise(epoch(2), None).expect("its own");
    peer.forget().expect("gone");
    let unknown = keeper.connect().greet(LOG, None, None).expect_err("forgotten");
    assert!(matches!(unknown, PeerError::Refused { refusal: Some(Refusal::Unknown), .. }), "{unknown}");
    keeper.end();
}

#[test]
fn what_a_keeper_does_not_do_it_says() {
    let directory = tempfile::tempdir().expect("a directory");
    let keeper = run(directory.path(), options(Harden::NoAffirm));
    let refusal = |result: Result<_, PeerError>| match result.map(|_: (_, Roster)| ()) {
        Err(PeerError::Refused { refusal, .. }) => refusal,
        other => panic!("{other:?}"),
    };
    let made = keeper.connect().greet(LOG, Some(IMAGE), None);
    made.expect("made");
    assert_eq!(refusal(keeper.connect().greet(LOG, Some(2 * IMAGE), None)), Some(Refusal::Differs));
    assert_eq!(refusal(keeper.connect().greet([9; 16], Some(8 << 20), None)), Some(Refusal::Quota));
    assert_eq!(refusal(keeper.connect().greet([9; 16], Some(1), None)), Some(Refusal::Malformed));
    assert_eq!(refusal(keeper.connect().greet(LOG, None, Some([1; 16]))), Some(Refusal::Differs));
    assert!(matches!(Keeper::open(directory.path(), options(Harden::Memory)), Err(KeeperError::Taken(_))));
    let report = keeper.connect().report().expect("a report");
    assert_eq!((report.logs.len(), report.used), (1, 2 * IMAGE));
    keeper.end();
    let promise = std::fs::read_dir(directory.path()).expect("listed").filter_map(Result::ok);
    let promise = promise.map(|entry| entry.path().join("promise.json")).find(|path| path.exists());
    std::fs::write(promise.expect("one"), "{").expect("damaged");
    let damaged = Keeper::open(directory.path(), options(Harden::NoAffirm)).err().expect("damaged");
    assert!(matches!(damaged, KeeperError::Forgotten { .. }), "{damaged}");
}

/// A host without power says nothing, and a takeover asks several times.
#[test]
fn a_keeper_that_says_nothing_is_not_waited_for_once_enough_others_have_answered() {
    let directories = [(); 2].map(|()| tempfile::tempdir().expect("a directory"));
    let running = directories.each_ref().map(|directory| run(directory.path(), options(Harden::Memory)));
    let kept = running.each_ref().map(|keeper| {
        keeper.connect().greet(LOG, Some(IMAGE), None).expect("made");
        let id = keeper.connect().report().expect("answered").id;
        Member { id, address: keeper.address.clone(), witness: false }
    });
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("bound").to_string();
    let last = Member { id: "0".repeat(32), address, witness: false };
    let members: Vec<Member> = kept.into_iter().chain([last]).collect();
    let said = |acks| {
        let roster = Roster { acks, members: members.clone(), mode: Mode::default() };
        let reached = turn::reach(LOG, &roster, &Transport::Near);
        assert_eq!(reached.iter().flatten().count(), 2);
        reached[2].as_ref().err().expect("silent").to_string()
    };
    assert!(said(2).ends_with("as soon as enough others did"), "{}", said(2));
    assert!(said(3).ends_with("it did not answer in time"), "all have to confirm: {}", said(3));
    running.into_iter().for_each(Running::end);
}

// Holds: R22
#[test]
fn whoever_sends_rubbish_is_answered_or_cut_off_and_nobody_else_notices() {
    let directory = tempfile::tempdir().expect("a directory");
    let keeper = run(directory.path(), options(Harden::NoAffirm));
    let frame = |kind| Frame::new(kind, 0, epoch(1));
    let long = frame(Kind::Batch).followed_by(64).seal().to_vec();
    let rubbish = [
        b"GET / HTTP/1.1\r\nHost: keeper\r\nAccept: everything, please, and thank you\r\n\r\n".to_vec(),
        vec![0; 200],
        frame(Kind::Batch).seal().to_vec(),
        frame(Kind::Welcome).seal().to_vec(),
        [frame(Kind::Hello).followed_by(3).seal().to_vec(), vec![1, 2, 3]].concat(),
        [long.clone(), vec![0; 64]].concat(),
        long,
        Vec::new(),
    ];
    for bytes in rubbish {
        let mut stream = TcpStream::connect(&keeper.address).expect("connected");
        stream.write_all(&bytes).expect("sent");
        stream.shutdown(std::net::Shutdown::Write).expect("ended");
        let mut answer = Vec::new();
        // It may reset what it does not read to its end.
        let _ = stream.read_to_end(&mut answer);
        let line = answer.first_chunk::<LINE>();
        let kind = line.map(|line| Frame::parse(line).and_then(|frame| frame.kind()));
        assert!(matches!(kind, None | Some(Some(Kind::Refused))), "{kind:?}");
    }
    assert_eq!(keeper.connect().report().expect("it serves").logs.len(), 0);
    keeper.end();
}

#[test]
fn a_file_that_has_grown_is_written_anew_while_batches_come() {
    let (press, directory) = (Press::new(), tempfile::tempdir().expect("a directory"));
    let keeper = run(directory.path(), options(Harden::NoAffirm));
    let mut peer = written(&keeper, &press);
    // Batches of a whole buffer: some 70 MiB, four times what a file has.
    let lines = 1000;
    let mut number = 3;
    for round in 0..1200u32 {
        for line in 0..lines {
            press.0.copy_in(line * LINE, &[(round % 250) as u8 + 1; LINE]);
        }
        number += 1;
        let mut draft = Draft::begin(&press.0, (1 << 20, 128 << 10), (1536 << 10, 64));
        assert!(draft.take(0, lines * LINE));
        let mut bytes = vec![0; draft.seal(number, number - 1, 0, low_half(LOG), LINE as u32)];
        press.0.read(1 << 20, &mut bytes);
        peer.batch(number, number - 1, &bytes).expect("taken");
    }
    let wanted = image(&mut peer);
    std::thread::sleep(Duration::from_millis(500));
    peer.batch(number + 1, number, &press.batch(2000, 9, number + 1)).expect("taken");
    keeper.end();
    let file = directory.path().join(uuid_text(LOG)).join("copy");
    let bytes = std::fs::read(file).expect("there");
    let first = bytes.first_chunk().and_then(Frame::parse).expect("a frame");
    assert!(first.code > 1, "it was written anew: of use {}", first.code);
    let keeper = run(directory.path(), options(Harden::NoAffirm));
    let mut peer = keeper.connect();
    assert_eq!(peer.greet(LOG, None, None).expect("known").0.position, at(1, number + 1));
    peer.promise(epoch(2), None).expect("newer");
    let found = image(&mut peer);
    assert_eq!((&found[..2000 * LINE], found[2000 * LINE]), (&wanted[..2000 * LINE], 9));
    keeper.end();
}
