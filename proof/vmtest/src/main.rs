//! The machine test: PostgreSQL and SQLite under load in a virtual machine with a real DAX device, on a disk
//! that loses what was not flushed. The logs are on the device, or a small one with a spill area on the disk, or on the
//! disk alone. The machine's power is cut again and again, and after each cut every
//! commit that was acknowledged to a ledger outside must be there.
//!
//! Or three machines on a network have the log in their memory (`--log keepers`). What all this is made of: the
//! [library](seawall_vmtest).
//!
//! What it does not show: the order of flushes inside the CPU. All stores to the emulated memory survive; that
//! is the simulator's part.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use clap::Parser;

use fastrand::Rng;
use seawall_vmtest::cases::{self, Cases, Extent};
use seawall_vmtest::chain::{Chain, Log, Plan, Setup, Side};
use seawall_vmtest::parts::{More, Parts};
use seawall_vmtest::report::{self, Proof, Report, Totals};
use seawall_vmtest::{alone, below, hosts, ktls, tool};

/// Cuts the power of a virtual machine under load and looks for lost commits
#[derive(Parser)]
#[command(version)]
struct Options {
    /// Power cuts with Seawall
    #[arg(long, default_value_t = 4)]
    rounds: u64,
    /// Only the cuts with Seawall: no counter-proof without syncs, or without the log that keepers have, no control with
    /// the databases' own syncs
    #[arg(long)]
    no_proof: bool,
    /// Only chains whose logs are there; without it all those of one machine
    #[arg(long, value_enum)]
    log: Option<Log>,
    /// The longest time from the first commits to the cut, in milliseconds
    #[arg(long, default_value_t = 4000)]
    window: u64,
    /// Decides every random choice (but not the machine's timing)
    #[arg(long)]
    seed: Option<u64>,
    /// Directory for the result, images and logs
    #[arg(long, default_value = "out")]
    out: PathBuf,
    /// Only the guest whose kernel encrypts what goes to keepers
    #[arg(long)]
    kernel_tls: bool,
    /// A program with tests, whose tests of TLS are run in that guest too
    #[arg(long, requires = "kernel_tls")]
    test: Vec<PathBuf>,
    /// Only the guest that tries what block devices and file systems are usually tried with, on a disk of `seawall disk`
    #[arg(long, value_enum)]
    cases: Option<Extent>,
    /// The same on QEMU's own disk: what fails there as well is not Seawall's
    #[arg(long, requires = "cases")]
    control: bool,
    /// Only the guest in which the machine below a database is set up
    #[arg(long, value_enum)]
    below: Option<below::Part>,
    /// Where `seawall` and its library are; without it beside this program
    #[arg(long)]
    release: Option<PathBuf>,
}

/// How chains differ; as many as there are rounds for. `max` has CLWB, Skylake CLFLUSHOPT, qemu64 only CLFLUSH.
const SETUPS: [Setup; 8] = [
    seawall(Log::Pmem, "ext4", "xfs", "wal", "max"),
    seawall(Log::Disk, "ext4", "ext4", "wal", "max"),
    seawall(Log::Spill, "ext4", "xfs", "wal", "max"),
    seawall(Log::Pmem, "xfs", "ext4", "delete", "qemu64"),
    seawall(Log::Pmem, "xfs", "xfs", "truncate", "Skylake-Client"),
    seawall(Log::Pmem, "ext4", "ext4", "persist", "max"),
    kept("ext4"),
    kept("xfs"),
];

const fn seawall(
    log: Log,
    pool: &'static str,
    data: &'static str,
    journal: &'static str,
    cpu: &'static str,
) -> Setup {
    Setup { side: Side::Seawall, log, pool, data, journal, cpu }
}

/// Without a persistent memory, and without SQLite.
const fn kept(data: &'static str) -> Setup {
    seawall(Log::Keepers, "none", data, "none", "max")
}

/// A chain has at least so many cuts, for each costs a preparation and an end.
const CUTS_OF_A_CHAIN: u64 = 5;

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("seawall-vmtest: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<bool> {
    let begin = Instant::now();
    let seed = options.seed.unwrap_or_else(seed);
    let mut random = Rng::with_seed(seed);
    tool::directory(&options.out)?;
    let work = options.out.canonicalize()?.join("vm");
    tool::directory(&work)?;
    let beside = std::env::current_exe()?.parent().map(Path::to_owned);
    let release = options
        .release
        .clone()
        .or(beside)
        .context("cannot find seawall: name its directory with --release")?;
    let (parts, kernel) = build(options, &release, &work)?;
    println!("kernel {kernel}, seed {seed}; built in {:.0} s", begin.elapsed().as_secs_f64());
    if options.kernel_tls {
        return ktls::run(&parts, &options.test, &options.out, &mut random);
    }
    if let Some(part) = options.below {
        return below::run(&parts, part, &options.out);
    }
    if let Some(extent) = options.cases {
        let seawall = (!options.control).then(|| release.join("seawall"));
        return cases::run(&Cases { parts: &parts, extent, seawall, out: &options.out, seed });
    }
    let chains = chains(options, &parts, &work, &mut random)?;
    let report = Report {
        seed,
        kernel,
        totals: Totals::of(&chains),
        counter_proof: Proof::of(&chains, Side::Unsafe),
        logless: Proof::of(&chains, Side::Logless),
        control: Proof::of(&chains, Side::Bare),
        chains,
        seconds: begin.elapsed().as_secs_f64(),
    };
    let json = if options.log == Some(Log::Keepers) { "vm-keepers.json" } else { "vm.json" };
    report::give(&report, &options.out.join(json))
}

