//! A database of one file, which a test feeds.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use nix::libc;
use seawall_core::file::Slot;
use seawall_media::{Region, process};
use seawall_wire::shm::Shm;

use super::{Place, Said, child, is_root, kill, wait_for, wait_for_end};

/// A database that writes what it is fed, and syncs every block: its log is `x-wal`.
pub struct Writer {
    pub run: Child,
    blocks: u64,
    file: PathBuf,
}

impl Writer {
    pub const PROGRAM: [&str; 6] =
        ["dd", "of=x-wal", "bs=4096", "iflag=fullblock", "oflag=dsync", "status=none"];

    pub fn start(place: &Place) -> Self {
        Self::start_by(place, place.run_command(&Self::PROGRAM))
    }

    /// Without the right to be asked before a file is opened, which only root has.
    pub fn start_less_privileged(place: &Place) -> Self {
        let run = place.run_command(&Self::PROGRAM);
        if !is_root() {
            return Self::start_by(place, run);
        }
        let mut command = Command::new("setpriv");
        command.args(["--bounding-set", "-sys_admin", "--inh-caps", "-sys_admin"]);
        command.arg(run.get_program()).args(run.get_args());
        command.env_remove("LD_PRELOAD").current_dir(place.data.path());
        Self::start_by(place, command)
    }

    pub fn start_by(place: &Place, run: Command) -> Self {
        Self::start_on(place, run, "x-wal")
    }

    /// The same of another file, which the command names.
    pub fn start_on(place: &Place, mut run: Command, file: &str) -> Self {
        run.stdin(Stdio::piped()).stderr(Stdio::piped());
        Self { run: run.spawn().expect("seawall starts"), blocks: 0, file: place.file(file) }
    }

    /// Writes blocks and waits until the sync of the last one is acknowledged.
    #[track_caller]
    pub fn write(&mut self, blocks: u64) {
        for _ in 0..blocks {
            self.blocks += 1;
            let block = [self.blocks as u8; 4096];
            self.run.stdin.as_mut().expect("piped").write_all(&block).expect("the writer lives");
            let end = self.blocks * 4096;
            wait_for("a block", || fs::metadata(&self.file).is_ok_and(|m| m.len() >= end));
        }
        // It is there before its sync is acknowledged.
        wait_for("the last block's sync", || self.asks_for_more());
    }

    /// True if the program waits for its input: it does so when its last write, which syncs, has returned. One that has ended, or
    /// that may not be looked at, is not waited for.
    fn asks_for_more(&self) -> bool {
        let name = |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        // Wherever below the run it is, and in whatever namespace.
        let program = process::tree(self.run.id()).into_iter().find(|pid| name(pid).trim_end() == "dd");
        let doing = program.map(|pid| fs::read_to_string(format!("/proc/{pid}/syscall")));
        doing.and_then(Result::ok).is_none_or(|call| call.starts_with(&format!("{} 0x0 ", libc::SYS_read)))
    }

    /// Writes while so many daemons are killed and replaced, five blocks before and after each.
    pub fn outlives(&mut self, daemons: usize, place: &Place) {
        for _ in 0..daemons {
            self.write(5);
            let daemon = place.daemon().expect("a daemon");
            kill(daemon);
            self.write(5);
            wait_for("another daemon", || place.daemon().is_some_and(|pid| pid != daemon));
        }
        self.write(5);
    }

    /// How many blocks are in its file, each of which must be what it wrote there.
    pub fn found(place: &Place) -> usize {
        Self::found_in(place, "x-wal")
    }

    /// The same of another file.
    pub fn found_in(place: &Place, file: &str) -> usize {
        let bytes = fs::read(place.file(file)).expect("the file");
        assert!(bytes.chunks(4096).zip(1u8..).all(|(block, n)| block.iter().all(|byte| *byte == n)));
        bytes.len() / 4096
    }

    /// Process id of the program that writes.
    pub fn pid(&self) -> u32 {
        child(self.run.id(), "dd")
    }

    /// From now on it is as if a sync of each of its files had failed.
    pub fn fail_syncs(program: u32) {
        let maps = fs::read_to_string(format!("/proc/{program}/maps")).expect("the program lives");
        let memory =
            maps.split_whitespace().find(|word| word.starts_with("/dev/shm/seawall-")).expect("a client");
        let file = fs::OpenOptions::new().read(true).write(true).open(memory).expect("open");
        let len = file.metadata().expect("a size").len();
        let shm = Shm::open(Region::map(&file, len, false).expect("a mapping")).expect("run-time memory");
        Slot::all(&shm).for_each(Slot::distrust);
    }

    /// Ends its input, and so the program and the run.
    pub fn finish(mut self) -> Said {
        drop(self.run.stdin.take());
        self.run.wait_with_output().expect("the run ends").into()
    }
}

/// Kills the run, the daemon and the program, in this order.
pub fn kill_everything(place: &Place, mut writer: Writer) {
    let (program, daemon) = (writer.pid(), place.daemon().expect("a daemon"));
    kill(writer.run.id().into());
    kill(daemon);
    kill(program.into());
    writer.run.wait().expect("reaped");
    wait_for_end(program.into());
    wait_for_end(daemon);
}
