//! Keys that the kernel uses are good for so many records, and nobody counts them there: a connection is made anew before.
//!
//! ```text
//!  the log stands (`look`)        the thread that connects        the log stands again
//!  its keys are worn ────────▶ another connection, greeted ────▶ it gets the promise ─ the former one is hung up
//! ```
//!
//! No batch is sent between the two, and the keeper has every one that was: so its copy counts on. It is not brought up to
//! date again, as one that was lost is. A keeper that lags behind is waited for a little, and gets its turn at another look.
//!
//! A key of AES-GCM is safe for 2^24.5 records of full length (RFC 8446, 5.5), and rustls renews the keeper's own after 2^24
//! or 2^23. A keeper answers a record of ours with one of its own at most, so both are well within that.

use std::sync::OnceLock;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use seawall_keeper::peer::Peer;
use seawall_keeper::turn::promise;
use seawall_keeper::writer::Writer;
use seawall_wire::desk::Desk;

/// Records after which keys are worn.
const WORN: u64 = 1 << 22;
/// Records with which they are used up: a connection that could not be made anew is given up.
const USED_UP: u64 = 1 << 23;
/// For tests: every connection is made anew after so many records, whatever is spoken on it.
const VARIABLE: &str = "SEAWALL_TEST_RENEW_AFTER";
/// How long a keeper that lags behind is waited for while nobody commits.
const LAG: Duration = Duration::from_millis(5);
/// Time between two looks for what it has confirmed.
const PAUSE: Duration = Duration::from_micros(100);
/// How long its promise is waited for while nobody commits.
const PROMISE: Duration = Duration::from_millis(500);
/// A connection that was not used for as long may be none any more.
const FRESH: Duration = Duration::from_secs(5);

/// Which connections are to be made anew, and what was made for that.
#[derive(Default)]
pub(super) struct Renewal {
    worn: Vec<usize>,
    /// Connections beside these, on which nothing was promised.
    fresh: Vec<(usize, Peer, Instant)>,
    /// How often each keeper's was made anew.
    times: Vec<u64>,
}

impl Renewal {
    /// How often this keeper's connection was made anew.
    pub fn times(&self, keeper: usize) -> u64 {
        self.times.get(keeper).copied().unwrap_or_default()
    }

    fn count(&mut self, keeper: usize) {
        self.times.resize(self.times.len().max(keeper + 1), 0);
        self.times[keeper] += 1;
    }

    /// Keepers to connect to.
    pub fn wanted(&self) -> Vec<usize> {
        let has_one = |keeper: &usize| self.fresh.iter().any(|(other, ..)| other == keeper);
        self.worn.iter().copied().filter(|keeper| !has_one(keeper)).collect()
    }

    /// There is another connection to this keeper.
    pub fn has_come(&mut self, keeper: usize, peer: Peer) {
        self.fresh.push((keeper, peer, Instant::now()));
    }

    /// The log stands: connections with worn keys are made anew, as far as there are others for them. Those that were.
    pub fn renew(&mut self, writer: &mut Writer, desk: Desk<'_>) -> Vec<usize> {
        self.look(writer, desk);
        let mut renewed = Vec::new();
        for (keeper, peer, since) in std::mem::take(&mut self.fresh) {
            if !self.worn.contains(&keeper) || since.elapsed() > FRESH {
                continue;
            }
            if !has_everything_soon(writer, keeper) {
                self.fresh.push((keeper, peer, since));
                continue;
            }
            self.worn.retain(|worn| *worn != keeper);
            if is_met_again(writer, keeper, peer) {
                self.count(keeper);
                renewed.push(keeper);
            }
        }
        renewed
    }

    /// Which keys are worn. Where they are used up, the connection is given up.
    fn look(&mut self, writer: &mut Writer, desk: Desk<'_>) {
        self.worn.clear();
        for keeper in 0..writer.roster().members.len() {
            match records(writer, desk, keeper) {
                Some(records) if records >= USED_UP => {
                    writer.gives_up(keeper, "its keys are used up: the daemon connects to it again");
                }
                Some(records) if records >= for_a_test().unwrap_or(WORN) => self.worn.push(keeper),
                _ => {}
            }
        }
    }
}

/// What [`VARIABLE`] says.
fn for_a_test() -> Option<u64> {
    static AFTER: OnceLock<Option<u64>> = OnceLock::new();
    *AFTER.get_or_init(|| std::env::var(VARIABLE).ok()?.parse().ok())
}

/// Records that were made with a connection's keys, at most; `None` if they do not wear.
fn records(writer: &Writer, desk: Desk<'_>, keeper: usize) -> Option<u64> {
    let (sent, wears) = writer.records(keeper)?;
    let all = sent + desk.link(keeper).records().load(Relaxed);
    (wears || for_a_test().is_some()).then_some(all)
}

fn has_everything_soon(writer: &mut Writer, keeper: usize) -> bool {
    let begin = Instant::now();
    loop {
        writer.hear(Duration::ZERO);
        if writer.has_everything(keeper) {
            return true;
        }
        if begin.elapsed() > LAG {
            return false;
        }
        std::thread::sleep(PAUSE);
    }
}

/// The keeper promises on the new connection. It may have done so, whatever comes of it: then it does not listen to the
/// former one.
fn is_met_again(writer: &mut Writer, keeper: usize, peer: Peer) -> bool {
    let (epoch, roster) = (writer.head().epoch, writer.roster().clone());
    match peer.has_patience(PROMISE).and_then(|()| promise(peer, epoch, &roster)) {
        Ok(promised) => {
            writer.arrives_again(keeper, promised);
            true
        }
        Err(error) => {
            writer.gives_up(keeper, &error.to_string());
            if error.is_fenced() {
                writer.misses(keeper, &error);
            }
            false
        }
    }
}
