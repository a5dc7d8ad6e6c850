//! `xtask mutate-fences`: what keeps the promises is removed, one thing at a time, and something must die.
//!
//! Every flush and fence that the simulator reaches is broken at run time, by its line. Every checksum check,
//! watermark, real fsync, row of the decision table and step of the protocol in [`list`] is broken in a copy of
//! the sources ([`tree`]). Each mutant faces the simulator, and if it survives that, core's own tests; first it is
//! looked for where it died before ([`deaths`]). Some face the tests of another crate, and nothing else ([`ALONE`]).
//!
//! What fails with nothing broken kills nobody: all tests are run so at first, and a seed in which a mutant dies is run
//! once more without it.
//!
//! Output: a table, a JSON file, status 1 if a mutant survives. A survivor is a hole in the simulator or
//! something needless: close the one or delete the other.

mod deaths;
mod list;
mod tree;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Instant;

use serde::Serialize;

use deaths::{Deaths, Place};
use list::NEEDLESS;
pub use list::{MUTANTS, Mutant};
pub use tree::broken;

/// Crash points after which a mutant counts as a survivor of the simulator.
pub const POINTS: &str = "150000";
/// Crash points of the survey, in which all sites are passed.
const SURVEY: &str = "8000";

/// Who kills what the simulator does not.
const TESTS: &str = "core's tests";

/// Mutants of one kind, which face the tests of one crate, and nothing else.
struct Alone {
    /// What they are called.
    kind: &'static str,
    package: &'static str,
    /// Who kills them.
    tests: &'static str,
}

const ALONE: [Alone; 4] = [
    // Its tests simulate what they need.
    Alone { kind: "cache: ", package: "seawall-cache", tests: "the cache's tests" },
    // The simulator has no names.
    Alone { kind: "guard: ", package: "seawall-daemon", tests: "the daemon's tests" },
    // The simulator has no keepers.
    Alone { kind: "direct: ", package: "seawall-core", tests: TESTS },
    // Its tests simulate writers, keepers and what is between them.
    Alone { kind: "keeper: ", package: "seawall-keeper", tests: "the keepers' tests" },
];

/// What mutants of a journal on a block device are called: they run there.
const JOURNAL: &str = "journal: ";
/// The same for one on two devices.
const MIRROR: &str = "mirror: ";
/// What mutants of names in the log are called: they run on directories.
const NAMES: &str = "names: ";
/// What mutants of the disk are called: they run on guests, whose log is on a block device.
const DISK: &str = "disk: ";
/// The same as [`POINTS`] for those on a block device. Each device write takes the simulator as long as some hundred flushes.
const JOURNAL_POINTS: &str = "15000";

/// One mutant's end.
#[derive(Serialize)]
pub struct Fate {
    /// What was broken.
    pub mutant: String,
    /// Who noticed: the simulator or a test. Nobody: it survived.
    pub killed_by: Option<String>,
    /// Nobody needs what was broken, for this reason.
    pub needless: Option<&'static str>,
    /// What it said.
    pub because: String,
    /// How long that took.
    pub seconds: f64,
}

/// A built copy.
struct Built {
    campaign: PathBuf,
    tests: Vec<PathBuf>,
    /// Those of [`ALONE`].
    others: Vec<(&'static Alone, Vec<PathBuf>)>,
    threads: String,
}

/// Runs all mutants whose name contains `only`, or one of the parts that `|` separates in it, against so many crash points;
/// returns how many survived.
///
/// # Errors
/// Whatever keeps them from being run.
pub fn run(root: &Path, only: &str, points: &str, json: &Path) -> Result<usize, String> {
    let copy = target(root).join("mutants");
    tree::make(root, &copy)?;
    let built = build(&copy)?;
    // As many as a mutant faces: else one could be said to be killed by what fails without it.
    let whole = built.face("", None, points);
    if let Some(what) = whole.killed_by {
        return Err(format!("with nothing broken, {what} fails: {}", whole.because));
    }
    let mut deaths = Deaths::of(target(root).join("mutants-died.json"));
    let mut fates = Vec::new();
    for name in built.sites()?.into_iter().chain(MUTANTS.iter().map(|m| m.name.to_owned())) {
        if is_wanted(&name, only) {
            let mut fate = built.face(&name, deaths.place(&name), points);
            fate.needless = needless(root, &name);
            deaths.note(&fate)?;
            println!("{}", row(&fate));
            fates.push(fate);
        }
    }
    write(json, &fates)?;
    let survivors = fates.iter().filter(|fate| fate.killed_by.is_none() && fate.needless.is_none()).count();
    let killed = fates.iter().filter(|fate| fate.killed_by.is_some()).count();
    println!("{} mutants, {killed} killed, {survivors} survived", fates.len());
    Ok(survivors)
}

fn is_wanted(name: &str, only: &str) -> bool {
    only.split('|').any(|part| name.contains(part))
}

/// Why nobody needs what is at this site, if that is known.
fn needless(root: &Path, name: &str) -> Option<&'static str> {
    let site = name.strip_prefix("flush:").or_else(|| name.strip_prefix("fence:"))?;
    let (file, line) = site.rsplit_once(':')?;
    let text = std::fs::read_to_string(root.join(file)).ok()?;
    let text = text.lines().nth(line.parse::<usize>().ok()?.checked_sub(1)?)?;
    NEEDLESS.iter().find(|(of, part, _)| *of == file && text.contains(part)).map(|(_, _, why)| *why)
}

fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// True for a flush or a fence that only a directory's records pass.
fn is_of_names(name: &str) -> bool {
    name.contains("engine/names.rs")
}

/// True for a mutant of the spill area, by its name or its file's: it runs with one.
fn is_of_spill(name: &str) -> bool {
    name.contains("spill")
}

/// The smaller number of points.
fn fewer<'a>(a: &'a str, b: &'a str) -> &'a str {
    let points = |text: &str| text.parse().unwrap_or(u64::MAX);
    if points(a) < points(b) { a } else { b }
}

/// Whose tests alone it faces.
fn alone(name: &str) -> Option<&'static Alone> {
    ALONE.iter().find(|alone| name.starts_with(alone.kind))
}

/// On which media the simulator runs it.
fn media(name: &str) -> &'static [&'static str] {
    match () {
        () if name.starts_with(JOURNAL) => &["--block"],
        () if name.starts_with(MIRROR) => &["--mirror"],
        () if name.starts_with(NAMES) || is_of_names(name) => &["--names"],
        () if name.starts_with(DISK) => &["--disk", "--block"],
        () if is_of_spill(name) => &["--spill"],
        () => &[],
    }
}

fn is_site(name: &str) -> bool {
    name.starts_with("flush:") || name.starts_with("fence:")
}

fn row(fate: &Fate) -> String {
    let by = fate.killed_by.as_deref();
    let by = by.unwrap_or(if fate.needless.is_some() { "needless" } else { "SURVIVED" });
    let because = fate.needless.unwrap_or(&fate.because);
    format!("{:<46} {by:<12} {:>5.1} s  {because}", fate.mutant, fate.seconds)
}

fn write(json: &Path, fates: &[Fate]) -> Result<(), String> {
    let failed = |e: std::io::Error| format!("{}: {e}", json.display());
    if let Some(dir) = json.parent() {
        std::fs::create_dir_all(dir).map_err(failed)?;
    }
    let text = serde_json::to_string_pretty(fates).map_err(|e| e.to_string())?;
    std::fs::write(json, text + "\n").map_err(failed)
}