/// The parts of the guest that was asked for, and its kernel.
fn build(options: &Options, release: &Path, work: &Path) -> Result<(Parts, String)> {
    let more = match (options.cases, options.below) {
        (Some(_), _) => cases::PROGRAMS,
        (_, Some(_)) => below::PROGRAMS,
        _ => More::default(),
    };
    match options.below {
        // In a directory of its own: the others keep their kernel.
        Some(part) if part.is_later() => {
            let work = work.join("later");
            tool::directory(&work)?;
            Parts::build_later(release, &work, &more)
        }
        _ => Parts::build(release, work, &more),
    }
}

/// Carries all chains out.
fn chains(options: &Options, parts: &Parts, work: &Path, random: &mut Rng) -> Result<Vec<Chain>> {
    let mut chains = Vec::new();
    for (number, (setup, cuts)) in plan(options).into_iter().enumerate() {
        let dir = work.join(format!("chain-{number}"));
        tool::empty_directory(&dir)?;
        let plan = Plan { parts, dir, cuts, window: Duration::from_millis(options.window) };
        let run = if setup.log == Log::Keepers { hosts::run } else { alone::run };
        let chain = run(setup, &plan, random).with_context(|| report::title(&setup))?;
        let seen = Totals::of(std::slice::from_ref(&chain));
        if seen.lost == 0 && seen.failures.is_empty() {
            tidy(&plan.dir)?;
        }
        chains.push(chain);
    }
    Ok(chains)
}

fn seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |since| since.as_nanos() as u64)
}

/// The chains with Seawall share the rounds; one cut each for the other sides.
fn plan(options: &Options) -> Vec<(Setup, u64)> {
    let wanted = |setup: &Setup| match options.log {
        Some(log) => setup.log == log,
        None => setup.log != Log::Keepers,
    };
    let setups: Vec<_> = SETUPS.into_iter().filter(wanted).collect();
    let chains = (options.rounds / CUTS_OF_A_CHAIN).clamp(1, setups.len() as u64);
    let share = |i: u64| options.rounds / chains + u64::from(i < options.rounds % chains);
    let mut all: Vec<_> = setups.into_iter().zip(0..chains).map(|(setup, i)| (setup, share(i))).collect();
    if !options.no_proof {
        all.extend(proofs(options.log == Some(Log::Keepers)).map(|setup| (setup, 1)));
    }
    all
}

/// What the test must find lost, and what it must not, without Seawall.
fn proofs(of_keepers: bool) -> impl Iterator<Item = Setup> {
    let like = if of_keepers { kept("ext4") } else { SETUPS[0] };
    let logless = of_keepers.then_some(Side::Logless);
    [Side::Unsafe, Side::Bare].into_iter().chain(logless).map(move |side| Setup { side, ..like })
}

/// Consoles and ledgers stay; what is large goes, unless somebody will want to look at it.
fn tidy(dir: &Path) -> Result<()> {
    for entry in std::fs::read_dir(dir)?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "img") {
            std::fs::remove_file(path)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_round_has_its_chain() {
        for (rounds, chains) in [(1, 1), (4, 1), (10, 2), (23, 4)] {
            let options = Options::parse_from(["x", "--no-proof", "--rounds", &rounds.to_string()]);
            let plan = plan(&options);
            assert_eq!(plan.len(), chains);
            assert_eq!(plan.iter().map(|(_, cuts)| cuts).sum::<u64>(), rounds);
        }
    }

    #[test]
    fn proofs_are_of_what_was_asked_for() {
        let sides = |arguments: &[&str]| {
            let plan = plan(&Options::parse_from([&["x"], arguments].concat()));
            plan.iter().map(|(setup, _)| (setup.side, setup.log)).collect::<Vec<_>>()
        };
        let all = [Side::Seawall, Side::Unsafe, Side::Bare, Side::Logless];
        assert_eq!(sides(&["--log", "keepers"]), all.map(|side| (side, Log::Keepers)));
        let pmem = [Side::Unsafe, Side::Bare].map(|side| (side, Log::Pmem));
        assert_eq!(sides(&[]), [&[(Side::Seawall, Log::Pmem)], &pmem[..]].concat());
        assert_eq!(sides(&["--log", "spill"]), [&[(Side::Seawall, Log::Spill)], &pmem[..]].concat());
    }
}
