//! One round: load, cut, reboot, recover, check.
//!
//! Rounds follow each other on the same disk for a while (a *life*): what one recovered is what the next one
//! starts from, and the ledger goes on, so damage that a check overlooks has time to show.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use seawall_load::ledger;
use serde::{Deserialize, Serialize};

use crate::boot::{Boot, Checked, Said, Task};
use crate::machine::Machine;
use crate::plan::{Plan, Recovery, Side, Trouble};
use fastrand::Rng;
use seawall_faulty_disk::{Cut, Disk, Image, Request};

/// How a problem begins that is no finding: whoever checks said nothing.
const NOT_CHECKED: &str = "not checked in time";

/// What a round found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// What was done.
    pub plan: Plan,
    /// Commits acknowledged in this round.
    pub acknowledged: u64,
    /// Acknowledged commits, of the whole life, that are gone.
    pub lost: u64,
    /// Whatever else was wrong, in the checkers' words.
    pub problems: Vec<String>,
    /// Each cut.
    pub cuts: Vec<Cut>,
    /// Records replayed from the log, if that is known.
    pub replayed: Option<u64>,
    /// How long it took.
    pub seconds: f64,
}

impl Outcome {
    /// Nothing was lost, and nothing was wrong.
    pub fn is_clean(&self) -> bool {
        self.lost == 0 && self.problems.is_empty()
    }

    /// Nothing is known: the database could not be checked in time.
    pub fn is_unchecked(&self) -> bool {
        !self.problems.is_empty() && self.problems.iter().all(|problem| problem.starts_with(NOT_CHECKED))
    }
}

/// What there was right after the last cut, for whoever has to find out what went wrong.
pub struct Evidence {
    disk: Image,
    pool: Vec<u8>,
}

/// Runs a round on what the disk, the log's medium and the ledger hold.
///
/// # Errors
/// If the round itself could not be carried out; what the databases do is in the outcome.
pub fn run(disk: &Disk, plan: &Plan) -> Result<(Outcome, Evidence)> {
    let started = Instant::now();
    let rng = &mut Rng::with_seed(plan.seed ^ 0x0c07);
    let before = acknowledged(plan)?;
    let first_boot = boot_id(rng);
    let mut boot =
        Boot { disk: disk.file().to_owned(), boot_id: first_boot, task: Task::Load, plan: plan.clone() };
    let mut problems = Vec::new();
    let mut cuts = vec![load_and_cut(disk, &boot, rng, &mut problems)?];
    let acknowledged = acknowledged(plan)? - before;
    boot.task = Task::Check;
    if let Some((after, loss)) = plan.cut_again {
        next_boot(&mut boot, rng);
        let machine = Machine::start(&boot)?;
        sleep(after / 2);
        trouble(disk, plan, rng);
        sleep(after / 2);
        cuts.push(machine.cut(disk, loss, rng)?);
    }
    if plan.side == Side::Logless {
        fs::remove_file(plan.pool()).context("cannot take the log away")?;
    }
    let evidence = Evidence { disk: disk.image(), pool: fs::read(boot.plan.pool()).unwrap_or_default() };
    next_boot(&mut boot, rng);
    let checked = check(disk, &boot)?;
    problems.extend(checked.problems);
    problems.extend(checked.verdict.integrity_errors);
    let outcome = Outcome {
        plan: plan.clone(),
        acknowledged,
        lost: checked.verdict.missing,
        problems,
        cuts,
        replayed: checked.replayed,
        seconds: started.elapsed().as_secs_f64(),
    };
    Ok((outcome, evidence))
}

