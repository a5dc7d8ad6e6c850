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

/// What `contract smoke` was asked to do.
#[derive(clap::Args)]
pub struct Options {
    /// Where the files go
    pub directory: PathBuf,
    /// Worker processes
    #[arg(long, default_value_t = 64)]
    pub processes: usize,
    /// Threads of the first process; the others have one each
    #[arg(long, default_value_t = 64)]
    pub threads: usize,
    /// How long to keep them busy
    #[arg(long, default_value_t = 4)]
    pub seconds: u64,
    /// What every plan follows from
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Kill no worker
    #[arg(long)]
    pub no_kills: bool,
}

impl Options {
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
