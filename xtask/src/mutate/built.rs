//! The copy of the sources, built, and what a mutant faces in it.

use std::io::{self, Read, Seek};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

use super::deaths::Place;
use super::fate::Fate;
use super::kind::{self, ALONE, Alone, TESTS, alone, is_of_names, is_of_spill, is_site, media};

/// Crash points of the survey, in which all sites are passed.
const SURVEY: &str = "8000";

/// A built copy.
pub struct Built {
    campaign: PathBuf,
    tests: Vec<PathBuf>,
    /// Those of [`ALONE`].
    others: Vec<(&'static Alone, Vec<PathBuf>)>,
    threads: String,
}

fn cargo(copy: &Path, words: &[&str]) -> Result<Output, String> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(copy).env("CARGO_TARGET_DIR", copy.join("target")).args(words);
    let output = cargo.output().map_err(|e| format!("cargo: {e}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    if output.status.success() { Ok(output) } else { Err(format!("the copy does not build:\n{text}")) }
}

/// Builds the copy in this directory.
///
/// # Errors
/// It does not build.
pub fn build(copy: &Path) -> Result<Built, String> {
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
    ///
    /// # Errors
    /// The survey found none, or did not run.
    pub fn sites(&self) -> Result<Vec<String>, String> {
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
    pub fn face(&self, name: &str, before: Option<Place>, points: &str) -> Fate {
        let begin = Instant::now();
        let killed = match before {
            Some(Place::Seed(seed)) => self.simulated(name, &["--seed", &seed.to_string(), "--points", "1"]),
            Some(Place::Tests) => self.tested(name),
            None => None,
        };
        let points = kind::points(name, points);
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
    match output(command) {
        Ok((true, _)) => None,
        Ok((false, text)) => Some(tell(&text)),
        Err(e) => Some(("nobody".into(), format!("it does not run: {e}"))),
    }
}

/// Whether it succeeds, and what it says. By a file: whatever it leaves behind would hold a pipe for ever.
fn output(command: &mut Command) -> io::Result<(bool, String)> {
    let mut said = tempfile::tempfile()?;
    let status = command.stdin(Stdio::null()).stdout(said.try_clone()?).stderr(Stdio::null()).status()?;
    let mut text = Vec::new();
    said.rewind()?;
    said.read_to_end(&mut text)?;
    Ok((status.success(), String::from_utf8_lossy(&text).into_owned()))
}
