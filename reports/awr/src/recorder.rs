//! Recording: snapshots and samples into a repository, through the database's restarts.
//!
//! Invariant: what was recorded stays, whatever happens to the database. While it is away snapshots of the
//! machine (and Seawall) go on, and every call tries to reach it again.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use crate::database::{self, Address, Database};
use crate::model::Target;
use crate::repository::{Repository, Samples};
use crate::{clock, machine_only, take};

/// Samples are written this many at a time: one transaction, not one a second.
const BATCH: usize = 10;

/// What is recorded, and where.
pub struct Recorder {
    repository: Repository,
    address: Option<Address>,
    database: Option<Box<dyn Database>>,
    target: Target,
    pool: Option<PathBuf>,
    label: String,
    pending: Samples,
    /// This program's CPU time up to the last snapshot, microseconds.
    spent_us: u64,
}

/// A snapshot that was taken.
pub struct Taken {
    /// Its number.
    pub id: i64,
    /// What it lacks, and why.
    pub notes: Vec<String>,
    /// CPU time it and the samples before it took, microseconds.
    pub cpu_us: u64,
}

impl Recorder {
    /// Connects. Without an address the machine (and Seawall) alone is recorded.
    ///
    /// # Errors
    /// If the database cannot be reached now.
    pub fn start(
        repository: Repository,
        address: Option<Address>,
        pool: Option<PathBuf>,
        label: &str,
    ) -> Result<Self> {
        let mut database = address.as_ref().map(database::connect).transpose()?;
        let target = match &mut database {
            Some(database) => database.target()?,
            None => machine_only(),
        };
        let label = label.to_owned();
        Ok(Self {
            repository,
            address,
            database,
            target,
            pool,
            label,
            pending: Samples::default(),
            spent_us: clock::cpu_us(),
        })
    }

    /// Of what.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Whether the database cannot be reached, though there is one.
    pub fn is_cut_off(&self) -> bool {
        self.address.is_some() && self.database.is_none()
    }

    /// Takes and stores a snapshot.
    ///
    /// # Errors
    /// If it cannot be stored. A database that does not answer is a note.
    pub fn snapshot(&mut self) -> Result<Taken> {
        let away = self.reconnect().err();
        // The cast shortens the trait object's lifetime, which an Option around it would not do by itself.
        let database = self.database.as_mut().map(|database| &mut **database as &mut dyn Database);
        let (mut snapshot, failed) = take(&self.target, &self.label, database, self.pool.as_deref());
        snapshot.notes.extend(away.map(|e| format!("cannot reach the database: {e:#}")));
        if failed.is_some() {
            self.database = None;
        }
        self.flush()?;
        // The samples since the last snapshot, and storing them, are part of what capturing costs.
        let spent = clock::cpu_us();
        snapshot.cost.cpu_us = spent.saturating_sub(self.spent_us);
        self.spent_us = spent;
        let id = self.repository.put(&mut snapshot)?;
        Ok(Taken { id, notes: snapshot.notes, cpu_us: snapshot.cost.cpu_us })
    }

    /// Looks once what sessions are doing. `Some`: why it could not.
    ///
    /// # Errors
    /// If samples cannot be stored.
    pub fn sample(&mut self) -> Result<Option<String>> {
        let was_there = self.database.is_some();
        if self.reconnect().is_err() {
            return Ok(None);
        }
        let Some(database) = self.database.as_mut().filter(|database| database.can_sample()) else {
            return Ok(None);
        };
        let at_ms = clock::wall_ms();
        match database.sample() {
            Ok(samples) => {
                self.pending.ticks.push(at_ms);
                // One instant, whatever moment the samples were read at.
                self.pending.samples.extend(samples.into_iter().map(|s| crate::model::Sample { at_ms, ..s }));
                if self.pending.ticks.len() >= BATCH {
                    self.flush()?;
                }
                Ok(None)
            }
            Err(e) => {
                self.database = None;
                Ok(was_there.then(|| format!("{e:#}")))
            }
        }
    }

    /// Stores what was sampled.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn flush(&mut self) -> Result<()> {
        if !self.pending.ticks.is_empty() {
            self.repository.put_samples(&self.target.id, &self.pending)?;
            self.pending = Samples::default();
        }
        Ok(())
    }

    /// Drops what is older than this.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn prune(&mut self, before_ms: i64) -> Result<()> {
        self.repository.prune(before_ms)?;
        Ok(())
    }

    fn reconnect(&mut self) -> Result<()> {
        let (Some(address), None) = (&self.address, &self.database) else { return Ok(()) };
        let mut database = database::connect(address)?;
        let found = database.target().context("the database answers, but does not say which one it is")?;
        ensure!(
            found.id == self.target.id,
            "another database answers there now: {} instead of {}",
            found.id,
            self.target.id
        );
        self.database = Some(database);
        Ok(())
    }
}