fn cargo(copy: &Path, words: &[&str]) -> Result<Output, String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(copy).env("CARGO_TARGET_DIR", copy.join("target")).args(words);
    let output = cargo.output().map_err(|e| format!("cargo: {e}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(output) } else { Err(format!("the copy does not build:\n{text}")) }
}

fn build(copy: &Path) -> Result<Built, String> {
    eprintln!("building the copy in which everything can be broken");
    cargo(copy, &["build", "--profile", "sim", "--package", "seawall-sim", "--bins"])?;
    let tests = build_tests(copy, "seawall-core")?;
    let others = ALONE.iter().map(|alone| Ok((alone, build_tests(copy, alone.package)?)));
    let others = others.collect::<Result<_, String>>()?;
    let threads = std::thread::available_parallelism().map_or(1, usize::from).to_string();
    Ok(Built { campaign: copy.join("target/sim/campaign"), tests, others, threads })
}

/// The test programs of a package.
fn build_tests(copy: &Path, package: &str) -> Result<Vec<PathBuf>, String> {
    let words = ["test", "--no-run", "--tests", "--profile", "sim", "--package", package];
    let output = cargo(copy, &[&words[..], &["--message-format", "json"]].concat())?;
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    let artifacts = lines.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let tests = artifacts.filter(|line| line["profile"]["test"] == true);
    Ok(tests.filter_map(|line| line["executable"].as_str().map(PathBuf::from)).collect())
}

impl Built {
    /// Every flush and fence that is reached.
    fn sites(&self) -> Result<Vec<String>, String> {
        let mut sites = self.survey(&[])?;
        sites.extend(self.survey(&["--spill"])?.into_iter().filter(|site| is_of_spill(site)));
        sites.extend(self.survey(&["--names"])?.into_iter().filter(|site| is_of_names(site)));
        if sites.is_empty() { Err("the survey found no flush and no fence".into()) } else { Ok(sites) }
    }

    fn survey(&self, how: &[&str]) -> Result<Vec<String>, String> {
        let output = Command::new(&self.campaign).args(["--survey", "--points", SURVEY]).args(how).output();
        let output = output.map_err(|e| format!("{}: {e}", self.campaign.display()))?;
        let lines = String::from_utf8_lossy(&output.stdout).into_owned();
        Ok(lines.lines().filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned())).collect())
    }

    /// Lets a mutant face what killed it before, then so many crash points, then the tests.
    fn face(&self, name: &str, before: Option<Place>, points: &str) -> Fate {
        let begin = Instant::now();
        let killed = match before {
            Some(Place::Seed(seed)) => self.simulated(name, &["--seed", &seed.to_string(), "--points", "1"]),
            Some(Place::Tests) => self.tested(name),
            None => None,
        };
        let is_on_block = [JOURNAL, MIRROR, DISK].iter().any(|kind| name.starts_with(kind));
        let points = if is_on_block { fewer(points, JOURNAL_POINTS) } else { points };
        let killed = killed.or_else(|| self.simulated(name, &["--points", points]));
        let killed = killed.or_else(|| self.tested(name));
        let (killed_by, because) = match killed {
            Some((_, because)) if self.fails_whole(name, &because) => {
                (None, format!("with nothing broken as well: {because}"))
            }
            Some((by, because)) => (Some(by), because),
            None => (None, String::new()),
        };
        let because = because.chars().take(160).collect();
        Fate {
            mutant: name.to_owned(),
            killed_by,
            needless: None,
            because,
            seconds: begin.elapsed().as_secs_f64(),
        }
    }

    /// Who died in the simulator.
    fn simulated(&self, name: &str, words: &[&str]) -> Option<(String, String)> {
        if alone(name).is_some() {
            return None;
        }
        let mut sim = Command::new(&self.campaign);
        sim.args(words).args(media(name)).args(["--threads", &self.threads]).env("SEAWALL_MUTANT", name);
        if is_site(name) {
            sim.args(["--mutant", name]);
        }
        died(&mut sim, |text| {
            let first = text.lines().find(|line| line.starts_with("BROKEN"));
            ("simulator".into(), first.unwrap_or("it panicked").trim_start_matches("BROKEN ").to_owned())
        })
    }

    /// True if the seed in which a mutant died fails with nothing broken, too.
    fn fails_whole(&self, name: &str, because: &str) -> bool {
        let Some(seed) = because.strip_prefix("seed ").and_then(|rest| rest.split(':').next()) else {
            return false;
        };
        let mut sim = Command::new(&self.campaign);
        sim.args(["--seed", seed, "--points", "1", "--threads", "1"]).args(media(name));
        !name.is_empty() && died(&mut sim, |_| Default::default()).is_some()
    }

    /// Who died in the tests that this one faces. A flush or a fence is broken by the simulator only. With nothing broken all
    /// tests are run.
    fn tested(&self, name: &str) -> Option<(String, String)> {
        let is_core = !is_site(name) && alone(name).is_none();
        let core = self.tests.iter().filter(|_| is_core).map(|test| (TESTS, test));
        let others = self.others.iter().filter(|(of, _)| name.is_empty() || name.starts_with(of.kind));
        let others = others.flat_map(|(of, tests)| tests.iter().map(|test| (of.tests, test)));
        let mut tests = core.chain(others);
        tests.find_map(|(whose, test)| {
            died(Command::new(test).env("SEAWALL_MUTANT", name), |text| {
                let failed =
                    text.lines().find_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
                (whose.into(), failed.unwrap_or("one of them ended").to_owned())
            })
        })
    }
}

/// Who died, if it did, told from its output.
fn died(command: &mut Command, tell: impl FnOnce(&str) -> (String, String)) -> Option<(String, String)> {
    let output = match command.output() {
        Ok(output) => output,
        Err(e) => return Some(("nobody".into(), format!("it does not run: {e}"))),
    };
    (!output.status.success()).then(|| tell(&String::from_utf8_lossy(&output.stdout)))
}

#[cfg(test)]
mod tests {
    use super::{is_wanted, media};

    #[test]
    fn several_parts_of_names_are_wanted_at_once() {
        for (name, only, expected) in [
            ("row R2: slot not used", "", true),
            ("row R2: slot not used", "R2", true),
            ("row R2: slot not used", "spill: |row R2", true),
            ("row R1: retired", "spill: |row R2", false),
        ] {
            assert_eq!(is_wanted(name, only), expected, "{name} of {only}");
        }
    }

    #[test]
    fn who_is_of_a_medium_runs_there() {
        assert_eq!(media("journal: tables"), ["--block"]);
        assert_eq!(media("mirror: every copy has it"), ["--mirror"]);
        assert_eq!(media("flush:core/src/spill/spiller.rs:82"), ["--spill"]);
        assert_eq!(media("names: row N7"), ["--names"]);
        assert_eq!(media("fence:storage/core/src/engine/names.rs:82"), ["--names"]);
        assert!(media("check: cell").is_empty());
    }
}
