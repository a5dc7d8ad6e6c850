//! Control messages: a real daemon in this process, and a peer that says anything.
//!
//! What must hold: every message is answered, or its connection ended, within seconds; a status is still to be
//! had afterwards; nothing is changed outside the scratch directory. In: a list of messages, each with bytes
//! and descriptors that fit or do not.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread::JoinHandle;

use rustix::fs::FlockOperation;
use seawall_daemon::{net, place, status};
use seawall_wire::message::{Kind, MAGIC, MESSAGE_MAX, Reply, Request};
use serde_json::json;
use zerocopy::{FromBytes, IntoBytes};

use crate::daemon::PATIENCE;
use crate::input::Input;
use crate::{daemon, scratch};

const MESSAGES: usize = 40;
const KINDS: [Kind; 8] = [
    Kind::Hello,
    Kind::Register,
    Kind::SyncFile,
    Kind::Status,
    Kind::Drain,
    Kind::AddRoot,
    Kind::Stop,
    Kind::Enter,
];

static SCENE: LazyLock<Mutex<Scene>> = LazyLock::new(|| Mutex::new(Scene::new()));

/// A scratch directory and a daemon that serves.
struct Scene {
    dir: PathBuf,
    pool: PathBuf,
    things: Vec<OwnedFd>,
    daemon: Option<JoinHandle<()>>,
}

/// The target.
pub fn target(bytes: &[u8]) {
    let mut scene = SCENE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut input = Input::new(bytes);
    let mut connection = None;
    for _ in 0..MESSAGES {
        if input.is_empty() {
            break;
        }
        if connection.is_none() || input.u8().is_multiple_of(4) {
            // First the old one: it would keep its daemon.
            drop(connection.take());
            connection = Some(scene.connect());
        }
        let told = connection.as_ref().map(|socket| scene.say(socket, &mut input));
        if told != Some(true) {
            connection = None;
        }
    }
    drop(connection);
    scene.assert_alive();
}

