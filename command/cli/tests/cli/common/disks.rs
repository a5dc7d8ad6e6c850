//! An image, `seawall disk` that serves it, and what its guest expects to find.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use seawall_guest::{Done, Guest, Op};
use serde_json::Value;

use super::disk::LoopDevice;
use super::{Place, Said, kill, signal, wait_for, wait_for_end};

/// Bytes of the disk.
pub const SIZE: u64 = 2 << 20;

pub struct Disks {
    pub place: Place,
    /// The file system that the image lies on, if it has one of its own.
    disk: Option<LoopDevice>,
}

/// `seawall disk`.
pub struct Backend(Child);

impl Disks {
    pub fn new() -> Self {
        let disks = Self { place: Place::new(), disk: None };
        disks.make();
        disks
    }

    /// On a file system that can lose its power. `None` where there are no loop devices.
    pub fn on_a_disk() -> Option<Self> {
        let disk = LoopDevice::in_memory(64 << 20)?;
        let made = Command::new("mkfs.ext4").arg("-q").arg(disk.path()).output().ok()?;
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let disks = Self { place: Place::new(), disk: Some(disk) };
        fs::create_dir(disks.place.file("disk")).expect("made");
        disks.attach();
        disks.make();
        fs::File::open(disks.image()).expect("opened").sync_all().expect("synced");
        Some(disks)
    }

    fn attach(&self) {
        let disk = self.disk.as_ref().expect("a disk");
        let mounted =
            Command::new("mount").arg(disk.path()).arg(self.place.file("disk")).output().expect("mount");
        assert!(mounted.status.success(), "{}", String::from_utf8_lossy(&mounted.stderr));
    }

    fn make(&self) {
        fs::write(self.image(), vec![0; SIZE as usize]).expect("made");
    }

    pub fn image(&self) -> PathBuf {
        match self.disk {
            Some(_) => self.place.file("disk/vm.img"),
            None => self.place.data.path().join("vm.img"),
        }
    }

    pub fn socket(&self) -> String {
        self.place.ram("vm.sock")
    }

    fn command(&self, more: &[&str]) -> Command {
        let image = self.image().display().to_string();
        let mut command = self.place.command(&["disk", &image, "--socket", &self.socket(), "--quiet"]);
        command.args(["--pool", self.place.pool()]).args(more);
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command
    }

    /// Something that ends by itself.
    pub fn once(&self, arguments: &[&str]) -> Said {
        let mut command = self.place.command(&["disk"]);
        command.args(arguments).args(["--pool", self.place.pool()]).stdin(Stdio::null());
        command.output().expect("seawall starts").into()
    }

    /// Serves it, and waits until that is so.
    pub fn serve(&self, more: &[&str]) -> Backend {
        self.started(self.command(more))
    }

    /// Serves it for a guest that arrives from elsewhere, with the log of another place.
    pub fn await_guest(&self, place: &Place) -> (Backend, PathBuf) {
        let (image, socket) = (self.image().display().to_string(), place.ram("arrival.sock"));
        let _ = fs::remove_file(&socket);
        let mut command = place.command(&["disk", &image, "--incoming", "--socket", &socket, "--quiet"]);
        command.args(["--pool", place.pool()]).stdin(Stdio::null()).stdout(Stdio::null());
        let child = command.spawn().expect("seawall starts");
        wait_for("the disk's socket", || Path::new(&socket).exists());
        (Backend(child), socket.into())
    }

    /// The same, to be killed at a step of its own.
    pub fn serve_and_die_at(&self, step: u64) -> Backend {
        let mut command = self.command(&[]);
        command.env("SEAWALL_DISK_DIES_AT", step.to_string());
        self.started(command)
    }

    fn started(&self, mut command: Command) -> Backend {
        let _ = fs::remove_file(self.socket());
        let child = command.spawn().expect("seawall starts");
        wait_for("the disk's socket", || Path::new(&self.socket()).exists());
        Backend(child)
    }

    pub fn guest(&self, queues: u16) -> Guest {
        Guest::connect(Path::new(&self.socket()), queues).expect("connected")
    }

    /// The image, as `status` has it.
    pub fn file(&self) -> Value {
        let status = self.place.status();
        status["files"].as_array().and_then(|files| files.first()).cloned().unwrap_or_default()
    }

    /// The host's power goes: its processes, its disk's caches; the log's medium is outside.
    pub fn cut(&mut self, backend: Backend) {
        let daemon = self.place.daemon().expect("a daemon");
        signal(daemon, "STOP");
        backend.kill();
        kill(daemon);
        wait_for_end(daemon);
        let copy = self.disk.as_ref().expect("a disk").copy();
        wait_for("the disk to be free", || {
            Command::new("umount").arg(self.place.file("disk")).output().expect("umount").status.success()
        });
        self.disk = Some(copy);
        self.attach();
        self.place.in_memory().iter().for_each(|path| fs::remove_file(path).expect("removed"));
    }

