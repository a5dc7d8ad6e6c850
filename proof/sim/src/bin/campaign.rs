//! Many runs, until so many crash points were explored.
//!
//! `campaign [--points N] [--seed S] [--threads T] [--json FILE]`. `--trace` tells the story of one seed.
//! `--block` runs on a block device, `--mirror` on two, `--spill` in memory with a spill area behind it. `--disk`
//! has guests whose disks are in the log, with `--block` in one on a block device. `--survey` lists every flush and fence that is reached; `--mutant flush:SITE` or `fence:SITE` breaks one.
//! Ends with 1 if a promise was broken.

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use seawall_sim::{Counts, Mutant, Plan, run};
use serde::Serialize;

struct Wanted {
    points: u64,
    seed: u64,
    threads: u64,
    trace: bool,
    survey: bool,
    block: bool,
    mirror: bool,
    spill: bool,
    disk: bool,
    mutant: Mutant,
    json: Option<String>,
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

fn wanted() -> Result<Wanted, String> {
    let mut wanted = Wanted {
        points: 1_000_000,
        seed: 1,
        threads: 2,
        trace: false,
        survey: false,
        block: false,
        mirror: false,
        spill: false,
        disk: false,
        mutant: Mutant::None,
        json: None,
    };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} needs a value"));
        let mut number =
            || value().and_then(|v| v.replace('_', "").parse().map_err(|_| format!("{v} is no number")));
        match word.as_str() {
            "--points" => wanted.points = number()?,
            "--seed" => wanted.seed = number()?,
            "--threads" => wanted.threads = number()?,
            "--trace" => wanted.trace = true,
            "--survey" => wanted.survey = true,
            "--block" => wanted.block = true,
            "--mirror" => (wanted.block, wanted.mirror) = (true, true),
            "--spill" => wanted.spill = true,
            "--disk" => wanted.disk = true,
            "--mutant" => wanted.mutant = mutant(&value()?)?,
            "--json" => wanted.json = Some(value()?),
            _ => {
                return Err(format!(
                    "{word}: known are --points --seed --threads --json --trace --survey --block --mirror --spill --disk --mutant"
                ));
            }
        }
    }
    Ok(wanted)
}

fn mutant(text: &str) -> Result<Mutant, String> {
    match text.split_once(':') {
        Some(("flush", site)) => Ok(Mutant::Flush(site.to_owned())),
        Some(("fence", site)) => Ok(Mutant::Fence(site.to_owned())),
        _ => Err(format!("{text}: a mutant is flush:SITE or fence:SITE")),
    }
}

/// Every site of a flush or a fence that some runs pass.
fn survey(wanted: &Wanted) {
    let mut sites = std::collections::BTreeMap::new();
    let mut points = 0;
    for seed in wanted.seed.. {
        let outcome = run(&Plan { survey: true, spill: wanted.spill, ..Plan::of(seed) });
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
            let plan = Plan {
                mutant: wanted.mutant.clone(),
                block: wanted.block,
                mirror: wanted.mirror,
                spill: wanted.spill,
                disk: wanted.disk,
                ..Plan::of(seed)
            };
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
    let wanted = match wanted() {
        Ok(wanted) => wanted,
        Err(text) => {
            eprintln!("campaign: {text}");
            return ExitCode::from(2);
        }
    };
    if wanted.survey {
        survey(&wanted);
        return ExitCode::SUCCESS;
    }
    if wanted.trace {
        let Wanted { block, mirror, spill, disk, seed, .. } = wanted;
        let outcome = run(&Plan { trace: true, block, mirror, spill, disk, ..Plan::of(seed) });
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
        let dir = std::path::Path::new(path).parent();
        let made = dir.map_or(Ok(()), std::fs::create_dir_all);
        if let Err(e) = made.and_then(|()| std::fs::write(path, text)) {
            eprintln!("campaign: {path}: {e}");
            return ExitCode::from(2);
        }
    }
    ExitCode::from(u8::from(!report.violations.is_empty()))
}
