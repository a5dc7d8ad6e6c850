//! What a keeper does for its logs beside their writers' requests: it makes durable what is not, and files shorter.

use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use seawall_media::locks::lock;

use super::Keeper;
use crate::log::Log;
use crate::spool::{self, Step};

/// How long the log is left to its writer after each step towards a shorter file: so many times what the step took, and at
/// least so long.
const RESTS: u32 = 4;
const REST: Duration = Duration::from_millis(1);

impl Keeper {
    /// Makes durable what is not, and makes files shorter that have grown. It holds no log's lock while the disk takes its
    /// time, or whoever waits for that log would wait for the disk. To be called again and again by one thread; true while
    /// there is more to do at once.
    pub fn tidy(&self) -> bool {
        let logs: Vec<_> = {
            let logs = lock(&self.logs);
            logs.values().cloned().collect()
        };
        let mut more = false;
        for log in logs {
            let behind = lock(&log).behind();
            if let Some((file, at)) = behind {
                // Without the log's lock: it goes on meanwhile.
                let done = file.sync_data();
                lock(&log).is_behind_no_more(at, done);
            }
            more |= shorten(&log);
        }
        more
    }
}

/// A step towards a shorter file of a log. True while there is more to do.
fn shorten(log: &Mutex<Log>) -> bool {
    let room = lock(log).wants_room();
    if let Some((path, image)) = room {
        spool::make_room(&path, image);
    }
    let begin = Instant::now();
    let step = lock(log).shorten();
    match step {
        Step::Nothing => false,
        Step::More => {
            // A lock does not go to the thread that waits for it: without a rest one step after the other would have it.
            thread::sleep((begin.elapsed() * RESTS).max(REST));
            true
        }
        Step::Sync(file) => {
            let synced = file.sync_all();
            lock(log).takes_turns(synced);
            false
        }
    }
}
