//! The order of things: cases, rounds, turns; and what is kept when something ends them early.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use seawall_awr::placement::Placement;
use seawall_load::sqlite::JournalMode;

use super::decoy::{Refused, refuse_decoy};
use super::load;
use super::prepare::{DEVICE_BYTES, Means, Prepared};
use super::record::{Record, Turn};
use super::resume::Trial;
use super::stage::Stage;
use super::turn::explain;
use crate::case::builtin::{self, Found};
use crate::case::{Case, Product};
use crate::cli::RunOptions;
use crate::lab::Lab;
use crate::process;
use crate::progress::Progress;
use crate::side::Side;
use crate::slow_disk::SlowDisk;
use crate::sqlite;
use crate::table::{short, thousands};
use crate::tools::{postgres_version, version_of};

/// What a copy of the cluster takes on the disk beside its tables: the write-ahead log above all.
const COPY_BYTES: u64 = 700 << 20;
/// A turn is not begun with less room than this.
const TURN_BYTES: u64 = 1 << 30;

/// Runs the cases that were asked for; what fails in one of them does not keep the others from running.
pub fn run(options: &RunOptions) -> Result<()> {
    let cases = asked_for(options)?;
    let mut failed = Vec::new();
    for found in &cases {
        match one(options, found) {
            Ok(()) => {}
            Err(error) if process::interrupted() => return Err(error),
            Err(error) => {
                errln!("seawall-lab: {}: {error:#}", found.case.name());
                // Of all cases, those that can be had here.
                if options.all && error.is::<Impossible>() {
                    continue;
                }
                failed.push(found.case.name().to_owned());
            }
        }
    }
    ensure!(
        failed.is_empty(),
        "not finished: {}; the finished turns are kept in {}",
        failed.join(", "),
        options.common.out.join("lab").display()
    );
    Ok(())
}

fn asked_for(options: &RunOptions) -> Result<Vec<Found>> {
    match (options.all, options.cases.is_empty()) {
        (true, true) => builtin::of_all(),
        (false, false) => options.cases.iter().map(|name| builtin::find(name)).collect(),
        (true, false) => bail!("--all and the names of cases exclude each other"),
        (false, true) => bail!("name a case (`seawall lab list` lists them), or give --all"),
    }
}

/// The baseline cannot be had on this machine: nothing can be compared.
#[derive(Debug, thiserror::Error)]
#[error("not possible on this machine: {0}")]
struct Impossible(String);

fn one(options: &RunOptions, found: &Found) -> Result<()> {
    let case = &found.case;
    let product = case.load().product();
    let bin = load::find_programs(case.load())?;
    let trial = Trial::begin(options, found)?;
    if trial.done >= trial.run.rounds {
        outln!(
            "{} is already measured ({} rounds): leave out --resume to measure it again",
            case.name(),
            trial.done
        );
        return Ok(());
    }
    let sides = case.expanded().len();
    let progress = Progress::new(sides * (trial.run.rounds - trial.done));
    progress.note(&format!("\n{}: {}", case.name(), case.question));
    let mut common = options.common.clone();
    common.pool_size = Some(16 << 20); // Configurations have pools of their own.
    let lab = Lab::set_up(&common, progress, space(case))?;
    refuse_decoy(&Placement::of(lab.work.path())?)?;
    let mut run = trial.run.clone();
    run.machine = lab.machine.clone();
    run.versions = [(product.name().to_owned(), version(&lab, product, &bin)?)].into();
    if trial.done == 0 {
        trial.store.add(&Record::Run(Box::new(run.clone())))?;
    }
    let stage = Stage { lab: &lab, bin: &bin, case, run: &run };
    let ended = turns(&stage, options, &trial);
    lab.progress.finish();
    let (how, finished) = match &ended {
        Ok(()) => ("finished".to_owned(), true),
        Err(_) if process::interrupted() => ("interrupted".to_owned(), false),
        Err(error) => (format!("{error:#}"), false),
    };
    let noted = trial.store.add(&Record::End { run: run.id.clone(), how, finished });
    let kept = format!(
        "the finished turns are kept in {}; `seawall lab report` makes a report of them, \
         `seawall lab run {} --resume` goes on with the round that was cut off",
        trial.store.path().display(),
        case.name()
    );
    ended.context(kept)?;
    noted
}

fn version(lab: &Lab, product: Product, bin: &Path) -> Result<String> {
    match product {
        Product::Postgres => postgres_version(bin),
        Product::Sqlite => sqlite::create(lab, Side::Fs, JournalMode::Wal),
        // Neither says one.
        Product::Lmdb | Product::Files => Ok("as installed".to_owned()),
        _ => version_of(bin),
    }
}