impl Scene {
    fn new() -> Self {
        let (dir, memory) = (scratch::directory("/var/tmp"), scratch::directory("/dev/shm"));
        for sub in ["pg/pg_wal", "lite"] {
            std::fs::create_dir_all(dir.join(sub)).expect("made");
        }
        let files = ["pg/PG_VERSION", "pg/pg_wal/000000010000000000000001", "lite/a.db-wal", "lite/a.db"];
        for name in files {
            std::fs::write(dir.join(name), "15\n").expect("written");
        }
        let pool = daemon::pool_in(&memory);
        let open = |name: &str| {
            let file = File::options().read(true).write(true).open(dir.join(name)).expect("opened");
            OwnedFd::from(file)
        };
        let mut things: Vec<_> = files[1..].iter().map(|name| open(name)).collect();
        things.push(File::open(&dir).expect("opened").into());
        things.push(File::open("/dev/null").expect("opened").into());
        things.push(rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC).expect("an event"));
        let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
        things.push(rustix::fs::open(&dir, flags, rustix::fs::Mode::empty()).expect("opened"));
        Self { dir, pool, things, daemon: None }
    }

    /// A connection, to a new daemon if the last one was stopped.
    fn connect(&mut self) -> OwnedFd {
        if let Some(socket) = self.daemon.as_ref().filter(|d| !d.is_finished()).and_then(|_| self.dial()) {
            return socket;
        }
        if let Some(ended) = self.daemon.take() {
            ended.join().expect("the daemon panicked");
            self.wait_for_its_threads();
        }
        self.daemon = Some(daemon::start(&self.pool));
        self.dial().expect("it listens")
    }

    /// Threads that a daemon leaves to the end of its process have the pool a little longer here.
    fn wait_for_its_threads(&self) {
        let pool = File::open(&self.pool).expect("the pool");
        let lock = || rustix::fs::flock(&pool, FlockOperation::LockExclusive);
        rustix::io::retry_on_intr(lock).expect("nobody's");
    }

    fn dial(&self) -> Option<OwnedFd> {
        let places = place::candidates(&self.pool).expect("places");
        let socket = places.iter().find_map(|place| net::connect(&place.socket).ok())?;
        rustix::net::sockopt::set_socket_timeout(
            &socket,
            rustix::net::sockopt::Timeout::Recv,
            Some(PATIENCE),
        )
        .expect("a limit");
        Some(socket)
    }

    /// Sends one message and hears the answer. False if the connection is over.
    fn say(&self, socket: &OwnedFd, input: &mut Input<'_>) -> bool {
        let message = self.message(input);
        let count = usize::from(input.u8() % 4).min(2);
        let descriptors: Vec<BorrowedFd<'_>> = (0..count).map(|_| input.pick(&self.things).as_fd()).collect();
        if message.is_empty() || net::send(socket, &message, &descriptors).is_err() {
            return false;
        }
        answered(socket)
    }

    /// A message: whole, or with a part of it wrong, or nothing but bytes.
    fn message(&self, input: &mut Input<'_>) -> Vec<u8> {
        let how = input.u8();
        if how >= 250 {
            let length = usize::from(input.u16());
            return input.bytes(length.min(MESSAGE_MAX)).to_vec();
        }
        let kind = *input.pick(&KINDS);
        let body = self.body(kind, input);
        let mut request = Request::new(kind, body.len() as u32);
        match how % 16 {
            0 => request.kind = u32::from(input.u16()),
            1 => request.body_len = input.number() as u32,
            2 => request.magic = MAGIC ^ u32::from(input.u8()) << 24,
            3 => request.reserved = 1,
            _ => {}
        }
        [request.as_bytes(), &body].concat()
    }

    fn body(&self, kind: Kind, input: &mut Input<'_>) -> Vec<u8> {
        let how = input.u8();
        if how >= 224 {
            let length = usize::from(input.u8());
            return harmless(input.bytes(length));
        }
        match kind {
            Kind::SyncFile => [u32::from(input.u8() % 8), u32::from(input.u8() % 4)]
                .iter()
                .flat_map(|word| word.to_le_bytes())
                .collect(),
            Kind::AddRoot => {
                let names = ["pg", "pg/pg_wal", "lite", "lite/a.db", "none", "lite/../pg"];
                let preset = *input.pick(&["postgres", "sqlite", "other", ""]);
                let [path, data] = [0, 1].map(|_| self.dir.join(input.pick(&names)));
                json!({ "preset": preset, "path": path, "data": data }).to_string().into_bytes()
            }
            Kind::Stop => json!({ "if_idle": how & 1 == 0 }).to_string().into_bytes(),
            _ => Vec::new(),
        }
    }

    fn assert_alive(&mut self) {
        let socket = self.connect();
        net::send(&socket, Request::new(Kind::Status, 0).as_bytes(), &[]).expect("sent");
        let reply = net::receive(&socket).expect("an answer in time").expect("an answer");
        let json = reply.bytes.get(size_of::<Reply>()..).expect("a whole reply");
        if !json.is_empty() {
            serde_json::from_slice::<status::Status>(json).expect("a status");
        }
        for at in [Path::new("/backup_label"), Path::new("/etc/backup_label")] {
            assert!(!at.exists(), "a guard outside: {}", at.display());
        }
    }
}

/// The fuzzer must not name directories of this machine: a daemon may well manage what its owner names.
fn harmless(body: &[u8]) -> Vec<u8> {
    let names_a_path = serde_json::from_slice::<serde_json::Value>(body).is_ok_and(|value| value.is_object());
    if names_a_path { b"{}".to_vec() } else { body.to_vec() }
}

fn answered(socket: &OwnedFd) -> bool {
    match net::receive(socket) {
        Ok(Some(reply)) => {
            let (head, body) = Reply::read_from_prefix(&reply.bytes).expect("a whole reply");
            assert_eq!(head.magic, MAGIC, "a reply of ours");
            assert_eq!(head.body_len as usize, body.len(), "a reply with its length");
            true
        }
        Ok(None) => false,
        Err(e) if e.kind() == io::ErrorKind::ConnectionReset => false,
        Err(e) => panic!("no answer: {e}"),
    }
}
