//! What came out: a line per boot while it runs, a table and a verdict at the end, JSON for scripts.

use std::path::Path;

use anyhow::{Context, Result};
use seawall_load::ledger::Verdict;
use serde::Serialize;

use crate::chain::{Chain, Log, Moment, Round, Seen, Setup, Side};

/// What a test came to.
pub trait Outcome: Serialize {
    /// True if it passed.
    fn is_clean(&self) -> bool;

    /// Says it to people.
    fn print(&self);
}

/// Says what came out, and leaves it in this file for scripts. True if the test passed.
///
/// # Errors
/// If the file cannot be written.
pub fn give(outcome: &impl Outcome, json: &Path) -> Result<bool> {
    std::fs::write(json, serde_json::to_string_pretty(outcome)?).context("cannot write the result")?;
    outcome.print();
    println!("{}", json.display());
    Ok(outcome.is_clean())
}

/// Everything, as `out/vm.json` holds it, and `out/vm-keepers.json`.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Decided every random choice.
    pub seed: u64,
    /// The guest's kernel.
    pub kernel: String,
    /// What was cut, lost and replayed with Seawall.
    pub totals: Totals,
    /// The disk loses what was not flushed, and the ledger notices.
    pub counter_proof: Proof,
    /// What keepers have is nowhere else, and the ledger notices.
    pub logless: Proof,
    /// The disk keeps what was flushed.
    pub control: Proof,
    /// All chains.
    pub chains: Vec<Chain>,
    /// The whole time.
    pub seconds: f64,
}

/// Sums over the chains with Seawall.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Power cuts.
    pub cuts: u64,
    /// Those that came while the machine recovered from the one before.
    pub cuts_in_recovery: u64,
    /// Those after which another machine took the log over.
    pub takeovers: u64,
    /// The longest time from a cut until the database had started on the other one.
    pub longest_takeover_ms: u64,
    /// Commits acknowledged and in the ledger.
    pub acknowledged: u64,
    /// Those the database did not hold afterwards.
    pub lost: u64,
    /// Records recovery replayed.
    pub replayed: u64,
    /// Sectors the disk had not flushed at the cuts, and lost.
    pub sectors_lost: u64,
    /// Starts of bare databases that were refused while the log held commits.
    pub refusals: u64,
    /// Pools whose medium was probed as what it is, and pools that were asked.
    pub media: [u64; 2],
    /// Bytes that were copied to spill areas.
    pub spilled: u64,
    /// What went wrong.
    pub failures: Vec<String>,
}

/// One chain without Seawall.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Proof {
    /// It was run.
    pub ran: bool,
    /// Commits acknowledged.
    pub acknowledged: u64,
    /// Lost ones.
    pub lost: u64,
    /// Databases that did not start, or found themselves damaged.
    pub damaged: Vec<String>,
}

impl Totals {
    /// Sums up the chains with Seawall.
    pub fn of(chains: &[Chain]) -> Self {
        let mut totals = Self::default();
        for chain in chains.iter().filter(|chain| chain.setup.side == Side::Seawall) {
            totals.cuts += chain.rounds.len() as u64;
            for round in &chain.rounds {
                totals.cuts_in_recovery += u64::from(round.moment == Moment::Recovery);
                totals.acknowledged += round.acknowledged.iter().sum::<u64>();
                totals.sectors_lost += round.disk.pending_sectors - round.disk.kept_sectors;
            }
            totals.add_boots(chain);
            if !chain.finished {
                totals.failures.push(format!("{}: the last boot did not complete", title(&chain.setup)));
            }
        }
        totals
    }

    fn add_boots(&mut self, chain: &Chain) {
        let boots = chain.rounds.iter().map(|round| &round.boot).chain([&chain.finish]);
        boots.for_each(|seen| self.add(seen, chain.setup.log.medium()));
    }

    fn add(&mut self, seen: &Seen, medium: &str) {
        for found in [&seen.postgres, &seen.sqlite] {
            self.replayed += found.replayed;
            self.spilled += found.spilled;
            self.media[0] += u64::from(found.medium.as_deref() == Some(medium));
            self.media[1] += u64::from(found.medium.is_some());
            self.lost += found.verdict.as_ref().map_or(0, |verdict| verdict.missing);
            self.failures.extend(found.verdict.iter().flat_map(|verdict| verdict.integrity_errors.clone()));
        }
        self.refusals += u64::from(seen.refused);
        self.takeovers += u64::from(seen.takeover_ms.is_some());
        self.longest_takeover_ms = self.longest_takeover_ms.max(seen.takeover_ms.unwrap_or(0));
        self.failures.extend(seen.failures.iter().cloned());
    }

    fn in_words(&self) -> String {
        format!(
            "{} power cuts ({} during recovery, {} with a takeover), {} commits acknowledged, {} lost, {} records \
             replayed, {} MB spilled; medium as it should be {} of {} times; bare starts refused {} times; {} \
             sectors lost by the disk",
            self.cuts,
            self.cuts_in_recovery,
            self.takeovers,
            self.acknowledged,
            self.lost,
            self.replayed,
            self.spilled / 1_000_000,
            self.media[0],
            self.media[1],
            self.refusals,
            self.sectors_lost
        )
    }

    /// Nothing lost, nothing wrong, and the logs lay where they were to lie.
    pub fn is_clean(&self) -> bool {
        self.lost == 0 && self.failures.is_empty() && self.media[0] == self.media[1] && self.media[0] > 0
    }
}

