//! Processes that write and sync all the time, and what was acknowledged to them.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;
use std::process::Child;

use super::{Place, cc, child, kill, wait_for, wait_for_end};

pub const PROCESSES: usize = 3;

/// Processes that write and sync all the time, and what was acknowledged to them.
pub struct Load {
    run: Child,
    ledger: PathBuf,
}

impl Load {
    /// `None` without a compiler.
    pub fn start(place: &Place) -> Option<Self> {
        Self::start_with(place, &[])
    }

    /// The same with more in its environment.
    pub fn start_with(place: &Place, environment: &[(&str, &str)]) -> Option<Self> {
        let program = cc(place, "ledger", include_str!("../programs/ledger.c"), &[])?;
        let ledger = PathBuf::from(place.ram("ledger"));
        fs::write(&ledger, [0; PROCESSES * 8]).expect("a ledger");
        let run = place
            .run_command(&[
                program.to_str().expect("text"),
                &PROCESSES.to_string(),
                ledger.to_str().expect("text"),
            ])
            .envs(environment.iter().copied())
            .spawn();
        let load = Self { run: run.expect("seawall starts"), ledger };
        load.goes_on();
        Some(load)
    }

    pub fn acknowledged(&self) -> [u64; PROCESSES] {
        let bytes = fs::read(&self.ledger).expect("a ledger");
        std::array::from_fn(|i| u64::from_le_bytes(bytes[i * 8..][..8].try_into().expect("8 bytes")))
    }

    /// Waits until each of them got further.
    #[track_caller]
    pub fn goes_on(&self) {
        self.wait_for_all_but(0);
    }

    /// Waits until all of them but so many got further.
    #[track_caller]
    pub fn wait_for_all_but(&self, missing: usize) {
        let before = self.acknowledged();
        wait_for("every process", || {
            let now = self.acknowledged();
            now.iter().zip(before).filter(|(now, before)| **now < before + 20).count() <= missing
        });
    }

    /// As a power cut does.
    pub fn kill(mut self, place: &Place) -> Killed {
        let (program, daemon) = (child(self.run.id(), "ledger"), place.daemon().expect("a daemon"));
        [u64::from(self.run.id()), daemon, program.into()].into_iter().for_each(kill);
        let _ = self.run.wait();
        wait_for_end(program.into());
        wait_for_end(daemon);
        // They die with their parent, a moment later.
        let mut before = self.acknowledged();
        wait_for("the processes", || {
            std::thread::sleep(std::time::Duration::from_millis(50));
            std::mem::replace(&mut before, self.acknowledged()) == self.acknowledged()
        });
        let inspected = place.seawall(&["inspect", place.pool(), "--json"]).json();
        let files = inspected["files"].as_array().expect("files");
        let live = std::array::from_fn(|i| {
            let is_it = |file: &&serde_json::Value| {
                file["path"].as_str().is_some_and(|path| path.ends_with(&name(i)))
            };
            files.iter().find(is_it).and_then(|file| file["live"].as_u64()).expect("a managed file")
        });
        Killed { acknowledged: self.acknowledged(), live, in_memory: place.in_memory() }
    }
}

/// What is left of processes that were killed.
pub struct Killed {
    acknowledged: [u64; PROCESSES],
    /// Writes that the disk need not have, by the log's image in memory. All before them are there: the daemon syncs files whose
    /// records are old, or which fill the log.
    live: [u64; PROCESSES],
    in_memory: Vec<PathBuf>,
}

impl Killed {
    /// As after a power cut: memory is lost, and so is what the disk need not have.
    pub fn lose_memory(&self, place: &Place) {
        self.in_memory.iter().for_each(|path| fs::remove_file(path).expect("removed"));
        for (i, live) in self.live.into_iter().enumerate() {
            let file = fs::File::options().write(true).open(place.file(&name(i))).expect("the file");
            let len = file.metadata().expect("a size").len();
            // One of them may not have been published. The first sync was real.
            let first = (len / WRITE).saturating_sub(live) + 1;
            let lost = len.saturating_sub(first * WRITE);
            file.write_all_at(&vec![0; lost as usize], len - lost).expect("rolled back");
        }
    }

    /// Every process' writes are there up to the last acknowledged one.
    #[track_caller]
    pub fn are_there(&self, place: &Place) {
        for (i, count) in self.acknowledged.into_iter().enumerate() {
            let bytes = fs::read(place.file(&name(i))).expect("a file");
            let words =
                bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
            let found =
                words.enumerate().take_while(|(at, word)| *word == *at as u64 * 8 / WRITE + 1).count() / 8;
            assert!(found as u64 >= count, "process {i}: {found} of {count} acknowledged writes");
        }
    }
}

/// Bytes of each write.
const WRITE: u64 = 64;

fn name(process: usize) -> String {
    format!("p{process}-wal")
}

impl Load {
    /// The processes that write.
    pub fn processes(&self) -> Vec<u32> {
        let parent = child(self.run.id(), "ledger");
        let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children"));
        children.expect("children").split_whitespace().map(|pid| pid.parse().expect("a pid")).collect()
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        // A test that failed leaves it running.
        if let Ok(None) = self.run.try_wait() {
            kill(child(self.run.id(), "ledger").into());
            let _ = self.run.wait();
        }
    }
}
