//! `--recovery 1s`: checkpoints so near that a crash costs no more than that.
//!
//! A database that crashed replays its redo from the last checkpoint on before it takes transactions, so the distance of
//! checkpoints bounds the time. They lie far apart by default, since each makes page images and fsyncs. Under the policy
//! atomic neither is needed, and a near checkpoint costs next to nothing. Oracle calls the same goal
//! `FAST_START_MTTR_TARGET`.
//!
//! ```text
//! goal ─ speed: measured at the last recovery of this data, else assumed ─ redo that may be there
//!      ─ the server's settings ─ and, for PostgreSQL, checkpoints that are asked for while it runs
//! ```

mod control;
mod innodb;
mod kept;
mod listening;
mod measured;
mod pace;
mod server;
mod speed;
mod started;
mod warm;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use seawall_daemon::{AddRoot, RecoveryGoal, process};
use seawall_wire::shm::Preset;

use crate::postmaster::Running;
use crate::size;
use control::Control;
use pace::Pace;
pub use server::Setting;
pub use speed::Speed;
#[cfg(test)]
pub use started::tests::Crashed;
use warm::Warm;

/// Between two looks whether a server is ready.
const LOOK: Duration = Duration::from_millis(20);
/// A server that was not seen to be ready by then may be one whose sockets cannot be looked at.
const PATIENCE: Duration = Duration::from_secs(600);

/// How long the recovery of a database may take.
#[derive(Clone, Debug)]
pub struct Recovery {
    preset: Preset,
    /// `None`: whatever it will be.
    data: Option<PathBuf>,
    goal: Duration,
    speed: Speed,
}

impl Recovery {
    /// For this data; without any, as it is assumed to be.
    ///
    /// # Errors
    /// If checkpoints do not bound its recovery, or the goal is less than a start takes.
    pub fn of(preset: Preset, data: Option<&Path>, goal: Duration) -> Result<Self> {
        check(preset)?;
        let speed = data.map_or_else(|| Speed::assumed(preset), |data| measured::load(preset, data));
        if speed.redo_within(goal) == 0 {
            bail!("--recovery {goal:?}: the start alone takes some {:.1} s", speed.fixed_s);
        }
        Ok(Self { preset, data: data.map(Path::to_owned), goal, speed })
    }

    /// How fast this data is replayed.
    pub fn speed(&self) -> &Speed {
        &self.speed
    }

    /// Redo that is replayed in time, bytes.
    pub fn most(&self) -> u64 {
        self.speed.redo_within(self.goal)
    }

    /// Redo that the settings alone allow, bytes: more, if the server knows no less.
    pub fn bound(&self) -> u64 {
        server::bound(self.preset, self.most(), self.data.as_deref())
    }

    /// Registers it with the directories of its database.
    pub fn note(&self, roots: &mut [AddRoot]) {
        roots.iter_mut().for_each(|root| root.recovery = Some(self.goal()));
    }

    /// What the daemon tells whoever watches.
    pub fn goal(&self) -> RecoveryGoal {
        self.speed.goal(self.goal)
    }

    /// The server's settings.
    pub fn settings(&self) -> Vec<Setting> {
        server::settings(self.preset, self.most(), self.data.as_deref())
    }

    /// A command's arguments with them.
    ///
    /// # Errors
    /// If they cannot be given so.
    pub fn with_settings(&self, arguments: &[OsString], inner: (&str, &[OsString])) -> Result<Vec<OsString>> {
        server::with_settings(self.preset, arguments, inner, &self.settings())
    }

    /// Looks at the data of a server that is about to be started: from its first moment on it changes what tells how much it
    /// has to replay.
    pub fn before_start(self) -> Starting {
        let begin = Instant::now();
        let redo = self.data.as_deref().and_then(|data| self.redo_before(data));
        let former = self.data.as_deref().and_then(|data| Running::of(data).ok().flatten());
        Starting { recovery: self, begin, redo, former }
    }

    /// What tells how much the server will replay at its start. MariaDB: how much, bytes. PostgreSQL: where the replay begins.
    /// `None`: nothing, or too little to tell.
    fn redo_before(&self, data: &Path) -> Option<u64> {
        match self.preset {
            Preset::Postgres => {
                Control::of(data).filter(|before| !before.is_shut_down).map(|before| before.redo)
            }
            // A server that was stopped in order has left a few bytes.
            _ => innodb::redo(data).filter(|redo| *redo >= telling(self.preset)),
        }
    }

