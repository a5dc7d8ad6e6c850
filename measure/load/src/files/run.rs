//! The load's main loop.

use std::fs::{self, File, OpenOptions};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use clap::Args;
use serde::{Deserialize, Serialize};

use super::steps::{RUN, Step, bytes, is_of, name, temporary};
use crate::latency::{Recorder, Summary};
use crate::ledger::{self, Entry, Writer};

/// Options of `seawall-load files`.
#[derive(Clone, Debug, Args)]
pub struct Options {
    /// The directory of the files (created when missing)
    #[arg(long)]
    pub dir: PathBuf,
    /// Which client this is: each has files of its own
    #[arg(long, default_value_t = 1)]
    pub client: i32,
    /// How long to run
    #[arg(long, default_value_t = 2.0)]
    pub seconds: f64,
    /// Note each finished step here
    #[arg(long)]
    pub ledger: Option<PathBuf>,
    /// Nothing but new files of 4 KiB that replace others
    #[arg(long)]
    pub replace: bool,
    /// Nothing but new directories, each with a file of 4 KiB, that are put in place by a rename, as column stores add parts
    #[arg(long, conflicts_with_all = ["replace", "ledger"])]
    pub parts: bool,
    /// Never sync anything
    #[arg(long)]
    pub nosync: bool,
}

/// What a run did.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    /// Steps that were done.
    pub steps: u64,
    /// How long they took.
    pub seconds: f64,
    /// Steps a second.
    pub rate: f64,
    /// How long each took.
    pub latency: Summary,
}

struct Client<'o> {
    options: &'o Options,
    directory: File,
}

/// Runs the load until its time is over.
///
/// # Errors
/// Whatever a call said.
pub fn run(options: &Options) -> Result<Report> {
    fs::create_dir_all(&options.dir).with_context(|| format!("cannot create {}", options.dir.display()))?;
    let directory = File::open(&options.dir).context("cannot open the directory")?;
    let client = Client { options, directory };
    if options.parts {
        client.remove_parts()?;
    }
    let mut seq = first(options)?;
    let ledger = options.ledger.as_deref().map(Writer::open).transpose()?;
    let (mut recorder, started) = (Recorder::default(), Instant::now());
    let end = started + Duration::from_secs_f64(options.seconds);
    let mut now = started;
    while now < end {
        let begin = Instant::now();
        if options.parts {
            client.part(seq).with_context(|| format!("part {seq}"))?;
        } else {
            let step =
                if options.replace { Step::Replace(seq as u64 % 4) } else { Step::of(options.client, seq) };
            client.make(step, seq).with_context(|| format!("step {seq}, {step:?}"))?;
        }
        now = Instant::now();
        recorder.record(now - begin);
        if let Some(ledger) = &ledger {
            ledger.acknowledge(Entry { client: options.client, seq })?;
        }
        seq += 1;
    }
    let (seconds, latency) = ((now - started).as_secs_f64(), recorder.summary());
    Ok(Report { steps: latency.ops, seconds, rate: latency.ops as f64 / seconds.max(f64::EPSILON), latency })
}

/// The number of this run's first step.
fn first(options: &Options) -> Result<i64> {
    // A port to another machine has nothing to read.
    let Some(path) = options.ledger.as_deref().filter(|path| path.is_file()) else { return Ok(0) };
    let own = ledger::read(path)?.into_iter().filter(|entry| entry.client == options.client);
    Ok(own.map(|entry| entry.seq).max().map_or(0, |last| (last / RUN + 1) * RUN))
}