fn load_and_cut(disk: &Disk, boot: &Boot, rng: &mut Rng, problems: &mut Vec<String>) -> Result<Cut> {
    let machine = Machine::start(boot)?;
    if boot.plan.early {
        sleep(boot.plan.cut_after);
        return machine.cut(disk, boot.plan.loss, rng);
    }
    match machine.listen(boot.plan.front.patience())? {
        Said::Working => {}
        Said::Failed(why) => bail!("the load did not start: {why}"),
        other => bail!("the load said {other:?}"),
    }
    sleep(boot.plan.cut_after / 2);
    trouble(disk, &boot.plan, rng);
    sleep(boot.plan.cut_after / 2);
    if boot.plan.side == Side::Torn {
        wait_for_pages(disk);
    }
    if let Some(Said::Failed(why)) = machine.heard() {
        problems.push(format!("the load stopped before the cut: {why}"));
    }
    machine.cut(disk, boot.plan.loss, rng)
}

/// A control that is to tear pages cuts while there are some to tear: between two flushes, as a checkpoint
/// writes.
fn wait_for_pages(disk: &Disk) {
    const PAGES: usize = 32 * 8192;
    let patience = Instant::now() + Duration::from_secs(15);
    while disk.pending_bytes() < PAGES && Instant::now() < patience {
        sleep(Duration::from_millis(1));
    }
}

/// Lets the disk refuse a few requests.
fn trouble(disk: &Disk, plan: &Plan, rng: &mut Rng) {
    let count = 1 + rng.u64(..20);
    match plan.trouble {
        Trouble::WriteErrors => disk.fail(Request::Write, count),
        Trouble::FlushErrors => disk.fail(Request::Flush, count),
        // The others are the machine's own affair.
        _ => {}
    }
}

/// A database that cannot be checked any more is a finding, not a failed round.
fn check(disk: &Disk, boot: &Boot) -> Result<Checked> {
    let machine = Machine::start(boot)?;
    match machine.listen(boot.plan.front.patience()) {
        Ok(Said::Checked(checked)) => {
            machine.shut_down(disk)?;
            Ok(checked)
        }
        said => {
            let problem = match said {
                Ok(Said::Failed(why)) => format!("no check after the cut: {why}"),
                Ok(other) => format!("no check after the cut: it said {other:?}"),
                Err(error) => format!("{NOT_CHECKED}: {error:#}"),
            };
            // It may hang: its power is the way to end it.
            machine.cut(disk, boot.plan.loss, &mut Rng::with_seed(boot.plan.seed))?;
            let mut checked = Checked { problems: vec![problem], ..Checked::default() };
            if boot.plan.side.must_lose() {
                checked.verdict.missing = acknowledged(&boot.plan)?;
            }
            Ok(checked)
        }
    }
}

/// Another start of the machine has another boot id, unless a replay is to be forced.
fn next_boot(boot: &mut Boot, rng: &mut Rng) {
    if boot.plan.recovery != Recovery::Forced {
        boot.boot_id = boot_id(rng);
    }
}

fn boot_id(rng: &mut Rng) -> String {
    let (high, low) = (rng.u64(..), rng.u64(..));
    let group = |from: u64, bits: u32| from & ((1 << bits) - 1);
    format!(
        "{:08x}-{:04x}-4{:03x}-a{:03x}-{:012x}",
        group(high, 32),
        group(high >> 32, 16),
        group(high >> 48, 12),
        group(low >> 48, 12),
        group(low, 48)
    )
}

/// Lines in the ledger.
fn acknowledged(plan: &Plan) -> Result<u64> {
    let path = plan.ledger();
    if path.exists() { Ok(ledger::read(&path)?.len() as u64) } else { Ok(0) }
}

impl Evidence {
    /// Keeps everything that is needed to look into a bad round.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, directory: &Path, outcome: &Outcome) -> Result<()> {
        let write = |name: &str, bytes: &[u8]| {
            let path: PathBuf = directory.join(name);
            fs::write(&path, bytes).with_context(|| format!("cannot write {}", path.display()))
        };
        fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
        write("outcome.json", &serde_json::to_vec_pretty(outcome)?)?;
        write("pool", &self.pool)?;
        write("ledger", &fs::read(outcome.plan.ledger()).unwrap_or_default())?;
        self.disk.save(&directory.join("disk"))
    }
}
