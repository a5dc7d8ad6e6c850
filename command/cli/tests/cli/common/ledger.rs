//! Processes that write and sync all the time, and what was acknowledged to them.

use std::fs;
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
    pub fn kill(mut self, place: &Place) -> [u64; PROCESSES] {
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
        self.acknowledged()
    }
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

/// Every process' writes are there up to the last acknowledged one.
pub fn check(place: &Place, acknowledged: [u64; PROCESSES]) {
    for (i, count) in acknowledged.into_iter().enumerate() {
        let bytes = fs::read(place.file(&format!("p{i}-wal"))).expect("a file");
        let words = bytes.chunks_exact(8).map(|word| u64::from_le_bytes(word.try_into().expect("8 bytes")));
        let found = words.enumerate().take_while(|(at, word)| *word == *at as u64 / 8 + 1).count() / 8;
        assert!(found as u64 >= count, "process {i}: {found} of {count} acknowledged writes");
    }
}
