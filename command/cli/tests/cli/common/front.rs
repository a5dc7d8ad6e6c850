//! A process that reads and writes through the block cache as a front does. It gets its commands line by line, so that
//! a test says when. The library itself is not needed: it is the daemon's part that is tested with this.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::Ordering::SeqCst;

use seawall_cache::shared::{Cache, CachedFile, FromDisk, Lookup, OperationOwner};
use seawall_core::Engine;
use seawall_daemon::control::Control;
use seawall_daemon::{net, process};
use seawall_media::Region;
use seawall_wire::message::{Kind, Reply, Request, Status};
use zerocopy::IntoBytes;

pub const BLOCK: usize = 8192;

/// Tells the test program that it is to be such a process, of this pool.
const ROLE: &str = "SEAWALL_TEST_FRONT";
const ANSWER: &str = "front: ";

/// The process, as the test sees it.
pub struct Front {
    child: Child,
    tell: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Front {
    /// Starts it.
    pub fn start(pool: &Path) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command
            .args(["--exact", "common::front::front_of_the_tests", "--nocapture", "--quiet"])
            .env(ROLE, pool);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a process");
        let tell = child.stdin.take().expect("piped");
        let answers = BufReader::new(child.stdout.take().expect("piped"));
        let mut front = Self { child, tell, answers };
        assert_eq!(front.answer(), "ready");
        front
    }

    pub fn ask(&mut self, what: &str) -> String {
        writeln!(self.tell, "{what}").expect("it lives");
        self.answer()
    }

    /// Enters a file; what the daemon said.
    pub fn enter(&mut self, path: &Path) -> String {
        self.ask(&format!("enter {}", path.display()))
    }

    /// Reads a block: whether it was a hit, and its byte.
    pub fn read(&mut self, block: usize) -> (bool, u8) {
        let answer = self.ask(&format!("read {block}"));
        let (how, byte) = answer.split_once(' ').expect("two words");
        (how == "hit", byte.parse().expect("a byte"))
    }

    /// How many of the first blocks are hits.
    pub fn hits(&mut self, blocks: usize) -> usize {
        (0..blocks).filter(|block| self.read(*block).0).count()
    }

    pub fn end(self) {
        let Self { mut child, tell, answers } = self;
        drop((tell, answers));
        child.wait().expect("it ends");
    }

    pub fn kill(&mut self) {
        self.child.kill().expect("killed");
        self.child.wait().expect("reaped");
    }

    fn answer(&mut self) -> String {
        let mut line = String::new();
        loop {
            line.clear();
            assert_ne!(self.answers.read_line(&mut line).expect("it answers"), 0, "it ended");
            if let Some((_, answer)) = line.split_once(ANSWER) {
                return answer.trim().into();
            }
        }
    }
}

/// The cache's disk, if it has one.
static DISK: OnceLock<File> = OnceLock::new();

fn read_disk(at: u64, into: &mut [u8]) -> FromDisk {
    let Some(disk) = DISK.get() else { return FromDisk::NotNow };
    let mut room = vec![0; into.len() + 4096];
    let skip = room.as_ptr().align_offset(4096);
    let room = &mut room[skip..skip + into.len()];
    match disk.read_exact_at(room, at) {
        Ok(()) => {
            into.copy_from_slice(room);
            FromDisk::All
        }
        Err(_) => FromDisk::Failed,
    }
}

/// What the process has.
struct Played {
    engine: Engine,
    cache: Cache,
    owner: OperationOwner,
    file: Option<(File, CachedFile)>,
}

/// Is the process, if this one is meant.
#[test]
fn front_of_the_tests() {
    let Some(pool) = std::env::var_os(ROLE) else { return };
    let pool = Path::new(&pool);
    let mut played = hello(pool);
    println!("{ANSWER}ready");
    for line in std::io::stdin().lines() {
        let line = line.expect("a line");
        let (what, rest) = line.split_once(' ').unwrap_or((&line, ""));
        let answer = match what {
            "enter" => played.enter(pool, Path::new(rest)),
            "read" => played.read(rest.parse().expect("a number")),
            "write" => played.write(rest, true),
            "half-write" => played.write(rest, false),
            other => panic!("{other}"),
        };
        println!("{ANSWER}{answer}");
    }
    // Nothing that is left is looked at: a front ends like this too.
    std::process::exit(0);
}

