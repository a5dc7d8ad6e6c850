//! Which processes have not run lately, so that nobody has to look what they opened: reading the descriptors and
//! mappings of every process of the same user takes milliseconds, and a database opens its log's segments all the time.
//!
//! A process of one thread opens nothing while it does not run, and the kernel counts the nanoseconds that it ran
//! (`/proc/PID/schedstat`; kernel doc `scheduler/sched-stats`). The count of one that is on a processor lags behind, so
//! its state is read first: one that was not running then had been counted.
//!
//! Looks at events follow each other: read all that have come, then look. What was opened after the reading is an
//! event of the next look, and may be in this look's count already. So a process is let off when its count is that of
//! the look *before* the last one, or of an earlier one.
//!
//! Not let off, ever: processes of several threads, of which io_uring's workers are some, and of other users, of whom
//! less is to be seen; any where the kernel does not count.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::os::unix::fs::MetadataExt;

use crate::process;

/// What processes were seen to have run, from look to look.
#[derive(Debug, Default)]
pub struct Asleep {
    look: u64,
    seen: HashMap<u32, Seen>,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    ran: Ran,
    /// The first look that saw this.
    since: u64,
}

/// A process and how long it ran: with its start, an id that was used again is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Ran {
    started_ns: u64,
    ran_ns: u64,
}

impl Asleep {
    /// Begins a look, after its events were read. Returns the processes among `pids` that cannot have caused them.
    pub fn look(&mut self, pids: impl IntoIterator<Item = u32>) -> HashSet<u32> {
        let me = rustix::process::geteuid().as_raw();
        self.judge(pids.into_iter().filter_map(|pid| Some((pid, ran(pid, me)?))))
    }

    fn judge(&mut self, found: impl Iterator<Item = (u32, Ran)>) -> HashSet<u32> {
        self.look += 1;
        let seen = |(pid, ran)| {
            let before = self.seen.get(&pid).filter(|seen| seen.ran == ran);
            (pid, Seen { ran, since: before.map_or(self.look, |seen| seen.since) })
        };
        self.seen = found.map(seen).collect();
        let is_let_off = |seen: &Seen| seen.since + 2 <= self.look;
        self.seen.iter().filter(|(_, seen)| is_let_off(seen)).map(|(pid, _)| *pid).collect()
    }
}

/// How long a process of this user has run. `None` if it runs now, or may do something without running.
fn ran(pid: u32, uid: u32) -> Option<Ran> {
    if fs::metadata(format!("/proc/{pid}")).ok()?.uid() != uid {
        return None;
    }
    let stat = process::stat(pid).filter(|stat| stat.state != 'R' && stat.threads == 1)?;
    let counted = fs::read_to_string(format!("/proc/{pid}/schedstat")).ok()?;
    let ran_ns = counted.split_ascii_whitespace().next()?.parse().ok().filter(|ran_ns| *ran_ns > 0)?;
    Some(Ran { started_ns: process::started_ns(&stat), ran_ns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::process::{Child, Command, Stdio};

    const LATER: Ran = Ran { started_ns: 1, ran_ns: 3 };
    const BEFORE: Ran = Ran { started_ns: 1, ran_ns: 2 };

    fn look(asleep: &mut Asleep, ran: Ran) -> bool {
        asleep.judge([(7, ran)].into_iter()).contains(&7)
    }

    #[test]
    fn who_ran_after_the_last_reading_is_looked_at_in_the_next_look() {
        let mut asleep = Asleep::default();
        // The first look cannot tell, the second one's events may be older than the first one's count.
        assert_eq!([BEFORE; 4].map(|ran| look(&mut asleep, ran)), [false, false, true, true]);
        // It ran between the reading of a look and its count, and what it opened is an event of the next one.
        assert_eq!([LATER; 3].map(|ran| look(&mut asleep, ran)), [false, false, true]);
    }

    #[test]
    fn an_id_that_was_used_again_is_another_process() {
        let mut asleep = Asleep::default();
        assert!([BEFORE; 3].map(|ran| look(&mut asleep, ran))[2]);
        assert!(!look(&mut asleep, Ran { started_ns: 2, ..BEFORE }));
    }

    #[test]
    fn who_was_not_there_begins_anew() {
        let mut asleep = Asleep::default();
        assert!([BEFORE; 3].map(|ran| look(&mut asleep, ran))[2]);
        assert!(asleep.judge(std::iter::empty()).is_empty());
        assert!(!look(&mut asleep, BEFORE));
    }

    /// A shell that says something for every line that it is sent.
    fn shell() -> Child {
        let mut shell = Command::new("sh");
        shell.args(["-c", "while read line; do echo; done"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        shell.spawn().expect("spawned")
    }

    fn work(child: &mut Child) {
        child.stdin.as_mut().expect("piped").write_all(b"\n").expect("sent");
        child.stdout.as_mut().expect("piped").read_exact(&mut [0]).expect("answered");
        while process::stat(child.id()).expect("alive").state == 'R' {
            std::thread::yield_now();
        }
    }

    #[test]
    fn a_process_that_waits_is_let_off_until_it_ran() {
        let mut child = shell();
        work(&mut child);
        let mut asleep = Asleep::default();
        let mut is_let_off = || asleep.look([child.id()]).contains(&child.id());
        assert_eq!([(); 3].map(|()| is_let_off()), [false, false, true]);
        work(&mut child);
        assert_eq!([(); 3].map(|()| asleep.look([child.id()]).contains(&child.id())), [false, false, true]);
        drop(child.stdin.take());
        child.wait().expect("ended");
    }

    #[test]
    fn of_several_threads_nobody_knows() {
        let (end, wait) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || wait.recv());
        let mut asleep = Asleep::default();
        let me = std::process::id();
        assert!([(); 4].iter().all(|()| !asleep.look([me]).contains(&me)));
        drop(end);
        let _ = other.join();
    }
}
