//! Harden: one leader hardens everybody's records while the others wait for it.
//!
//! A sync needs a capture that *begins* after the sync did: that is its ticket. An LSN would not do: a record drawn
//! below the cut and finished after its segment was noted is not in that batch.

use core::sync::atomic::Ordering::{Acquire, Relaxed, SeqCst};
use core::sync::atomic::fence;

use rustix::io::Errno;
use rustix::thread::futex;
use seawall_stats::{Class, Event, ticks};
use seawall_wire::desk::Desk;

use super::alone::{self, Counts};
use super::company;
use super::handle::Journal;
use super::lead::{REPLACED, Wait};
use super::writer::Writer;
use crate::append::Log;

/// Why records were not hardened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unhardened {
    /// The journal has no room for them now.
    Full,
    /// The device failed, for good: nothing is hardened any more.
    Failed,
    /// This process does not reach the device, and the daemon did not step in either.
    OutOfReach,
}

/// Naps after which the daemon is asked over its socket: some 50 ms.
const PATIENCE: u32 = 25;
/// How long the daemon, leading for others, looks for them before it sleeps.
#[cfg(feature = "std")]
const AWAKE_NS: u64 = 30_000;
/// How long it sleeps between two checks whether to go on.
#[cfg(feature = "std")]
const DOZE: futex::Timespec = futex::Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// The number of the next capture: any capture that begins after this load sees what this thread stored.
fn draw_ticket(desk: Desk<'_>) -> u64 {
    fence(SeqCst);
    desk.begun().load(SeqCst) + 1
}

fn wake_leader(desk: Desk<'_>) {
    if desk.dozes().swap(0, SeqCst) != 0 {
        let _ = futex::wake(desk.dozes(), futex::Flags::empty(), 1);
    }
}

impl From<Unhardened> for Errno {
    fn from(why: Unhardened) -> Self {
        match why {
            Unhardened::Full => Self::NOSPC,
            Unhardened::Failed | Unhardened::OutOfReach => Self::IO,
        }
    }
}

impl Journal {
    /// Returns when every record up to `lsn` that was whole at the time of the call is on the device: `None` if it was
    /// there already, otherwise how many ticks this thread spent on writing to it, which are 0 where other hosts keep
    /// the log.
    ///
    /// # Errors
    /// [`Unhardened`]. The records may be on the device all the same.
    pub fn harden(&self, log: &Log, lsn: u64) -> Result<Option<u64>, Unhardened> {
        let desk = self.desk(&log.pool);
        let has_no_ring = self.has_no_ring(&log.pool);
        if has_no_ring {
            // This comes before anything is taken for hardened: at some point the keepers' copies stop being read.
            match alone::wait(desk) {
                Counts::Keepers => {}
                Counts::Disk => return Err(Unhardened::Full),
                Counts::Nothing => return Err(Unhardened::Failed),
                Counts::Unknown => return Err(Unhardened::OutOfReach),
            }
        }
        if lsn <= desk.hardened().load(Acquire) {
            return Ok(None);
        }
        let waited = match self.way.lender() {
            // Only the daemon sends to keepers, for now or for this front, and it is awake.
            Some(lender) if has_no_ring && (desk.acks().load(SeqCst) == 0 || !lender.reaches_keepers()) => {
                self.wait_for_daemon(log)
            }
            _ => self.wait(log),
        };
        let done = match (waited, self.way.lender()) {
            (Err(Errno::BADF), Some(lender)) => lender.harden().map(|()| 0),
            (done, _) => done,
        };
        // The wait for keepers is recorded once for each batch: no device is written to.
        let on_device = |spent| if has_no_ring { 0 } else { spent };
        done.map(|spent| Some(on_device(spent))).map_err(|error| match error {
            Errno::NOSPC => Unhardened::Full,
            _ if desk.failed().load(SeqCst) != 0 => Unhardened::Failed,
            _ => Unhardened::OutOfReach,
        })
    }

