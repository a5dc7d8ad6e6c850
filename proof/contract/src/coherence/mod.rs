//! What is read is what was last written: by whatever calls, beside each other.
//!
//! * **Inputs.** A directory; how long; a seed; where the same directory lies behind a mount, if it is on one.
//! * **Outputs.** Exit status 0, or the first bytes that are older than they may be, with the ways of the round.
//! * **How.** A round takes two of the kernel's ways to change a file ([`writes::ALL`]) and two to look at it ([`looks::ALL`]),
//!   and uses them at random, by several threads at once, on one file. Every block has a version ([`model`]): a look must
//!   not find an older one than was acknowledged before it began. At the end, when nobody writes, every look there is must
//!   find the last one.
//! * **Not verified.** Two writers of the same bytes at once: no file system says which is the last. What a crash leaves.

/// An enum and a list of all that it has.
macro_rules! ways {
    ($($(#[$about:meta])* $way:ident),* $(,)?) => {
        /// One of them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Way {
            $($(#[$about])* $way),*
        }

        /// All.
        pub const ALL: &[Way] = &[$(Way::$way),*];
    };
}

mod files;
mod looks;
mod memory;
mod model;
mod writes;

use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use crate::context::c_path;
use fastrand::Rng;
use files::{Files, Paths};
use looks::Looker;
use memory::BLOCKS;
use model::Model;
use writes::Writer;

const ROUND: Duration = Duration::from_millis(250);
const WRITERS: u64 = 2;
const LOOKERS: u64 = 3;
/// What the name of a round's file ends with, and how its first descriptor is opened: in the log, in the log and written
/// past the kernel's cache, wanted by no preset, perhaps SQLite's.
const KINDS: [(&str, c_int); 4] = [("a-wal", 0), ("b-wal", libc::O_DSYNC), ("c-plain", 0), ("d.db", 0)];

/// What `contract coherence` was asked to do.
#[derive(clap::Args)]
pub struct Options {
    /// Where the files go
    directory: PathBuf,
    /// The same directory behind the mount
    #[arg(long)]
    behind: Option<PathBuf>,
    /// How long
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// What is done follows from it
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

/// Runs it.
pub fn run(options: &Options) -> Result<(), String> {
    let end = Instant::now() + Duration::from_secs(options.seconds);
    let mut random = Rng::with_seed(options.seed);
    let (writes, looks) = (AtomicU64::new(0), AtomicU64::new(0));
    let mut rounds = 0;
    while Instant::now() < end {
        let round = Round::new(options, rounds, &mut random);
        round.play(&mut random, &writes, &looks).map_err(|what| format!("{}: {what}", round.name()))?;
        rounds += 1;
    }
    println!("{rounds} rounds: {} looks agreed with {} writes", looks.load(Relaxed), writes.load(Relaxed));
    Ok(())
}

struct Round {
    paths: Paths,
    first_flags: c_int,
    writes: [writes::Way; 2],
    looks: [looks::Way; 2],
}

impl Round {
    fn new(options: &Options, number: u64, random: &mut Rng) -> Round {
        let (name, first_flags) = KINDS[random.usize(..KINDS.len())];
        let name = format!("coherence-{}-{number}-{name}", options.seed);
        // A file in the log that somebody opens behind the mount leaves the log: another test's.
        let behind = options.behind.as_ref().filter(|_| !name.ends_with("-wal"));
        let paths = Paths {
            file: c_path(&options.directory.join(&name)),
            side: options.directory.join(format!("{name}.side")),
            behind: behind.map(|behind| c_path(&behind.join(&name))),
        };
        let mut way = || writes::ALL[random.usize(..writes::ALL.len())];
        let mut writes = [way(), way()];
        if writes.contains(&writes::Way::Behind) {
            // Alone: what is written through the mount hides it until all have closed the file.
            let instead = if paths.behind.is_some() { writes::Way::Behind } else { writes::Way::Buffered };
            writes = [instead; 2];
        }
        let looks = [0, 1].map(|_| looks::ALL[random.usize(..looks::ALL.len())]);
        Round { paths, first_flags, writes, looks }
    }

    fn name(&self) -> String {
        format!("{:?}, written by {:?}, looked at by {:?}", self.paths.file, self.writes, self.looks)
    }

    fn play(&self, random: &mut Rng, writes: &AtomicU64, looks: &AtomicU64) -> Result<(), String> {
        let first = files::made(&self.paths.file, self.first_flags)?;
        let (model, stop, end) = (Model::default(), AtomicBool::new(false), Instant::now() + ROUND);
        let result = std::thread::scope(|scope| {
            let until = || !stop.load(Relaxed) && Instant::now() < end;
            let writers = (0..WRITERS).map(|i| {
                let (random, model) = (random.fork(), &model);
                scope.spawn(move || {
                    let mut writer = Writer::new(&self.paths, i, random)?;
                    while until() {
                        writer.write(self.writes, model)?;
                        writes.fetch_add(1, Relaxed);
                    }
                    Ok(())
                })
            });
            let mut threads: Vec<_> = writers.collect();
            let lookers = (0..LOOKERS).map(|i| {
                let (random, model) = (random.fork(), &model);
                scope.spawn(move || {
                    let mut looker = Looker::new(&self.paths, i, random)?;
                    while until() {
                        looker.look(self.looks, model)?;
                        looks.fetch_add(1, Relaxed);
                    }
                    Ok(())
                })
            });
            threads.extend(lookers);
            let ends = threads.into_iter().map(|thread| {
                let end: Result<(), String> = thread.join().expect("nobody panics");
                if end.is_err() {
                    stop.store(true, Relaxed);
                }
                end
            });
            ends.fold(Ok(()), Result::and)
        });
        let result = result.and_then(|()| self.is_quiet(&model));
        drop(first);
        self.paths.remove();
        if result.as_ref().is_err_and(|what| self.is_a_collision(what)) { Ok(()) } else { result }
    }

    /// A page that is stored to while it is written past is Linux's "Direct I/O collision": EIO, on any file system.
    fn is_a_collision(&self, what: &str) -> bool {
        self.writes.contains(&writes::Way::Stored) && what.ends_with(": EIO")
    }

    /// Nobody writes any more.
    fn is_quiet(&self, model: &Model) -> Result<(), String> {
        let mut looker = Looker::new(&self.paths, 0, Rng::with_seed(1))?;
        for way in looks::ALL {
            looker.look_at(*way, 0, BLOCKS, model).map_err(|what| format!("at the end, {what}"))?;
        }
        if let Some(behind) = &self.paths.behind {
            let file = Files::open(behind, libc::O_RDONLY)?;
            let seen = model.before(0, BLOCKS, true);
            let mut bytes = memory::Memory::new();
            file.read(bytes.bytes_mut(), 0)?;
            model
                .check(&seen, bytes.bytes())
                .map_err(|what| format!("at the end, behind the mount: {what}"))?;
        }
        Ok(())
    }
}
