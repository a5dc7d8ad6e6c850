//! Many runs, until so many crash points were explored. Ends with 1 if a promise was broken.

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use clap::Parser;
use seawall_sim::{Counts, Mutant, Plan, Planted, run};
use serde::Serialize;

/// Explores crash points
#[derive(Parser)]
struct Wanted {
    /// How many
    #[arg(long, default_value = "1_000_000", value_parser = number)]
    points: u64,
    /// The first one
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// How many runs at once
    #[arg(long, default_value_t = 2)]
    threads: u64,
    /// Tell the story of one seed
    #[arg(long)]
    trace: bool,
    /// List every flush and fence that is reached
    #[arg(long)]
    survey: bool,
    /// Break one: `flush:SITE` or `fence:SITE`; with --names, `planted:NAME` plants a bug beside the log of names
    #[arg(long, default_value = "", hide_default_value = true, value_parser = mutant)]
    mutant: Mutant,
    #[command(flatten)]
    machine: Machine,
    /// Write what came out
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// What the log is on, and who uses it.
#[derive(clap::Args)]
struct Machine {
    /// The log is on a block device
    #[arg(long)]
    block: bool,
    /// It is on two
    #[arg(long)]
    mirror: bool,
    /// It is in memory, with a spill area behind it
    #[arg(long)]
    spill: bool,
    /// There are guests whose disks are in the log
    #[arg(long)]
    disk: bool,
    /// There are programs that keep small files in directories whose names are in the log
    #[arg(long)]
    names: bool,
}

impl Machine {
    fn plan(&self, seed: u64) -> Plan {
        let Self { block, mirror, spill, disk, names } = *self;
        Plan { block: block || mirror, mirror, spill, disk, names, ..Plan::of(seed) }
    }
}

/// What is written with `--json`.
#[derive(Serialize)]
struct Report {
    seeds: (u64, u64),
    threads: u64,
    seconds: f64,
    points_per_second: f64,
    counts: Counts,
    violations: Vec<String>,
}

fn number(text: &str) -> Result<u64, std::num::ParseIntError> {
    text.replace('_', "").parse()
}

fn mutant(text: &str) -> Result<Mutant, String> {
    match text.split_once(':') {
        None if text.is_empty() => Ok(Mutant::None),
        Some(("flush", site)) => Ok(Mutant::Flush(site.to_owned())),
        Some(("fence", site)) => Ok(Mutant::Fence(site.to_owned())),
        Some(("planted", name)) => {
            let found = Planted::ALL.iter().find(|(is, _)| *is == name);
            found.map(|(_, planted)| Mutant::Planted(*planted)).ok_or(format!("no such bug: {name}"))
        }
        _ => Err(format!("{text}: a mutant is flush:SITE, fence:SITE or planted:NAME")),
    }
}

/// Every site of a flush or a fence that some runs pass.
fn survey(wanted: &Wanted) {
    let mut sites = std::collections::BTreeMap::new();
    let mut points = 0;
    for seed in wanted.seed.. {
        let outcome = run(&Plan { survey: true, ..wanted.machine.plan(seed) });
        points += outcome.counts.points;
        for ((is_fence, site), n) in outcome.sites {
            *sites.entry((if is_fence { "fence" } else { "flush" }, site)).or_insert(0) += n;
        }
        if points >= wanted.points {
            break;
        }
    }
    for ((kind, site), n) in sites {
        println!("{kind}:{site} {n}");
    }
}

/// Shared by the threads.
struct Progress {
    next: AtomicU64,
    points: AtomicU64,
    stop: AtomicBool,
    sums: Mutex<(Counts, Vec<String>)>,
    begin: Instant,
}

/// A run that panics outside its simulated processes ends the campaign: nobody else would.
struct EndsOnPanic<'a>(&'a AtomicBool);

impl Drop for EndsOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.store(true, Relaxed);
        }
    }
}

impl Progress {
    fn work(&self, wanted: &Wanted) {
        let _ends = EndsOnPanic(&self.stop);
        while self.points.load(Relaxed) < wanted.points && !self.stop.load(Relaxed) {
            let seed = self.next.fetch_add(1, Relaxed);
            let plan = Plan { mutant: wanted.mutant.clone(), ..wanted.machine.plan(seed) };
            let outcome = run(&plan);
            self.points.fetch_add(outcome.counts.points, Relaxed);
            let broken = outcome.violation.inspect(|what| self.tell(&plan, what));
            let Ok(mut sums) = self.sums.lock() else { return };
            sums.0.add(&outcome.counts);
            sums.1.extend(broken);
        }
    }

    /// A broken promise: what, and the end of the story, told again from the seed.
    fn tell(&self, plan: &Plan, what: &str) {
        self.stop.store(true, Relaxed);
        let story = run(&Plan { trace: true, ..plan.clone() }).story.join("\n    ");
        println!("BROKEN {what}\n    {story}");
    }

    fn show(&self, wanted: &Wanted) {
        let mut shown = Instant::now();
        while self.points.load(Relaxed) < wanted.points && !self.stop.load(Relaxed) {
            std::thread::sleep(Duration::from_millis(200));
            if shown.elapsed() > Duration::from_secs(10) {
                shown = Instant::now();
                let (points, seconds) = (self.points.load(Relaxed), self.begin.elapsed().as_secs_f64());
                let rate = points as f64 / seconds;
                let left = wanted.points.saturating_sub(points) as f64 / rate;
                eprintln!("{points} of {} crash points, {rate:.0} a second, {left:.0} s left", wanted.points);
            }
        }
    }
}

fn campaign(wanted: &Wanted) -> Report {
    let progress = Progress {
        next: AtomicU64::new(wanted.seed),
        points: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        sums: Mutex::default(),
        begin: Instant::now(),
    };
    std::thread::scope(|scope| {
        for _ in 0..wanted.threads {
            scope.spawn(|| progress.work(wanted));
        }
        progress.show(wanted);
    });
    let seconds = progress.begin.elapsed().as_secs_f64();
    let (counts, violations) = progress.sums.into_inner().unwrap_or_default();
    Report {
        seeds: (wanted.seed, progress.next.load(Relaxed) - 1),
        threads: wanted.threads,
        seconds,
        points_per_second: counts.points as f64 / seconds,
        counts,
        violations,
    }
}

fn main() -> ExitCode {
    let wanted = Wanted::parse();
    if wanted.survey {
        survey(&wanted);
        return ExitCode::SUCCESS;
    }
    if wanted.trace {
        let outcome = run(&Plan { trace: true, ..wanted.machine.plan(wanted.seed) });
        println!("{}\n{:?}", outcome.story.join("\n"), outcome.violation);
        return ExitCode::from(u8::from(outcome.violation.is_some()));
    }
    let report = campaign(&wanted);
    for (meaning, n) in report.counts.rows() {
        println!("{n:>12}  {meaning}");
    }
    println!(
        "{:>12}  promises broken, in {:.0} s, {:.0} crash points a second, seeds {} to {}",
        report.violations.len(),
        report.seconds,
        report.points_per_second,
        report.seeds.0,
        report.seeds.1
    );
    if let Some(path) = &wanted.json {
        let text = serde_json::to_string_pretty(&report).unwrap_or_default() + "\n";
        let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        if let Err(e) = made.and_then(|()| std::fs::write(path, text)) {
            eprintln!("campaign: {}: {e}", path.display());
            return ExitCode::from(2);
        }
    }
    ExitCode::from(u8::from(!report.violations.is_empty()))
}
