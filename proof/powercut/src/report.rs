//! What the rounds found: a line as each ends, a table, and JSON.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::front::Front;
use crate::medium::Medium;
use crate::plan::{Database, Side};
use crate::round::Outcome;

/// Said with every result: what it does and does not show.
const CAVEAT: &str = "the log's medium is memory outside the machine that survives by construction; \
    which of its stores a real power cut would keep is not tested here";
/// The same for a log on the disk.
const CAVEAT_DISK: &str = "the log lies on the disk that loses what was not flushed; a disk that lies about its flushes \
    is not tested here";

/// Everything a campaign found.
#[derive(Debug, Serialize, Deserialize)]
pub struct Report {
    /// Where all that was random came from.
    pub seed: u64,
    /// What this shows, and what not.
    pub caveat: String,
    /// Counts for each database and side.
    pub totals: Vec<Totals>,
    /// Each round.
    pub rounds: Vec<Outcome>,
}

/// What is counted apart.
type Which = (Database, Side, Front, Medium);

/// Counts for one database on one side.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Totals {
    /// The database.
    pub database: Database,
    /// The side.
    pub side: Side,
    /// By which way writes came to the log.
    #[serde(default)]
    pub front: Front,
    /// What the log lay on.
    #[serde(default)]
    pub medium: Medium,
    /// Rounds.
    pub rounds: u64,
    /// Power cuts, the second ones of a round among them.
    pub cuts: u64,
    /// How many cuts of each kind.
    pub losses: BTreeMap<String, u64>,
    /// Sectors that the disk lost in these cuts.
    pub sectors_lost: u64,
    /// Commits acknowledged.
    pub acknowledged: u64,
    /// Acknowledged, and gone.
    pub lost: u64,
    /// Rounds in which a commit was gone.
    pub rounds_with_loss: u64,
    /// Rounds in which a checker complained or the database did not start.
    pub rounds_with_problems: u64,
    /// Rounds whose database could not be checked in time: they show nothing.
    #[serde(default)]
    pub rounds_unchecked: u64,
    /// Seconds for each round, on average.
    pub seconds_per_round: f64,
}

impl Report {
    /// Without results yet.
    pub fn new(seed: u64, medium: Medium) -> Self {
        let caveat = if medium == Medium::Disk { CAVEAT_DISK } else { CAVEAT };
        Report { seed, caveat: caveat.to_owned(), totals: Vec::new(), rounds: Vec::new() }
    }

    /// Takes a round in, and says how it went.
    pub fn add(&mut self, outcome: Outcome) {
        let plan = &outcome.plan;
        let pending: u64 = outcome.cuts.iter().map(|cut| cut.pending_sectors).sum();
        println!(
            "{:>3}  {:?} {:?} ({}): {} acknowledged, {} lost, {} sectors un-flushed, {:.1} s{}",
            self.rounds.len() + 1,
            plan.database,
            plan.side,
            plan.title(),
            outcome.acknowledged,
            outcome.lost,
            pending,
            outcome.seconds,
            outcome.problems.iter().map(|problem| format!("\n     {problem}")).collect::<String>()
        );
        self.rounds.push(outcome);
        self.totals = self.count();
    }

    fn count(&self) -> Vec<Totals> {
        let mut sides: BTreeMap<Which, Vec<&Outcome>> = BTreeMap::new();
        for round in &self.rounds {
            let plan = &round.plan;
            sides.entry((plan.database, plan.side, plan.front, plan.medium)).or_default().push(round);
        }
        sides.into_iter().map(|(which, rounds)| total(which, &rounds)).collect()
    }

