//! A keeper that hears anything, by two connections: real ones, to a server in this process.
//!
//! What must hold: everything is answered, or its connection ends, within seconds; the quota holds; a log of which no
//! recipe knows the name stays what it is. In: frames and bodies in any order.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;

use seawall_keeper::keeper::{Keeper, Options};
use seawall_keeper::log::Harden;
use seawall_keeper::peer::Peer;
use seawall_keeper::server::Server;
use seawall_keeper::transport::Transport;
use seawall_keeper::uuid::parse_uuid;
use seawall_wire::keeper::{Epoch, Greeting, KEEPER_VERSION, Position, State};
use zerocopy::IntoBytes as _;

use super::build::{IMAGE, message};
use crate::input::Input;
use crate::scratch;

/// An answer that takes longer is a hang.
const PATIENCE: Duration = Duration::from_secs(20);
const MESSAGES: u64 = 40;
/// Room for the log that must stay, and for two small ones.
const QUOTA: u64 = 8 * IMAGE;
/// The log that must stay. Its lower half is that of one that recipes know: frames say no more of it.
const STAYS: [u8; 16] = [1, 1, 1, 1, 1, 1, 1, 1, 77, 77, 77, 77, 77, 77, 77, 77];

static SCENE: LazyLock<Mutex<Scene>> = LazyLock::new(|| Mutex::new(Scene::new()));

struct Scene {
    keeper: Arc<Keeper>,
    address: String,
    /// What the log that must stay was at first.
    state: State,
    image: Vec<u8>,
}

/// The target.
pub fn target(bytes: &[u8]) {
    let scene = SCENE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut input = Input::new(bytes);
    let mut connections = [None, None];
    for near in 1..MESSAGES {
        if input.is_empty() {
            break;
        }
        let choice = input.u8();
        let connection = &mut connections[usize::from(choice & 1)];
        if choice >= 240 {
            *connection = None;
        }
        let stream = connection.get_or_insert_with(|| scene.connect());
        let message = message(&mut input, near / 4);
        // It ended this one, and said why.
        if stream.write_all(&message).is_err() || !take(stream) {
            *connection = None;
        }
    }
    connections.into_iter().flatten().for_each(end);
    scene.check();
}

/// Takes the answers that are there. False: it ended.
fn take(stream: &mut TcpStream) -> bool {
    stream.set_nonblocking(true).expect("set");
    let mut bytes = [0; 8 << 10];
    let stays = loop {
        match stream.read(&mut bytes) {
            Ok(0) => break false,
            Ok(_) => {}
            Err(error) => break error.kind() == std::io::ErrorKind::WouldBlock,
        }
    };
    stream.set_nonblocking(false).expect("set");
    stays
}

/// Nothing more comes: then the keeper has to end too.
fn end(mut stream: TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
    let mut bytes = [0; 8 << 10];
    loop {
        match stream.read(&mut bytes) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) => {
                assert_ne!(error.kind(), std::io::ErrorKind::WouldBlock, "neither answered nor ended");
                return;
            }
        }
    }
}

impl Scene {
    fn new() -> Self {
        let directory = scratch::directory("/dev/shm");
        let options = Options { harden: Harden::Memory, witness: false, quota: QUOTA };
        let keeper = Arc::new(Keeper::open(&directory, options).expect("a keeper"));
        let server =
            Server::bind(Arc::clone(&keeper), "127.0.0.1:0".parse().expect("an address")).expect("a port");
        let address = server.address().expect("bound").to_string();
        std::thread::spawn(move || server.run());
        let mut peer = Peer::connect(&address, &Transport::Near, PATIENCE).expect("it serves");
        peer.greet(STAYS, Some(IMAGE), None).expect("made");
        peer.promise(Epoch { counter: 2, writer: 5 }, None).expect("promised");
        peer.begin().expect("begun");
        peer.piece(4096, &[7; 8192]).expect("sent");
        peer.complete(3).expect("complete");
        let mut scene = Self { keeper, address, state: zerocopy::FromZeros::new_zeroed(), image: Vec::new() };
        (scene.state, scene.image) = scene.stays();
        assert_eq!(scene.state.position, Position { epoch: Epoch { counter: 2, writer: 5 }, number: 3 });
        scene
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("set");
        stream.set_write_timeout(Some(PATIENCE)).expect("set");
        stream
    }

    /// The log that must stay.
    fn stays(&self) -> (State, Vec<u8>) {
        let greeting = Greeting { version: KEEPER_VERSION, make: 0, log: STAYS, image: 0, keeper: [0; 16] };
        let log = self.keeper.greet(&greeting, "").expect("it is there");
        let log = log.lock().unwrap_or_else(PoisonError::into_inner);
        let mut image = vec![0; IMAGE as usize];
        let mut at = 0;
        while let Some((from, bytes)) = log.copy().stretch(at, 4096) {
            image[from as usize..][..bytes.len()].copy_from_slice(bytes);
            at = from + bytes.len() as u64;
        }
        (self.keeper.state(&log), image)
    }

    fn check(&self) {
        let (state, image) = self.stays();
        assert!(state.as_bytes() == self.state.as_bytes() && image == self.image, "another log was changed");
        let mut peer = Peer::connect(&self.address, &Transport::Near, PATIENCE).expect("it serves");
        let report = peer.report().expect("it answers");
        let used: u64 = report.logs.iter().map(|log| 2 * log.image).sum();
        assert!(used <= QUOTA && report.used == used, "{used} bytes of {QUOTA}");
        // The next recipe begins with what this one began with.
        let made = report.logs.iter().filter_map(|log| parse_uuid(&log.log)).filter(|log| *log != STAYS);
        made.for_each(|log| self.keeper.forget(log).expect("forgotten"));
    }
}