impl Client<'_> {
    fn make(&self, step: Step, seq: i64) -> io::Result<()> {
        let at = |file: u64| self.path(&name(self.options.client, file));
        match step {
            Step::Begin => return Ok(()),
            Step::Clear => {
                for entry in fs::read_dir(&self.options.dir)? {
                    let entry = entry?;
                    if entry.file_name().to_str().is_some_and(|name| is_of(self.options.client, name)) {
                        fs::remove_file(entry.path())?;
                    }
                }
            }
            Step::Replace(file) => {
                let temporary = self.path(&temporary(self.options.client));
                self.write(&temporary, seq)?;
                fs::rename(temporary, at(file))?;
            }
            Step::Rewrite(file) => self.write(&at(file), seq)?,
            Step::Remove(file) => removed(&at(file))?,
            Step::Rotate(from, to) => match fs::rename(at(from), at(to)) {
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                done => done?,
            },
        }
        self.sync(&self.directory)
    }

    /// A directory is made, gets a synced file, is synced, put in place, and the one above it synced.
    fn part(&self, seq: i64) -> io::Result<()> {
        let temporary = self.path(&temporary(self.options.client));
        fs::create_dir(&temporary)?;
        self.write(&temporary.join("rows"), seq)?;
        self.sync(&File::open(&temporary)?)?;
        fs::rename(temporary, self.path(&format!("{}{seq}", self.parts())))?;
        self.sync(&self.directory)
    }

    fn parts(&self) -> String {
        format!("part-{}-", self.options.client)
    }

    /// Those of an earlier run, and what was not yet in place.
    fn remove_parts(&self) -> io::Result<()> {
        for entry in fs::read_dir(&self.options.dir)? {
            let entry = entry?;
            let name = entry.file_name();
            let is_own =
                |name: &str| name.starts_with(&self.parts()) || name == temporary(self.options.client);
            if name.to_str().is_some_and(is_own) {
                fs::remove_dir_all(entry.path())?;
            }
        }
        Ok(())
    }

    fn write(&self, path: &Path, seq: i64) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        match self.options.replace || self.options.parts {
            true => file.write_all(&[seq as u8; 4096])?,
            false => file.write_all(&bytes(self.options.client, seq))?,
        }
        self.sync(&file)
    }

    fn sync(&self, file: &File) -> io::Result<()> {
        if self.options.nosync { Ok(()) } else { file.sync_all() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.options.dir.join(name)
    }
}

fn removed(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::{CheckOptions, check};

    fn options(dir: &Path) -> Options {
        Options {
            dir: dir.join("data"),
            client: 1,
            seconds: 0.2,
            ledger: Some(dir.join("ledger")),
            replace: false,
            parts: false,
            nosync: false,
        }
    }

    #[test]
    fn parts_are_put_in_place_and_an_earlier_run_s_go() {
        let dir = tempfile::tempdir().expect("a directory");
        let options = Options { ledger: None, parts: true, seconds: 0.05, ..options(dir.path()) };
        let parts = || fs::read_dir(&options.dir).expect("listed").count() as u64;
        for _ in 0..2 {
            assert_eq!(run(&options).expect("no error").steps, parts());
        }
        let rows = fs::read(options.dir.join("part-1-1/rows")).expect("the second part's");
        assert_eq!(rows, [1; 4096]);
        fs::create_dir(options.dir.join(temporary(1))).expect("a run that was cut");
        run(&options).expect("it goes on");
    }

    /// A file, when the next step is none in which one may have any content.
    fn some_file(options: &Options) -> Result<PathBuf> {
        let ledger = options.ledger.as_deref().context("there is one")?;
        loop {
            let next = ledger::read(ledger)?.iter().map(|entry| entry.seq + 1).max().unwrap_or(0);
            let file = fs::read_dir(&options.dir)?.next().transpose()?.map(|entry| entry.path());
            match (Step::of(options.client, next), file) {
                (Step::Rewrite(_), _) | (_, None) => {
                    run(options)?;
                }
                (_, Some(file)) => return Ok(file),
            }
        }
    }

    #[test]
    fn what_a_run_leaves_is_what_its_ledger_says_and_anything_else_is_found() -> Result<()> {
        let dir = tempfile::tempdir_in("/var/tmp")?;
        let options = options(dir.path());
        let checked = || check(&CheckOptions { dir: options.dir.clone(), ledger: dir.path().join("ledger") });
        assert!(checked()?.is_clean(), "nothing was promised");
        for _ in 0..2 {
            assert!(run(&options)?.steps > 0);
            let verdict = checked()?;
            assert!(verdict.is_clean() && verdict.acknowledged > 0, "{verdict:?}");
        }
        let path = &some_file(&options)?;
        let before = fs::read(path)?;
        fs::write(path, &before[..before.len() / 2])?;
        assert_eq!(checked()?.missing, 1, "half a file");
        fs::rename(path, options.dir.join("store-1-9"))?;
        assert!(!checked()?.is_clean(), "another name");
        fs::write(options.dir.join("store-1-9"), before)?;
        fs::rename(options.dir.join("store-1-9"), path)?;
        assert!(checked()?.is_clean());
        fs::hard_link(path, options.dir.join(name(1, 8)))?;
        assert!(!checked()?.is_clean(), "doubled");
        Ok(())
    }
}