    /// What must make the campaign fail.
    pub fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        for t in &self.totals {
            let who = format!("{:?}, {:?}", t.database, t.side);
            match t.side {
                Side::Unsafe | Side::Logless if t.rounds_with_loss == 0 => {
                    faults.push(format!("{who}: nothing was lost, so these cuts prove nothing"));
                }
                Side::Unsafe | Side::Logless => {}
                Side::Torn if t.rounds_with_problems == 0 && t.lost == 0 => {
                    faults.push(format!("{who}: no page was torn, so these cuts prove nothing"));
                }
                Side::Torn => {}
                Side::Seawall | Side::Atomic | Side::Synced => {
                    if t.lost > 0 {
                        faults.push(format!("{who}: {} acknowledged commits are LOST", t.lost));
                    }
                    if t.rounds_with_problems > 0 {
                        faults.push(format!("{who}: {} rounds with problems", t.rounds_with_problems));
                    }
                    if t.rounds_unchecked > 0 {
                        faults.push(format!("{who}: {} rounds not checked in time", t.rounds_unchecked));
                    }
                }
            }
        }
        faults
    }

    /// The table.
    pub fn table(&self) -> String {
        let mut text = format!(
            "{:<9} {:<8} {:>6} {:>5} {:>13} {:>8} {:>12} {:>9} {:>13} {:>9} {:>8}\n",
            "database",
            "side",
            "rounds",
            "cuts",
            "sectors lost",
            "commits",
            "commits lost",
            "in rounds",
            "with problems",
            "unchecked",
            "s/round"
        );
        for t in &self.totals {
            text += &format!(
                "{:<9} {:<8} {:>6} {:>5} {:>13} {:>8} {:>12} {:>9} {:>13} {:>9} {:>8.1}\n",
                format!("{:?}", t.database),
                format!("{:?}", t.side),
                t.rounds,
                t.cuts,
                t.sectors_lost,
                t.acknowledged,
                t.lost,
                t.rounds_with_loss,
                t.rounds_with_problems,
                t.rounds_unchecked,
                t.seconds_per_round
            );
        }
        text + &format!("seed {}; {}\n", self.seed, self.caveat)
    }

    /// The name of its file: `powercuts.json`, `powercuts-mount.json` of rounds on the mount, `powercuts-guest.json` of those
    /// in a guest, `-disk` where the log was on the disk.
    pub fn file(front: Front, medium: Medium) -> String {
        format!("powercuts{}{}.json", front.result(), medium.result())
    }

    /// Writes [its file](Self::file).
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self, directory: &Path, front: Front, medium: Medium) -> Result<()> {
        fs::create_dir_all(directory).with_context(|| format!("cannot create {}", directory.display()))?;
        let path = directory.join(Self::file(front, medium));
        fs::write(&path, serde_json::to_vec_pretty(self)?)
            .with_context(|| format!("cannot write {}", path.display()))
    }
}

fn total((database, side, front, medium): Which, rounds: &[&Outcome]) -> Totals {
    let sum = |of: fn(&Outcome) -> u64| rounds.iter().map(|round| of(round)).sum();
    let mut losses = BTreeMap::new();
    for round in rounds {
        let second = round.plan.cut_again.map(|(_, loss)| loss);
        for loss in [Some(round.plan.loss), second].into_iter().flatten() {
            *losses.entry(loss.name().to_owned()).or_insert(0) += 1;
        }
    }
    let seconds: f64 = rounds.iter().map(|round| round.seconds).sum();
    Totals {
        database,
        side,
        front,
        medium,
        rounds: rounds.len() as u64,
        cuts: sum(|round| round.cuts.len() as u64),
        losses,
        sectors_lost: sum(|round| round.cuts.iter().map(|c| c.pending_sectors - c.kept_sectors).sum()),
        acknowledged: sum(|round| round.acknowledged),
        lost: sum(|round| round.lost),
        rounds_with_loss: sum(|round| u64::from(round.lost > 0)),
        rounds_with_problems: sum(|round| u64::from(!round.problems.is_empty() && !round.is_unchecked())),
        rounds_unchecked: sum(|round| u64::from(round.is_unchecked())),
        seconds_per_round: seconds / rounds.len().max(1) as f64,
    }
}