fn hello(pool: &Path) -> Played {
    let (reply, descriptors) = ask(pool, Kind::Hello, None);
    let [memory, shm, zone] = descriptors.as_slice() else { panic!("a zone: {}", reply.cache_len) };
    let engine = Engine::join(&reply, Some(memory.as_fd()), Some(shm.as_fd()), None).expect("joined");
    let region = Region::map(zone, reply.cache_len, false).expect("a mapping");
    let client = engine.claim_client(std::process::id(), process::now_ns()).expect("a slot");
    let generation = engine.shm().client(client).expect("the slot").generation().load(SeqCst);
    let cache = Cache::join(region).expect("the zone").reading(read_disk);
    Played { engine, cache, owner: OperationOwner::of_client(client, generation, 1), file: None }
}

fn ask(pool: &Path, kind: Kind, file: Option<&File>) -> (Reply, Vec<std::os::fd::OwnedFd>) {
    let socket = Control::connect(pool).expect("answers").expect("a daemon");
    let file = file.map(AsFd::as_fd);
    net::send(&socket, Request::new(kind, 0).as_bytes(), file.as_slice()).expect("sent");
    let message = net::receive(&socket).expect("received").expect("a message");
    (Reply::of(&message.bytes).expect("a reply"), message.descriptors)
}

impl Played {
    fn enter(&mut self, pool: &Path, path: &Path) -> String {
        let file = File::options().read(true).write(true).open(path).expect("open");
        let (reply, descriptors) = ask(pool, Kind::Enter, Some(&file));
        let status = Status::from_u32(reply.status);
        descriptors.into_iter().for_each(|disk| _ = DISK.set(File::from(disk)));
        if status == Status::Ok {
            let reference = CachedFile { slot: reply.slot, tenant: reply.generation as u16 };
            let stat = file.metadata().expect("stat");
            assert_eq!(self.cache.find(stat.dev(), stat.ino()), Some(reference));
            self.file = Some((file, reference));
        }
        format!("{status:?}")
    }

    fn read(&self, block: usize) -> String {
        let (file, reference) = self.file.as_ref().expect("entered");
        let mut buffer = vec![0; BLOCK];
        let (how, token) = match self.cache.look_up(*reference, block as u32, &mut buffer) {
            Lookup::Hit => ("hit", None),
            Lookup::Miss(token) => {
                file.read_exact_at(&mut buffer, (block * BLOCK) as u64).expect("read");
                ("miss", token)
            }
        };
        if let Some(token) = token {
            self.cache.offer(self.owner, &token, &buffer);
        }
        // The kernel's own read may see half of a write that is under way; the cache must not.
        let is_torn = buffer.iter().any(|byte| *byte != buffer[0]);
        assert!(how == "miss" || !is_torn, "a block is torn");
        format!("{how} {}", buffer[0])
    }

    /// `BLOCK BYTE`; one that does not end is as one that is killed leaves it.
    fn write(&self, what: &str, ends: bool) -> String {
        let (block, byte) = what.split_once(' ').expect("two numbers");
        let (block, byte): (usize, u8) = (block.parse().expect("a number"), byte.parse().expect("a byte"));
        let (file, reference) = self.file.as_ref().expect("entered");
        let writing = self.cache.begin_write(self.owner, *reference, block as u32..block as u32 + 1);
        file.write_all_at(&[byte; BLOCK], (block * BLOCK) as u64).expect("written");
        if ends {
            self.cache.end_write(writing);
        }
        assert!(self.engine.shm().header().cache_zone().load(SeqCst) == self.cache.id(), "another zone");
        "done".into()
    }
}