impl Proof {
    /// What the chains of this side came to.
    pub fn of(chains: &[Chain], side: Side) -> Self {
        let mut proof = Self::default();
        for chain in chains.iter().filter(|chain| chain.setup.side == side) {
            proof.ran = true;
            proof.acknowledged += chain.rounds.iter().flat_map(|round| round.acknowledged).sum::<u64>();
            let verdicts = [&chain.finish.postgres.verdict, &chain.finish.sqlite.verdict];
            for verdict in verdicts.into_iter().flatten() {
                proof.lost += verdict.missing;
                proof.damaged.extend(verdict.integrity_errors.iter().take(3).cloned());
            }
            proof.damaged.extend(chain.finish.failures.iter().cloned());
        }
        proof
    }

    /// Something was lost.
    pub fn shows_loss(&self) -> bool {
        self.lost > 0 || !self.damaged.is_empty()
    }

    fn in_words(&self) -> String {
        match self.shows_loss() {
            true => {
                format!("{} of {} commits lost, {} damages", self.lost, self.acknowledged, self.damaged.len())
            }
            false => format!("nothing lost of {}", self.acknowledged),
        }
    }
}

impl Outcome for Report {
    /// The promise held, and the test could have shown it broken.
    fn is_clean(&self) -> bool {
        let proofs = [&self.counter_proof, &self.logless];
        let proved = proofs.into_iter().all(|proof| !proof.ran || proof.shows_loss());
        let controlled = !self.control.ran || !self.control.shows_loss();
        self.totals.is_clean() && proved && controlled
    }

    fn print(&self) {
        println!("\n{:<44}{:>7}{:>15}{:>8}{:>12}", "", "cuts", "acknowledged", "lost", "replayed");
        for chain in &self.chains {
            let own = Totals::of_one(chain);
            let (cuts, acknowledged) = (chain.rounds.len(), own.acknowledged);
            println!(
                "{:<44}{cuts:>7}{acknowledged:>15}{:>8}{:>12}",
                title(&chain.setup),
                own.lost,
                own.replayed
            );
        }
        println!("\nwith Seawall: {}", self.totals.in_words());
        self.totals.failures.iter().for_each(|failure| println!("FAILED: {failure}"));
        let without = [
            ("without syncs (must lose)", &self.counter_proof),
            ("without the keepers' log (must lose)", &self.logless),
            ("with the databases' own syncs (must not lose)", &self.control),
        ];
        for (how, proof) in without.into_iter().filter(|(_, proof)| proof.ran) {
            println!("{how}: {}", proof.in_words());
        }
        println!(
            "{} ({:.0} s, seed {})",
            if self.is_clean() { "passed" } else { "FAILED" },
            self.seconds,
            self.seed
        );
    }
}

impl Totals {
    fn of_one(chain: &Chain) -> Self {
        let acknowledged = chain.rounds.iter().flat_map(|round| round.acknowledged).sum();
        let mut totals = Self { acknowledged, ..Self::default() };
        totals.add_boots(chain);
        totals
    }
}

/// The chain in few words.
pub fn title(setup: &Setup) -> String {
    let Setup { side, log, pool, data, journal, cpu } = setup;
    match (side, log) {
        (Side::Seawall, Log::Pmem) => format!("seawall: {pool}-dax, {data}, {journal}, {cpu}"),
        (Side::Seawall, Log::Spill) => format!("seawall: {pool}-dax and spill, {data}, {journal}, {cpu}"),
        (Side::Seawall, Log::Disk) => format!("seawall: log on {data}, {journal}, {cpu}"),
        (Side::Seawall, Log::Keepers) => format!("seawall: log kept by three hosts, {data}, {cpu}"),
        (_, Log::Keepers) => format!("{}: volume moved to another host, {data}", side.name()),
        _ => format!("{}: {data}, {journal}", side.name()),
    }
}

fn verdict(found: &Option<Verdict>) -> String {
    match found {
        None => "-".into(),
        Some(v) if v.is_clean() => format!("{}/{} ok", v.acknowledged, v.acknowledged),
        Some(v) => format!("{} of {} LOST {:?}", v.missing, v.acknowledged, v.integrity_errors),
    }
}

/// One boot, as it ended.
pub fn say_round(setup: &Setup, round: &Round) {
    println!(
        "{}: {:>5.1} s, {:?} + {} ms{}, disk lost {} of {} sectors, acknowledged {} + {}; before: {}",
        title(setup),
        round.seconds,
        round.moment,
        round.after_ms,
        if round.apart_ms > 0 { format!(" + {} ms without network", round.apart_ms) } else { String::new() },
        round.disk.pending_sectors - round.disk.kept_sectors,
        round.disk.pending_sectors,
        round.acknowledged[0],
        round.acknowledged[1],
        before(&round.boot),
    );
}

/// The last boot of a chain.
pub fn say_finish(setup: &Setup, seen: &Seen, finished: bool) {
    println!("{}: the end{}: {}", title(setup), if finished { "" } else { " WAS NOT REACHED" }, before(seen));
}

fn before(seen: &Seen) -> String {
    let mut text = format!(
        "postgres {} (replayed {}), sqlite {} (replayed {})",
        verdict(&seen.postgres.verdict),
        seen.postgres.replayed,
        verdict(&seen.sqlite.verdict),
        seen.sqlite.replayed
    );
    if let Some(ms) = seen.takeover_ms {
        text += &format!(", taken over {:.1} s after the cut", ms as f64 / 1000.0);
    }
    for failure in &seen.failures {
        text += &format!("\n    {}", failure.chars().take(300).collect::<String>());
    }
    text
}