    /// Brings what the log has to the image.
    #[track_caller]
    pub fn recover(&self) {
        self.place.seawall(&["recover", "--replay", "--pool", self.place.pool()]).succeeds();
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        if self.disk.is_some() {
            if let Some(daemon) = self.place.daemon() {
                kill(daemon);
            }
            let _ = Command::new("umount").arg("--lazy").arg(self.place.file("disk")).output();
        }
    }
}

/// A test that fails leaves nothing behind.
impl Drop for Backend {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Backend {
    /// As systemd ends it.
    pub fn ends(mut self) {
        signal(self.0.id().into(), "TERM");
        let status = self.0.wait().expect("reaped");
        assert!(status.success(), "{status}");
    }

    pub fn kill(mut self) {
        self.0.kill().expect("killed");
        self.0.wait().expect("reaped");
    }

    /// It was killed, and did not fail.
    pub fn died(mut self) {
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(self.0.wait().expect("reaped").signal(), Some(9));
    }
}

/// What the disk has, as far as the guest knows.
pub struct Model {
    bytes: Vec<u8>,
    rng: fastrand::Rng,
}

impl Model {
    pub fn new(seed: u64) -> Self {
        Self { bytes: vec![0; SIZE as usize], rng: fastrand::Rng::with_seed(seed) }
    }

    /// Any request.
    pub fn next(&mut self) -> Op {
        let sectors = self.rng.u64(1..=128);
        let at = self.rng.u64(..SIZE / 512 - sectors) * 512;
        self.op(at, sectors as u32 * 512)
    }

    /// So many requests, one after another, each of which must be answered rightly.
    #[track_caller]
    pub fn work(&mut self, guest: &mut Guest, requests: usize) {
        for _ in 0..requests {
            let op = self.next();
            let found = guest.ask(op.clone()).unwrap_or_else(|e| panic!("{op:?}: {e}"));
            self.check(&op, &found);
        }
    }

    fn op(&mut self, at: u64, len: u32) -> Op {
        match self.rng.u32(..10) {
            0 => Op::Flush,
            1 => Op::Discard(at, len),
            2 => Op::Zeros(at, len),
            3..=5 => Op::Read(at, len as usize),
            _ => {
                let mut bytes = vec![0; len as usize];
                self.rng.fill(&mut bytes);
                Op::Write(at, bytes)
            }
        }
    }

    /// So many that do not touch each other: a guest has no others under way at once.
    pub fn burst(&mut self, count: u64) -> Vec<Op> {
        let part = SIZE / count;
        (0..count)
            .map(|i| {
                let sectors = self.rng.u64(1..=128);
                let at = part * i + self.rng.u64(..part / 512 - sectors) * 512;
                self.op(at, sectors as u32 * 512)
            })
            .collect()
    }

    /// A read is right; bytes that were written are there from now on.
    pub fn check(&mut self, op: &Op, found: &[u8]) {
        match op {
            Op::Read(at, len) => assert!(self.bytes[*at as usize..][..*len] == *found, "read at {at}"),
            Op::Write(at, bytes) => self.bytes[*at as usize..][..bytes.len()].copy_from_slice(bytes),
            Op::Discard(at, len) | Op::Zeros(at, len) => self.bytes[*at as usize..][..*len as usize].fill(0),
            Op::Flush | Op::Id => {}
        }
    }

    /// A burst's answers, in whatever order they came.
    pub fn apply(&mut self, burst: &[Op], answers: &[Done]) {
        let mut slots: Vec<u16> = answers.iter().map(|done| done.slot).collect();
        slots.sort_unstable();
        assert_eq!(slots, (0..burst.len() as u16).collect::<Vec<_>>(), "each has one answer");
        for done in answers {
            assert_eq!(done.status, 0, "{:?}", burst[usize::from(done.slot)]);
            self.check(&burst[usize::from(done.slot)], &done.data);
        }
    }

    /// All of the disk is what it should be.
    pub fn check_all(&mut self, guest: &mut Guest) {
        for at in (0..SIZE).step_by(64 << 10) {
            let op = Op::Read(at, 64 << 10);
            let found = guest.ask(op.clone()).expect("read");
            self.check(&op, &found);
        }
    }

    /// The file has what the guest expects.
    #[track_caller]
    pub fn compare(&self, image: &Path) {
        let found = fs::read(image).expect("read");
        assert_eq!(
            found.len(),
            self.bytes.len(),
            "{}",
            String::from_utf8_lossy(&found[..found.len().min(600)])
        );
        let wrong = found.iter().zip(&self.bytes).position(|(found, wanted)| found != wanted);
        assert_eq!(wrong, None, "{:?}", wrong.map(|at| (&found[at..at + 8], &self.bytes[at..at + 8])));
    }

    /// True if the file has what the guest expects.
    pub fn is(&self, image: &Path) -> bool {
        fs::read(image).expect("read") == self.bytes
    }
}
