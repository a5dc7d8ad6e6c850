//! `start`: how long a database waits for Seawall when it is started: from `seawall run` to the command's first moment, with
//! a log that was closed.
//!
//! The command says what time it is. The same command alone is the baseline, and a log in memory, of the same size, shows
//! what a log on a disk costs more.

use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};

use super::runs::Runs;
use super::{Fields, Scope, SectionResult};
use crate::lab::Lab;
use crate::launch::under;
use crate::pool::Pool;
use crate::process::run as run_process;
use crate::side::Side;
use crate::spread::Spread;
use crate::table::{self, short};

/// Bytes of either log unless asked for otherwise.
pub const POOL: u64 = 4 << 30;
/// How often each of them is started in a round; the first start of a log that was just made is another matter.
const STARTS: usize = 5;

/// How the command is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Bare,
    Memory,
    Disk,
}

impl Who {
    const ALL: [Self; 3] = [Self::Bare, Self::Memory, Self::Disk];

    /// Its name in the file.
    fn key(self) -> &'static str {
        match self {
            Self::Bare => "bare",
            Self::Memory => "seawall",
            Self::Disk => "disk",
        }
    }
}

/// How many runs there will be.
pub fn steps(scope: Scope) -> usize {
    Who::ALL.len() * scope.rounds
}

/// What the log takes on the disk.
pub fn space(scope: Scope) -> u64 {
    4 * scope.pool
}

/// Measures everything.
pub fn run(lab: &Lab, scope: Scope) -> Result<SectionResult> {
    let place = lab.data(Side::Seawall, "start-log");
    lab.fresh_dir(&place)?;
    let disk = Pool::on_block(&lab.tools, &lab.identity, scope.pool, place.join("block.log"))?;
    let dir = lab.data(Side::Seawall, "start");
    lab.fresh_dir(&dir)?;
    let title = |who: Who| format!("a start, {}", who.key());
    let told = |ms: &f64| format!("{} ms", short(*ms));
    let runs = Runs::measure(lab, &Who::ALL, scope.rounds, title, told, |who, _| {
        lab.settle()?;
        let times = (0..STARTS).map(|_| measure(command(lab, &disk, who, &dir)));
        let times = times.collect::<Result<Vec<_>>>()?;
        Ok(Spread::of(&times).context("no start was measured")?.median)
    })?;
    let header = ["a start", "ms", "beyond the bare one, ms"];
    // Beyond the bare start of the same rounds, at the median.
    let bare = runs.median(Who::Bare, |ms| *ms);
    let line =
        |who: Who| vec![who.key().to_owned(), runs.told(who, |ms| *ms), runs.told(who, |ms| ms - bare)];
    let table = table::format(&header, &Who::ALL.map(line));
    Ok((vec![row(&runs, scope)], format!("{table}  log on a disk: {}\n", disk.medium())))
}

fn command(lab: &Lab, disk: &Pool, who: Who, dir: &Path) -> Command {
    let date = Path::new("/bin/date");
    let mut command = match who {
        Who::Bare => lab.command(date),
        Who::Memory => under(lab, &lab.pool, ("any", "tail"), dir, date),
        Who::Disk => under(lab, disk, ("any", "tail"), dir, date),
    };
    command.arg("+%s%N");
    command
}

/// Milliseconds until the command says what time it is.
fn measure(command: Command) -> Result<f64> {
    let begin = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let said = run_process(command, "the command that is started")?;
    let then: u64 = String::from_utf8_lossy(&said).trim().parse().context("the command printed no time")?;
    Ok((then as f64 - begin.as_nanos() as f64) / 1e6)
}

fn row(runs: &Runs<Who, f64>, scope: Scope) -> Fields {
    let row = Fields::default().with("pool_mb", scope.pool >> 20);
    let row = runs.with_figures(row, &Who::ALL, Who::key, &[("ms", |ms| *ms)]);
    let ratios = [
        ("seawall_of_bare", Who::Memory, Who::Bare),
        ("disk_of_bare", Who::Disk, Who::Bare),
        ("disk_of_seawall", Who::Disk, Who::Memory),
    ];
    runs.with_ratios(row, |ms| *ms, &ratios)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        let mut runs = Runs::default();
        Who::ALL.into_iter().for_each(|who| runs.add(who, 1.5));
        row(&runs, Scope { quick: true, rounds: 1, pool: POOL }).assert_keys("start");
    }
}
