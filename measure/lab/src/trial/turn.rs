//! One configuration under load, once: a restarted server, a checkpoint, nothing left to write, then the load.

use std::time::Duration;

use anyhow::{Context, Result};

use super::crash;
use super::kill;
use super::load::{self, Loaded, Pgbench};
use super::observe::{Observed, Watch};
use super::prepare::Prepared;
use super::record::{Run, Turn};
use super::server::{Database, Server};
use super::slices;
use super::snap::Snap;
use super::stage::Stage;
use crate::case::{Load, Measure, Product};
use crate::lab::Lab;
use crate::machine;
use crate::process;

/// How long others' use of the CPUs is looked at.
const LOOK: Duration = Duration::from_millis(300);

impl Stage<'_> {
    /// Runs it.
    pub fn turn(&self, prepared: &Prepared, round: usize) -> Result<Turn> {
        let others_cpu = machine::busy(LOOK)?;
        let mut turn = Turn {
            run: self.run.id.clone(),
            configuration: prepared.configuration.name.clone(),
            round,
            at: machine::now(),
            durability: prepared.durability(self.case),
            medium: prepared.pool.as_ref().map(|p| p.medium().to_owned()),
            placement: prepared.placement.clone(),
            others_cpu,
            ..Turn::default()
        };
        if prepared.product.begins_empty() {
            self.lab.fresh_dir(&prepared.data)?;
        }
        let asked = self.case.measures.get_ref().contains(&Measure::DeviceWrites);
        let batches = || if asked { prepared.device_writes() } else { Ok(None) };
        let before = batches()?;
        let server = Server::start(self.lab, self.bin, self.case, prepared)?;
        self.settle(&server, prepared)?;
        if let Some(how) = &self.case.crash {
            crash::run(self, how, prepared, server, &mut turn)?;
        } else {
            let loaded = self.steady(prepared, &server, &mut turn)?;
            if round + 1 == self.run.rounds {
                let server = load::check(self, prepared, server, &loaded)?;
                match self.case.load() {
                    Load::Tprocc(_) => turn.killed = Some(kill::kill_and_check(self, prepared, server)?),
                    _ => server.stop()?,
                }
            } else {
                server.stop()?;
            }
        }
        self.drain(prepared)?;
        if let (Some(before), Some(after)) = (before, batches()?) {
            turn.figure(Measure::DeviceWrites, (after - before) as f64 / turn.work.commits.max(1.0));
        }
        Ok(turn)
    }

    /// Warm buffers, a checkpoint, and nothing dirty is left anywhere: no side pays for the one before it.
    fn settle(&self, server: &Server<'_>, prepared: &Prepared) -> Result<()> {
        match prepared.configuration.warm_up.or(self.case.warm_up) {
            Some(seconds) => {
                let run = Run { seconds, ..self.run.clone() };
                load::run(&Stage { run: &run, ..*self }, prepared, server)?;
            }
            None => load::warm(self.case, server)?,
        }
        self.drain(prepared)
    }

    fn drain(&self, prepared: &Prepared) -> Result<()> {
        if let Some(pool) = &prepared.pool {
            pool.drain_if_running()?;
        }
        self.lab.work.sync()
    }

    fn steady(&self, prepared: &Prepared, server: &Server<'_>, turn: &mut Turn) -> Result<Loaded> {
        let watch = self.watch(prepared, server)?;
        let every = prepared.configuration.captured_every;
        let snap = every.map(|every| Snap::start(self.lab, server.postgres()?, every, self.run.seconds));
        let snap = snap.transpose()?;
        // For the load alone: what is settled before and after it need not wait.
        let held = prepared.hold(self.case)?;
        let loaded = match (&self.case.slices, &snap) {
            (Some(slicing), Some(snap)) => {
                let load = Pgbench::start(self.lab, self.case, server.postgres()?, self.run.seconds)?;
                let (loaded, slices) = slices::run(slicing, snap, load, self.run.seconds, turn.round)?;
                turn.slices = slices;
                loaded
            }
            _ => self.counting_bytes(prepared, server, turn)?,
        };
        drop(held);
        let costs = snap.map(|snap| snap.costs(server.postgres()?)).transpose()?;
        let observed = watch.finish()?;
        turn.work = observed.work(loaded.commits);
        loaded.figures.iter().for_each(|(measure, value)| turn.figure(*measure, *value));
        if let Some(costs) = costs {
            let mean = costs.snapshots_ms.iter().sum::<f64>() / costs.snapshots_ms.len() as f64;
            let capture = costs.recorder_percent + costs.server_percent;
            turn.figure(Measure::SnapshotCpu, mean);
            turn.figure(Measure::CaptureCpu, capture);
        }
        self.note(&observed, turn);
        Ok(loaded)
    }

    /// Runs the load, and notes what MariaDB wrote meanwhile.
    fn counting_bytes(&self, prepared: &Prepared, server: &Server<'_>, turn: &mut Turn) -> Result<Loaded> {
        let Database::Mariadb(mariadb) = &server.database else { return load::run(self, prepared, server) };
        let before = mariadb.written()?;
        let loaded = load::run(self, prepared, server)?;
        let after = mariadb.written()?;
        let kb_each = |bytes: f64| bytes / 1e3 / loaded.commits.max(1) as f64;
        turn.figure(Measure::DiskWritten, kb_each(after.0 - before.0));
        turn.figure(Measure::DataWritten, kb_each(after.1 - before.1));
        Ok(loaded)
    }

    /// Begins to watch a turn.
    pub fn watch(&self, prepared: &Prepared, server: &Server<'_>) -> Result<Watch> {
        let pool = prepared.pool.as_ref().map(|p| p.path());
        Watch::start(server.address().as_ref(), pool, self.case.sampled).context("cannot watch the database")
    }

    /// Takes over what was seen.
    pub fn note(&self, observed: &Observed, turn: &mut Turn) {
        turn.time = observed.time();
        if let Some(waits) = observed.seawall_waits("log full") {
            let a_second = waits / observed.period.elapsed_s.max(0.001);
            turn.figure(Measure::LogFull, a_second);
        }
        turn.notes.extend(observed.notes());
    }
}

/// An error while the database was under load, with what its log says last.
pub fn explain(error: anyhow::Error, lab: &Lab, prepared: &Prepared) -> anyhow::Error {
    // A start that failed has said so already.
    if process::interrupted() || format!("{error:#}").contains(" ends with:") {
        return error;
    }
    let name = &prepared.configuration.name;
    let log = match prepared.product {
        Product::Postgres => crate::pg::Cluster::log_of(lab, name),
        Product::Mariadb => crate::mariadb::Server::log_of(lab, name),
        _ => return error,
    };
    error.context(crate::pg::log_tail(&log))
}
