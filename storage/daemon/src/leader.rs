//! Who leads the journal's writes, seen from outside: everybody's sync waits for that one thread.
//!
//! | the leader | what is done |
//! |---|---|
//! | is dead | its lock is freed, and the next one leads |
//! | is stopped with a batch | nothing: a thread that waits takes its place (`core`, `journal::lock`); `status` names it |
//! | is stopped (SIGSTOP) with an anchor or a table | it is let go on until its lead is over, then it is stopped again |
//! | is stopped there by a debugger | nobody but the debugger can let it go on: the daemon's log says so |
//!
//! Nobody leads in the place of one that is pinned: whenever it goes on it would put an old anchor over a newer one. To let
//! it finish is always right, and short: nothing of the application runs until then, and next to nothing between the end
//! of the lead and the second stop. (SIGTSTP and all others that can be held back are, while a thread leads.)
//!
//! Not handled here: one that is frozen by a control group while it is pinned. Nobody can let it go on but whoever froze it.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::process::{PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use seawall_core::journal::bury_dead;
use seawall_core::thread;
use seawall_wire::desk::{Desk, LeadWord};

use crate::log::Log;
use crate::process;

/// How often it is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// For how long a leader may be stopped: whoever only looks at a process stops it for less.
const PATIENCE: Duration = Duration::from_millis(800);
/// What a lead may take once it goes on, before the next look tries again: some slow writes to the device.
const LEAD: Duration = Duration::from_secs(5);
/// Between two looks at a lead that goes on.
const PAUSE: Duration = Duration::from_micros(100);

/// One lead of one thread, which cannot be replaced.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Lead {
    /// Which one: no other lead has this word.
    lead: LeadWord,
    /// Process and thread.
    word: u64,
}

impl Lead {
    fn now(desk: Desk<'_>) -> Option<Self> {
        let (lead, word) = desk.leader()?;
        lead.is_pinned().then_some(Self { lead, word })
    }

    fn pid(self) -> u32 {
        (self.word >> 32) as u32
    }

    /// How its thread was stopped, if it was.
    fn halt(self) -> Option<Halt> {
        match thread::state(self.pid(), self.word as u32)? {
            b'T' => Some(Halt::Stopped),
            b't' => Some(Halt::Traced),
            _ => None,
        }
    }
}

/// What stopped a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Halt {
    /// By a signal.
    Stopped,
    /// By a debugger.
    Traced,
}

/// The process that everybody waits for because it is stopped while it leads, if there is one.
pub(crate) fn stopped(desk: Desk<'_>) -> Option<u32> {
    let lead = Lead::now(desk)?;
    lead.halt().map(|_| lead.pid())
}

/// Looks after the leaders as long as the process lives: the daemon's end leads too.
pub(crate) fn run(desk: Desk<'_>, log: &Log) {
    let mut halted: Option<(Lead, Instant)> = None;
    loop {
        bury_dead(desk);
        halted = still(desk, halted);
        if let Some((lead, _)) = halted.filter(|(_, since)| since.elapsed() >= PATIENCE) {
            go_on(desk, lead, log);
        }
        std::thread::sleep(LOOK);
    }
}

/// The lead of a stopped thread, and since when it was seen to.
fn still(desk: Desk<'_>, before: Option<(Lead, Instant)>) -> Option<(Lead, Instant)> {
    let lead = Lead::now(desk).filter(|lead| lead.halt().is_some())?;
    Some(before.filter(|(former, _)| *former == lead).unwrap_or((lead, Instant::now())))
}

fn go_on(desk: Desk<'_>, lead: Lead, log: &Log) {
    let pid = lead.pid();
    let name = process::name(pid);
    let said = match let_go_on(desk, lead) {
        Ok(()) => format!(
            "{name} ({pid}) was stopped while it wrote to the log, and every sync waited for it: the daemon \
             let it go on until the write was done, and stopped it again"
        ),
        Err(why) => format!(
            "EVERY SYNC WAITS FOR {name} ({pid}), WHICH IS STOPPED WHILE IT WRITES TO THE LOG ({why}). Let it go on \
             (detach the debugger, or `kill -CONT {pid}`), or end it"
        ),
    };
    log.say_once(&said, &said);
}

/// Lets a stopped leader go on until its lead is over, and stops it again. Also if that takes several turns, because it
/// leads again before the second stop reaches it.
fn let_go_on(desk: Desk<'_>, mut lead: Lead) -> Result<(), String> {
    let begin = Instant::now();
    let process = open(desk, lead)?;
    while begin.elapsed() < LEAD {
        match lead.halt() {
            Some(Halt::Stopped) => {}
            Some(Halt::Traced) => return Err("by a debugger".into()),
            // Somebody was quicker, and wants it to run.
            None => return Ok(()),
        }
        send(&process, Signal::CONT)?;
        wait(|| Lead::now(desk) != Some(lead));
        send(&process, Signal::STOP)?;
        wait(|| thread::state(lead.pid(), lead.word as u32).is_none_or(|state| state == b'T'));
        match Lead::now(desk).filter(|now| now.word == lead.word) {
            Some(again) => lead = again,
            None => return Ok(()),
        }
    }
    Err(format!("the daemon let it go on, and it did not end its write within {} s", LEAD.as_secs()))
}