    /// How much it has replayed now that it is ready, bytes.
    fn replayed(&self, data: &Path, before: u64) -> Option<u64> {
        match self.preset {
            // A crash recovery ends with a checkpoint, so what it replayed lies between the two.
            Preset::Postgres => Control::of(data).map(|now| now.redo.saturating_sub(before)),
            _ => Some(before),
        }
    }

    /// Paces the checkpoints of a server that runs, for as long as this process lives. `program`: the server's own.
    ///
    /// # Errors
    /// If there is no data.
    pub fn pace(self, program: &Path) -> Result<()> {
        let Some(data) = self.data.clone() else { bail!("no data directory is named") };
        let programs = server::programs(program).map(Path::to_owned);
        Warm::new(data.clone()).keep();
        Pace { data, programs }.keep(self.most())
    }

    /// The speed that is known after a start that took so long, and replayed so much.
    fn learn(&self, data: &Path, took: Duration, redo: u64) -> Speed {
        let speed = match redo >= telling(self.preset) {
            true => measured::keep(data, &self.speed, Speed::shown(self.preset, redo, took)),
            false => self.speed,
        };
        if redo > 0 {
            errln!(
                "seawall: the server is back {:.2} s after its start, with {} of redo replayed",
                took.as_secs_f64(),
                size::human(redo)
            );
        }
        speed
    }
}

/// A server that is started now, and what was seen before.
pub struct Starting {
    recovery: Recovery,
    begin: Instant,
    /// What tells how much it will replay; `None`: nothing is to be learned.
    redo: Option<u64>,
    /// PostgreSQL's note of its predecessor, which died.
    former: Option<Running>,
}

impl Starting {
    /// Accompanies the server in a thread of its own, which ends with this process: learns from its recovery, if it has one,
    /// and paces PostgreSQL's checkpoints. `program`: what was started, as the process `pid`. Signals are blocked by then.
    pub fn accompany(self, program: &Path, pid: u32) {
        let Some(data) = self.recovery.data.clone() else { return };
        match self.recovery.preset {
            Preset::Postgres => self.accompany_postgres(data, program),
            _ => drop(std::thread::spawn(move || self.learn_from_innodb(&data, pid))),
        }
    }

    fn accompany_postgres(self, data: PathBuf, program: &Path) {
        let programs = server::programs(program).map(Path::to_owned);
        Warm::new(data.clone()).keep();
        std::thread::spawn(move || {
            let recovery = &self.recovery;
            wait_until_ready(&data, self.former.as_ref());
            let redo = self.redo.and_then(|before| recovery.replayed(&data, before));
            let speed = redo.map_or(recovery.speed, |redo| recovery.learn(&data, self.begin.elapsed(), redo));
            Pace { data, programs }.keep(speed.redo_within(recovery.goal))
        });
    }

    /// The speed it learns counts from the next start on: InnoDB's log has its size by now.
    fn learn_from_innodb(&self, data: &Path, pid: u32) {
        let Some(redo) = self.redo else { return };
        while !listening::listens(pid) {
            if !process::is_alive(pid) || self.begin.elapsed() > PATIENCE {
                return;
            }
            std::thread::sleep(LOOK);
        }
        self.recovery.learn(data, self.begin.elapsed(), redo);
    }
}

/// A recovery of less redo than this shows no speed, bytes: the start itself took most of the time. InnoDB's takes longer.
fn telling(preset: Preset) -> u64 {
    if preset == Preset::Mariadb { 4 << 20 } else { 256 << 10 }
}

/// `former`: a note that a server which died has left behind.
fn wait_until_ready(data: &Path, former: Option<&Running>) {
    while Running::ready(data).is_none_or(|server| Some(&server) == former) {
        std::thread::sleep(LOOK);
    }
}

/// Checkpoints bound the recovery of some databases only.
///
/// # Errors
/// If not of this one.
fn check(preset: Preset) -> Result<()> {
    match preset {
        Preset::Postgres | Preset::Mariadb => Ok(()),
        Preset::Redis => {
            bail!("--recovery is for PostgreSQL and MariaDB: Redis loads all of its data, see `seawall twin`")
        }
        other => bail!(
            "--recovery is for PostgreSQL and MariaDB, whose checkpoints bound it: {} has none",
            other.name()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_checkpoints_can_be_near() {
        let refused = check(Preset::Redis).expect_err("it loads everything").to_string();
        assert!(refused.contains("seawall twin"), "{refused}");
        assert!(check(Preset::Sqlite).is_err());
        let data = tempfile::tempdir().expect("a directory");
        let error = Recovery::of(Preset::Postgres, Some(data.path()), Duration::from_millis(1))
            .expect_err("too short");
        assert!(error.to_string().contains("the start alone"), "{error}");
    }
}