fn space(case: &Case) -> u64 {
    // Updated rows leave their old versions behind.
    let sides = case.expanded().len() as u64;
    let has_own = case.devices.is_some() || case.file_system.is_some();
    let devices = if has_own { (sides + 1) * DEVICE_BYTES } else { 0 };
    sides * 2 * case.load().table_bytes() + devices + 2 * COPY_BYTES + TURN_BYTES
}

fn turns(stage: &Stage<'_>, options: &RunOptions, trial: &Trial<'_>) -> Result<()> {
    // Behind what lies on it.
    let slow = stage.case.flush_ms.as_ref().map(|ms| slow_disk(stage, *ms.get_ref())).transpose()?;
    let sides = prepare(stage, options, trial, slow.as_ref())?;
    for round in trial.done..stage.run.rounds {
        for position in 0..sides.len() {
            let prepared = &sides[at_position(position, round, sides.len())];
            let what =
                format!("{}, round {}, {}", stage.case.name(), round + 1, prepared.configuration.title);
            stage.lab.progress.doing(&what);
            stage.lab.work.ensure_room(TURN_BYTES).with_context(|| what.clone())?;
            let turn = stage.turn(prepared, round);
            let turn =
                turn.map_err(|error| explain(error, stage.lab, prepared)).with_context(|| what.clone())?;
            stage.lab.progress.done(&format!("{what}: {}", in_words(&turn, stage.case)));
            trial.store.add(&Record::Turn(Box::new(turn)))?;
        }
    }
    Ok(())
}

/// A disk for the data of all sides.
fn slow_disk(stage: &Stage<'_>, flush_ms: u64) -> Result<SlowDisk> {
    let sides = stage.case.expanded().len() as u64;
    // On one that is nearly full ext4 writes back before it lets anybody write.
    let bytes = sides * 2 * (stage.case.load().table_bytes() + COPY_BYTES);
    if !SlowDisk::is_possible() {
        return Err(Impossible("mounting a disk with slow flushes needs root".into()).into());
    }
    SlowDisk::mount(stage.lab, bytes, Duration::from_millis(flush_ms))
        .context("cannot mount a disk with slow flushes")
}

/// Whose turn it is: A B C, then B C A, …. None is always first; and what a machine gains or loses all the time counts
/// for a side in one round, and against it in another, already of three. That the same one is always before it, unlike
/// in [`crate::side::order`], matters little where a database is restarted for every turn.
pub fn at_position(position: usize, round: usize, sides: usize) -> usize {
    (position + round) % sides
}

/// A turn's first measure for the progress line.
fn in_words(turn: &Turn, case: &Case) -> String {
    let judged = case.judged();
    match turn.figures.get(judged.key()) {
        Some(value) if *value >= 100.0 => format!("{} {}", thousands(*value), judged.title()),
        Some(value) => format!("{} {}", short(*value), judged.title()),
        None => "no figure".to_owned(),
    }
}

/// Copies of one cluster for all that can be had here; what cannot is recorded with the reason.
fn prepare(
    stage: &Stage<'_>,
    options: &RunOptions,
    trial: &Trial<'_>,
    slow: Option<&SlowDisk>,
) -> Result<Vec<Prepared>> {
    stage.lab.progress.doing("an empty database and its load's tables");
    let product = stage.case.load().product();
    let template = load::template(stage.lab, stage.bin, stage.case)?;
    let apart = options.apart.as_deref();
    // Real disks are better than stand-ins.
    let devices = stage.case.devices.as_ref().filter(|_| apart.is_none());
    let means =
        Means { apart, devices, slow, files: stage.case.file_system, memory: stage.case.memory_bytes() };
    let mut sides = Vec::new();
    for configuration in trial.found.case.expanded() {
        let name = configuration.name.clone();
        stage.lab.work.ensure_room(TURN_BYTES)?;
        match Prepared::make(stage.lab, configuration, product, &template, &means) {
            Ok(prepared) => sides.push(prepared),
            Err(error) if process::interrupted() => return Err(error),
            // Refused by name, not taken for a lack of means.
            Err(error) if error.is::<Refused>() => return Err(error),
            Err(error) => {
                let why = format!("{error:#}");
                stage
                    .lab
                    .progress
                    .note(&format!("not possible here: {name}: {}", why.lines().next().unwrap_or_default()));
                stage.lab.progress.skip(stage.run.rounds - trial.done);
                let (run, configuration) = (stage.run.id.clone(), name.clone());
                trial.store.add(&Record::NotPossible { run, configuration, why: why.clone() })?;
                if name == stage.case.baseline().name {
                    return Err(Impossible(why).into());
                }
            }
        }
    }
    template.remove()?;
    stage.lab.settle()?;
    Ok(sides)
}