/// The process of this lead, and no other one that was given its number.
fn open(desk: Desk<'_>, lead: Lead) -> Result<OwnedFd, String> {
    let pid = process::id(lead.pid()).ok_or("there is no such process")?;
    let process = pidfd_open(pid, PidfdFlags::empty()).map_err(|error| error.to_string())?;
    if Lead::now(desk) == Some(lead) { Ok(process) } else { Err("it went on by itself".into()) }
}

fn send(process: &OwnedFd, signal: Signal) -> Result<(), String> {
    pidfd_send_signal(process, signal).map_err(|error| format!("the daemon could not let it go on: {error}"))
}

fn wait(is_so: impl Fn() -> bool) {
    let begin = Instant::now();
    while !is_so() && begin.elapsed() < LEAD {
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use std::sync::atomic::Ordering::SeqCst;

    use seawall_media::Region;

    use super::*;

    use rustix::process::Pid;

    /// A process that is ended with its test, stopped or not.
    struct Sleeper(Child);

    impl Sleeper {
        fn stopped() -> Self {
            let sleeper = Self(Command::new("sleep").arg("600").spawn().expect("spawned"));
            sleeper.signal(Signal::STOP);
            wait(|| sleeper.state() == Some('T'));
            sleeper
        }

        fn signal(&self, signal: Signal) {
            let pid = Pid::from_child(&self.0);
            rustix::process::kill_process(pid, signal).expect("it lives");
        }

        fn state(&self) -> Option<char> {
            thread::state(self.0.id(), self.0.id()).map(char::from)
        }

        fn word(&self) -> u64 {
            u64::from(self.0.id()) << 32 | u64::from(self.0.id())
        }
    }

    /// It leads for this term, and cannot be replaced.
    fn lead_by(desk: Desk<'_>, sleeper: &Sleeper, term: u64) {
        let word = LeadWord::new(term, 0).pinned();
        desk.seat(word.seat()).holder().store(sleeper.word(), SeqCst);
        desk.lock().store(word.0, SeqCst);
    }

    impl Drop for Sleeper {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    fn memory() -> Region {
        let file = tempfile::tempfile().expect("a file");
        let len = Desk::bytes_for(1) as u64;
        file.set_len(len).expect("room");
        Region::map(&file, len, false).expect("a mapping")
    }

    // Holds: L22
    #[test]
    fn a_stopped_leader_goes_on_until_it_is_through_and_is_stopped_again() {
        let (memory, sleeper) = (memory(), Sleeper::stopped());
        let desk = Desk::new(&memory, 0);
        lead_by(desk, &sleeper, 1);
        assert_eq!(stopped(desk), Some(sleeper.0.id()));
        let lead = Lead::now(desk).expect("a lead");
        std::thread::scope(|scope| {
            let done = scope.spawn(|| let_go_on(desk, lead));
            // What it would do: its write, then the lock is free.
            wait(|| sleeper.state() != Some('T'));
            assert_ne!(sleeper.state(), Some('T'), "nobody let it go on");
            desk.lock().store(0, SeqCst);
            done.join().expect("no panic").expect("it goes on");
        });
        assert_eq!(sleeper.state(), Some('T'), "who stopped it finds it stopped");
        assert_eq!(stopped(desk), None);
    }

    #[test]
    fn one_that_goes_on_or_leads_again_is_another_lead() {
        let (memory, sleeper) = (memory(), Sleeper::stopped());
        let desk = Desk::new(&memory, 0);
        assert!(still(desk, None).is_none(), "nobody leads");
        lead_by(desk, &sleeper, 1);
        let first = still(desk, None).expect("it is stopped");
        assert!(still(desk, Some(first)).is_some_and(|(_, since)| since == first.1), "since then");
        lead_by(desk, &sleeper, 2);
        assert!(still(desk, Some(first)).is_some_and(|(_, since)| since != first.1), "it led again");
        assert_eq!(let_go_on(desk, first.0), Err("it went on by itself".into()));
        assert_eq!(sleeper.state(), Some('T'), "it was left alone");
        let again = Lead::now(desk).expect("a lead");
        sleeper.signal(Signal::CONT);
        wait(|| still(desk, None).is_none());
        assert!(still(desk, Some(first)).is_none());
        assert_eq!(let_go_on(desk, again), Ok(()));
        assert_ne!(sleeper.state(), Some('T'), "whoever let it go on wants it to run");
    }
}
