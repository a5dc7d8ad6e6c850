//! What the guest told, and what must be in it.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use seawall_load::ledger::Verdict;
use serde::{Deserialize, Serialize};

use crate::guest::Line;
use crate::report::Outcome;

/// What was seen.
#[derive(Debug, Serialize)]
pub struct Seen {
    /// Who encrypts, as `seawall status` says.
    encrypts: Option<String>,
    /// Keepers, as it says at the end of the load.
    keepers: Vec<Keeper>,
    /// Commits while the daemon was stopped.
    direct_commits: u64,
    /// The kernel's counters, under the load and after the power cut.
    counters: [BTreeMap<String, u64>; 2],
    /// The acknowledged commits compared with the database, after the power cut.
    verdict: Option<Verdict>,
    /// Tests that ran in the guest, with their results.
    tests: Vec<String>,
    /// The kernel's.
    complaints: Vec<String>,
}

/// The part of `seawall status --json` that is asked for.
#[derive(Deserialize)]
struct Status {
    kept: Kept,
}

#[derive(Deserialize)]
struct Kept {
    encrypts: Option<String>,
    keepers: Vec<Keeper>,
}

/// A keeper, as `seawall status` shows it.
#[derive(Debug, Serialize, Deserialize)]
struct Keeper {
    role: String,
    reconnects: u64,
    renewals: u64,
}

impl Seen {
    /// What both boots told.
    ///
    /// # Errors
    /// If the guest told something in an unknown form.
    pub fn of(run: &[Line], after: &[Line], complaints: Vec<String>) -> Result<Self> {
        let status = run.iter().find(|line| line.word == "status").context("the guest reported no status")?;
        let Status { kept } = serde_json::from_str(&status.rest).context(status.text())?;
        let verdict = after.iter().find(|line| line.word == "verdict");
        let verdict = verdict.map(|line| serde_json::from_str(&line.rest).context(line.text()));
        let direct =
            run.iter().find(|line| line.word == "direct").context("the guest reported no direct commits")?;
        let tests = run.iter().filter(|line| line.word == "tested").map(Line::text);
        Ok(Self {
            encrypts: kept.encrypts,
            keepers: kept.keepers,
            direct_commits: direct.rest.parse().with_context(|| direct.text())?,
            counters: [counters(run), counters(after)],
            verdict: verdict.transpose()?,
            tests: tests.collect(),
            complaints,
        })
    }

    /// What must be seen, and was not.
    fn missing(&self) -> Vec<&'static str> {
        let counter = |boot: usize, name: &str| self.counters[boot].get(name).copied().unwrap_or(0);
        let is_sound = |verdict: &Verdict| {
            verdict.missing == 0 && verdict.integrity_errors.is_empty() && verdict.acknowledged > 0
        };
        let must = [
            ("status says that the kernel encrypts", self.encrypts.as_deref() == Some("kernel")),
            ("every keeper counts in the end", self.keepers.iter().all(|keeper| keeper.role == "counts")),
            ("commits went on without the daemon", self.direct_commits > 0),
            ("the kernel encrypted", counter(0, "TlsTxSw") > 0 && counter(1, "TlsTxSw") > 0),
            ("the kernel decrypted", counter(0, "TlsRxSw") > 0 && counter(1, "TlsRxSw") > 0),
            (
                "the kernel could decrypt everything",
                counter(0, "TlsDecryptError") + counter(1, "TlsDecryptError") == 0,
            ),
            ("connections were renewed", self.keepers.iter().any(|keeper| keeper.renewals > 0)),
            (
                "only the killed keeper was lost",
                self.keepers.iter().skip(1).all(|keeper| keeper.reconnects == 0),
            ),
            ("no commit was lost", self.verdict.as_ref().is_some_and(is_sound)),
            ("the kernel complained of nothing", self.complaints.is_empty()),
        ];
        must.into_iter().filter(|(_, is_so)| !is_so).map(|(what, _)| what).collect()
    }
}

impl Outcome for Seen {
    fn is_clean(&self) -> bool {
        self.missing().is_empty()
    }

    fn print(&self) {
        let renewals: Vec<u64> = self.keepers.iter().map(|keeper| keeper.renewals).collect();
        // The first one was killed. On a busy machine others are given up too, because they are slow.
        let losses: Vec<u64> = self.keepers.iter().map(|keeper| keeper.reconnects).collect();
        println!(
            "kernel TLS: {} encrypts; {} commits while the daemon was stopped; connections renewed \
             {renewals:?} times, lost {losses:?} times",
            self.encrypts.as_deref().unwrap_or("nothing"),
            self.direct_commits
        );
        if let Some(verdict) = &self.verdict {
            println!("after the cut: {} acknowledged, {} missing", verdict.acknowledged, verdict.missing);
        }
        println!("counters {:?}", self.counters);
        self.tests.iter().for_each(|line| println!("{line}"));
        self.complaints.iter().for_each(|line| println!("the kernel: {line}"));
        self.missing().iter().for_each(|what| println!("NOT SEEN: {what}"));
    }
}

fn counters(lines: &[Line]) -> BTreeMap<String, u64> {
    let counters = lines.iter().filter(|line| line.word == "stat");
    counters.filter_map(|line| Some((line.subject.clone(), line.rest.parse().ok()?))).collect()
}
