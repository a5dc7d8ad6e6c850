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
use crate::side::{Side, order};
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
    let mut runs = Runs::default();
    for round in 0..scope.rounds {
        for who in order(&Who::ALL, round) {
            lab.settle()?;
            let times = (0..STARTS).map(|_| measure(command(lab, &disk, who, &dir)));
            let mut times = times.collect::<Result<Vec<_>>>().with_context(|| who.key())?;
            times.sort_by(f64::total_cmp);
            let ms = times[STARTS / 2];
            lab.progress.done(&format!("round {}: a start, {}: {} ms", round + 1, who.key(), short(ms)));
            runs.add(who, ms);
        }
    }
    let row = row(&runs, scope)?;
    let header = ["a start", "ms", "beyond the bare one, ms"];
    let line = |who: Who| {
        let (ms, beyond) = (runs.spread(who, |ms| *ms)?, beyond(&runs, who)?);
        Ok(vec![who.key().to_owned(), ms.told(short), beyond.told(short)])
    };
    let lines = Who::ALL.into_iter().map(line).collect::<Result<Vec<_>>>()?;
    Ok((vec![row], format!("{}  log on a disk: {}\n", table::format(&header, &lines), disk.medium())))
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
    let then: u64 = String::from_utf8_lossy(&said).trim().parse().context("the time")?;
    Ok((then as f64 - begin.as_nanos() as f64) / 1e6)
}

/// What a side takes beyond the bare start of the same rounds, at the median.
fn beyond(runs: &Runs<Who, f64>, who: Who) -> Result<Spread> {
    let bare = runs.spread(Who::Bare, |ms| *ms)?;
    runs.spread(who, |ms| ms - bare.median)
}

fn row(runs: &Runs<Who, f64>, scope: Scope) -> Result<Fields> {
    let mut row = Fields::default().with("pool_mb", scope.pool >> 20);
    for who in Who::ALL {
        row = row.with_spread(&format!("{}_ms", who.key()), runs.spread(who, |ms| *ms)?);
    }
    let ratio = |over, under| runs.ratio(over, under, |ms| *ms);
    Ok(row
        .with_spread("seawall_of_bare", ratio(Who::Memory, Who::Bare)?)
        .with_spread("disk_of_bare", ratio(Who::Disk, Who::Bare)?)
        .with_spread("disk_of_seawall", ratio(Who::Disk, Who::Memory)?))
}

#[cfg(test)]
mod tests {
    use super::super::keys;
    use super::*;

    #[test]
    fn the_keys_are_those_of_the_page() {
        let mut runs = Runs::default();
        Who::ALL.into_iter().for_each(|who| runs.add(who, 1.5));
        let scope = Scope { quick: true, rounds: 1, pool: POOL };
        row(&runs, scope).expect("a row").assert_keys(keys::START);
    }
}