    /// Waits for a capture that begins from now on.
    fn wait(&self, log: &Log) -> Result<u64, Errno> {
        let desk = self.desk(&log.pool);
        let ticket = draw_ticket(desk);
        let is_first = company::join(desk);
        let (mut wait, mut spent, clock) =
            (Wait::new(desk, self.client(), is_first), 0, log.shm.header().clock());
        loop {
            wait.look(ticket);
            if desk.done().load(Acquire) >= ticket {
                return Ok(spent);
            }
            if desk.failed().load(Acquire) != 0 {
                return Err(Errno::IO);
            }
            if alone::is_alone(desk) {
                return Err(Errno::NOSPC);
            }
            if let Some(ns) = company::patience(desk, clock) {
                wait.gather(ns);
                continue;
            }
            match wait.try_lead() {
                Some(lead) => {
                    let lead = Writer::new(lead, &self.way)?;
                    let done = self.round(log, &lead, ticket);
                    spent += lead.spent();
                    // The thread that took its place may have served it.
                    done.or_else(|error| if error == REPLACED { Ok(()) } else { Err(error) })?;
                }
                None => wait.nap(),
            }
        }
    }

    /// Waits for a capture that begins from now on and is led by the daemon.
    ///
    /// # Errors
    /// EIO once the copies failed; EBADF if none comes for a while: another daemon may be in charge by now.
    fn wait_for_daemon(&self, log: &Log) -> Result<u64, Errno> {
        let desk = self.desk(&log.pool);
        let ticket = draw_ticket(desk);
        company::join(desk);
        let (mut wait, begin) = (Wait::new(desk, self.client(), false), ticks());
        desk.wanted().fetch_max(ticket, SeqCst);
        wake_leader(desk);
        while wait.naps() < PATIENCE {
            wait.look(ticket);
            if desk.done().load(Acquire) >= ticket {
                return Ok(ticks().wrapping_sub(begin));
            }
            if desk.failed().load(Acquire) != 0 {
                return Err(Errno::IO);
            }
            if alone::is_alone(desk) {
                return Err(Errno::NOSPC);
            }
            wait.doze();
        }
        Err(Errno::BADF)
    }

    /// Leads for threads that cannot, while `goes_on` says so. Looks for them for a while before it sleeps.
    #[cfg(feature = "std")]
    pub fn lead_for_others(&self, log: &Log, goes_on: impl Fn() -> bool) {
        let (desk, clock) = (self.desk(&log.pool), log.shm.header().clock());
        let is_wanted =
            || desk.done().load(Acquire) < desk.wanted().load(SeqCst) && desk.failed().load(Acquire) == 0;
        while goes_on() {
            let begin = ticks();
            while !is_wanted() && clock.ns(ticks().wrapping_sub(begin)) < AWAKE_NS {
                core::hint::spin_loop();
            }
            if is_wanted() {
                // Those who wait see the outcome themselves.
                let _ = self.wait(log);
                continue;
            }
            desk.dozes().store(1, SeqCst);
            if !is_wanted() {
                // Woken or timed out, it looks again.
                let _ = futex::wait(desk.dozes(), futex::Flags::empty(), 1, Some(&DOZE));
            }
            desk.dozes().store(0, SeqCst);
        }
    }

    /// One capture, unless the ticket was served meanwhile.
    fn round(&self, log: &Log, lead: &Writer<'_>, ticket: u64) -> Result<(), Errno> {
        let desk = self.desk(&log.pool);
        if desk.done().load(Acquire) >= ticket {
            return Ok(());
        }
        company::count(desk);
        let capture = desk.begun().fetch_add(1, SeqCst) + 1;
        let stable = log.stable_lsn();
        let before = lead.spent();
        let captured = self.capture(log, lead);
        self.waited_for_keepers(log, lead.spent() - before);
        captured?;
        desk.leads().fetch_add(1, Relaxed);
        desk.hardened().fetch_max(stable, SeqCst);
        desk.done().fetch_max(capture, SeqCst);
        Ok(())
    }

    /// Records how long sending batches to keepers took, until enough had confirmed them. The leader may have no lane.
    fn waited_for_keepers(&self, log: &Log, spent: u64) {
        if spent != 0 && self.has_no_ring(&log.pool) {
            let all = log.shm.stats(log.shm.shape().lanes);
            all.record_shared(Event::LogFileRemoteWrite, Class::Log, log.shm.header().clock().ns(spent));
        }
    }
}
