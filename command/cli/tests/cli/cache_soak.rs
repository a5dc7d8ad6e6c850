//! The block cache under everything at once, for as long as you like: every block that is read is verified.
//!
//! `programs/cache_soak.c` writes, truncates, punches, maps and replaces files, in their directory, on a mount of it and
//! without Seawall, and reads them through both fronts; its processes are killed all the time. Meanwhile the daemon is
//! killed, and in every second round the mount's process; between the rounds everything ends, strangers write, and the
//! cache is found again.
//!
//! `SEAWALL_CACHE_SOAK_MINUTES` says for how long (`make soak`); without it some seconds.

use crate::common;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::common::mounts::Mounts;
use crate::common::{Said, cc, kill};

/// One round, seconds.
const ROUND: u64 = 6;
/// Rounds if the environment sets no time.
const ROUNDS: u64 = 2;
/// How long a process may go without noticing that it is to end.
const PATIENCE: Duration = Duration::from_secs(120);

fn rounds() -> u64 {
    let minutes = std::env::var("SEAWALL_CACHE_SOAK_MINUTES").ok().and_then(|text| text.parse::<u64>().ok());
    minutes.map_or(ROUNDS, |minutes| (minutes * 60 / ROUND).max(ROUNDS))
}

/// Rounds of it on one directory, one zone and one ledger.
struct Soak {
    m: Mounts,
    program: String,
}

impl Soak {
    /// A round's processes under Seawall, and what `status` says at the end.
    fn start(&self, seed: u64) -> Child {
        let Self { m, program } = self;
        let pool = m.place.pool();
        let script = format!(
            "{program} backing at ledger {ROUND} {seed} && {} status --json --pool {pool}",
            common::SEAWALL
        );
        let run = ["run", "--pool", pool, "--preset", "sqlite", "--data", "backing", "--"];
        let mut run = m.place.command(&run);
        run.args(["sh", "-c", &script]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        run.spawn().expect("seawall starts")
    }

    /// Kills the daemon, and at last the mount's process if that is wanted.
    fn disturb(&self, round: u64, begin: Instant) {
        let at = |quarter: u64| Duration::from_millis(ROUND * 250 * quarter);
        let until = |quarter| std::thread::sleep(at(quarter).saturating_sub(begin.elapsed()));
        for quarter in [1, 2] {
            until(quarter);
            if let Some(pid) = self.m.place.daemon() {
                kill(pid);
            }
        }
        if !round.is_multiple_of(2) {
            until(3);
            kill(self.m.server());
        }
    }

    /// Writers without Seawall, while nothing of it runs.
    fn strangers(&self, seed: u64) {
        let mut alone = std::process::Command::new(&self.program);
        alone.current_dir(self.m.place.data.path()).args([
            "backing",
            "-",
            "ledger",
            "0.3",
            &seed.to_string(),
        ]);
        Said::from(alone.output().expect("it starts")).succeeds();
    }

    fn round(&self, round: u64) -> u64 {
        self.m.mount_cached("sqlite", "64M");
        let begin = Instant::now();
        let mut run = self.start(round * 2 + 1);
        self.disturb(round, begin);
        while run.try_wait().expect("our own child").is_none() && begin.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(20));
        }
        // A process that hangs is killed, and has said nothing.
        let _ = run.kill();
        let said = Said::from(run.wait_with_output().expect("our own child"));
        said.succeeds();
        let told = said.err.lines().find(|line| line.contains("blocks read")).unwrap_or_default();
        let hits = hits(&said);
        eprintln!("round {round}: {hits} hits; {told}");
        self.m.umount();
        self.strangers(round * 2 + 2);
        hits
    }
}

/// Hits of a round. A daemon that was killed, and whose successor does not answer yet, says nothing.
fn hits(said: &Said) -> u64 {
    let status = said.out.split_once("right\n").expect("it went well").1;
    let status: serde_json::Value = serde_json::from_str(status).expect("JSON");
    let is_hits = |event: &&serde_json::Value| event["name"] == "db flash cache single block physical read";
    let event = status["events"].as_array().and_then(|events| events.iter().find(is_hits));
    event.and_then(|event| event["count"].as_u64()).unwrap_or(0)
}

// Holds: internals/CACHE#tested
#[test]
fn no_reader_at_any_front_sees_an_old_block_whoever_dies() {
    let Some(m) = Mounts::new() else { return };
    let Some(program) = cc(&m.place, "cache_soak", include_str!("programs/cache_soak.c"), &["-O1"]) else {
        panic!("no C compiler: make deps installs one");
    };
    assert!(Path::new(&program).is_absolute());
    let soak = Soak { m, program: program.display().to_string() };
    let hits: u64 = (1..=rounds()).map(|round| soak.round(round)).sum();
    assert!(hits >= 1000, "it shows nothing: {hits} hits");
}
