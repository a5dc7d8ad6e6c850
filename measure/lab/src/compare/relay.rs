//! Loads of all sides at once, of which one runs while the others are stopped (SIGSTOP): turns of a fraction of a
//! second, without new connections in each.
//!
//! A shared machine's speed changes within seconds. Of two equal PostgreSQL servers, each with a pgbench of its own,
//! one was at 0.82 to 1.33 of the other in a round of turns of two seconds, and at 0.95 to 1.07 in one of a fifth of a
//! second.
//!
//! What a side leaves to be done later (the kernel's writeback, destaging) falls into everybody's turns, and what its
//! server still answers when its client is stopped into the next one's: a few requests, equally on all sides.

use std::collections::BTreeMap;
use std::ffi::c_int;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::process::{self, Running};
use crate::side::order;

/// How long a turn takes.
const TURN: Duration = Duration::from_millis(200);

/// What a load said in the end, and how long it ran, without the time that it was stopped.
pub struct Ran {
    pub stdout: String,
    pub time: Duration,
}

/// How the loads take turns.
#[derive(Clone, Copy)]
pub struct Relay {
    turn: Duration,
    turns: usize,
    round: usize,
    /// At which a load ends, and says what it did.
    end: c_int,
}

impl Relay {
    /// Each load runs for so many seconds, in turns whose order depends on the round.
    pub fn of(seconds: f64, round: usize, end: c_int) -> Self {
        let turns = (seconds / TURN.as_secs_f64()).round().max(1.0) as usize;
        Relay { turn: TURN, turns, round, end }
    }

    /// Runs them; `start` starts a side's load, which begins its first turn with that.
    ///
    /// # Errors
    /// A load that ends before its last turn, or not well.
    pub fn run<S: Copy + Ord>(
        self,
        sides: &[S],
        start: impl Fn(S) -> Result<Running>,
    ) -> Result<BTreeMap<S, Ran>> {
        let mut loads: BTreeMap<S, Load> = BTreeMap::new();
        for turn in 0..self.turns {
            for side in order(sides, self.round + turn) {
                let turn = Instant::now();
                match loads.get(&side) {
                    Some(load) => load.resume(),
                    None => {
                        drop(loads.insert(side, Load { running: Some(start(side)?), ran: Duration::ZERO }))
                    }
                }
                process::pause(self.turn)?;
                loads.get_mut(&side).context("this side was never started")?.stop(turn)?;
            }
        }
        loads.values().for_each(|load| load.signal(self.end));
        loads.into_iter().map(|(side, load)| Ok((side, load.end()?))).collect()
    }
}

/// A load's client.
struct Load {
    /// None once it is waited for.
    running: Option<Running>,
    ran: Duration,
}

impl Load {
    fn signal(&self, signal: c_int) {
        if let Some(running) = &self.running {
            process::signal(running.pid(), signal);
        }
    }

    fn resume(&self) {
        self.signal(libc::SIGCONT);
    }

    fn stop(&mut self, turn: Instant) -> Result<()> {
        let running = self.running.as_mut().context("the load has already ended")?;
        running.stop()?;
        self.ran += turn.elapsed();
        if running.has_ended()? {
            let ended = self.running.take().context("the load has already ended")?.wait()?;
            bail!("a load ended before its last turn: {}", ended.stderr.trim());
        }
        Ok(())
    }

    fn end(mut self) -> Result<Ran> {
        self.resume();
        let running = self.running.take().context("the load has already ended")?;
        let stdout = running.wait_for(Duration::from_secs(60))?.success("a load that took turns")?;
        Ok(Ran { stdout: String::from_utf8_lossy(&stdout).into_owned(), time: self.ran })
    }
}

impl Drop for Load {
    /// One that is stopped would not hear that it shall end.
    fn drop(&mut self) {
        self.resume();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::fs;
    use std::process::Command;

    use super::*;

    fn relay(turns: usize) -> Relay {
        Relay { turn: Duration::from_millis(20), turns, round: 0, end: libc::SIGALRM }
    }

    /// A load that does nothing but to say its name in the end.
    fn load(script: &str) -> Result<Running> {
        let mut shell = Command::new("sh");
        shell.args(["-c", script]);
        process::start_captured(shell, "a load", libc::SIGTERM)
    }

    fn state(pid: u32) -> char {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(") ").next().and_then(|rest| rest.chars().next()).unwrap_or('-')
    }

    #[test]
    fn one_load_runs_at_a_time_and_each_says_in_the_end_what_it_did() -> Result<()> {
        let started = RefCell::new(Vec::new());
        let ran = relay(3).run(&["a", "b", "c"], |side| {
            assert!(started.borrow().iter().all(|&pid| state(pid) == 'T'), "another one runs");
            let running = load(&format!("trap 'echo {side}; exit 0' ALRM; while :; do :; done"))?;
            started.borrow_mut().push(running.pid());
            Ok(running)
        })?;
        let said: Vec<_> = ran.values().map(|ran| ran.stdout.trim()).collect();
        assert_eq!(said, ["a", "b", "c"]);
        assert!(ran.values().all(|ran| ran.time >= Duration::from_millis(60)));
        Ok(())
    }

    #[test]
    fn a_load_that_ends_early_is_an_error_and_nobody_stays() {
        let started = RefCell::new(Vec::new());
        let ran = relay(50).run(&["a", "b"], |side| {
            let running = load(if side == "a" { "while :; do :; done" } else { "echo has no table >&2" })?;
            started.borrow_mut().push(running.pid());
            Ok(running)
        });
        let said = ran.err().map(|error| error.to_string()).unwrap_or_default();
        assert!(said.contains("has no table"), "{said}");
        assert!(started.borrow().iter().all(|&pid| !seawall_media::process::is_alive(pid)));
    }

    #[test]
    fn a_load_runs_as_long_as_it_was_told_to() {
        let turns = |seconds| Relay::of(seconds, 0, libc::SIGALRM).turns;
        assert_eq!([turns(6.0), turns(1.0), turns(0.05)], [30, 5, 1]);
    }
}
