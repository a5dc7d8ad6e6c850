//! The smoke run: many processes and threads, mixed sizes, forks and kill -9, against a model.
//!
//! * Every thread (a *worker*) owns a region of a shared file or a file of its own, and performs a
//!   [`plan`] that follows from the seed alone. Two counters in shared memory say which operation it
//!   began and which it finished.
//! * The controller kills random processes, and checks at once that each killed worker's bytes are
//!   the model's: every finished operation is there, the one it was in the middle of may be absent,
//!   whole, or cut short, as the bare kernel allows. Then it starts a successor on the same bytes.
//! * At the end every worker stops and everything must be exact.

mod control;
mod model;
mod plan;
mod progress;
mod worker;

use std::path::PathBuf;
use std::time::Duration;

/// What `contract smoke` was asked to do.
pub struct Options {
    /// Where the files go.
    pub directory: PathBuf,
    /// Worker processes.
    pub processes: usize,
    /// Threads of the first process; the others have one each.
    pub threads: usize,
    /// How long to keep them busy.
    pub duration: Duration,
    /// What every plan follows from.
    pub seed: u64,
    /// Whether workers are killed.
    pub kills: bool,
}

impl Options {
    /// Reads `DIR [--processes N] [--threads N] [--seconds S] [--seed N] [--no-kills]`.
    pub fn parse(words: &[&str]) -> Result<Options, String> {
        let [directory, rest @ ..] = words else { return Err("smoke: which directory?".to_owned()) };
        let mut options = Options {
            directory: PathBuf::from(directory),
            processes: 64,
            threads: 64,
            duration: Duration::from_secs(4),
            seed: 1,
            kills: true,
        };
        let mut words = rest.iter();
        while let Some(word) = words.next() {
            if *word == "--no-kills" {
                options.kills = false;
                continue;
            }
            let value: u64 = words
                .next()
                .and_then(|value| value.parse().ok())
                .ok_or_else(|| format!("smoke: `{word}` needs a number"))?;
            match *word {
                "--processes" => options.processes = value.max(1) as usize,
                "--threads" => options.threads = value.max(1) as usize,
                "--seconds" => options.duration = Duration::from_secs(value),
                "--seed" => options.seed = value,
                _ => return Err(format!("smoke: cannot read `{word}`")),
            }
        }
        Ok(options)
    }

    /// Threads in all processes together.
    pub fn workers(&self) -> usize {
        self.threads + self.processes - 1
    }

    /// The workers that live in `process`.
    pub fn workers_of(&self, process: usize) -> std::ops::Range<usize> {
        if process == 0 { 0..self.threads } else { self.threads + process - 1..self.threads + process }
    }
}

/// Runs it; an error names the first worker whose bytes are wrong.
pub fn run(options: &Options) -> Result<(), String> {
    let mut control = control::Control::prepare(options)?;
    let outcome = control.work();
    control.kill_all();
    outcome
}
