//! A server that a service manager starts: one process notes before its start what there is to replay, another learns
//! when it is ready how long that took. Between the two lies no process of Seawall's.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::speed::Speed;
use super::{PATIENCE, Recovery, kept};

/// The note's kind.
const KIND: &str = "start";

/// Noted before a start.
#[derive(Serialize, Deserialize)]
struct Start {
    /// Since the machine's own, milliseconds.
    at_ms: u64,
    /// What tells how much it will replay; `None`: nothing is to be learned.
    redo: Option<u64>,
}

impl Recovery {
    /// The server is about to be started.
    pub fn note_start(&self) {
        let Some(data) = &self.data else { return };
        let start = Start { at_ms: now_ms(), redo: self.redo_before(data) };
        if let Err(e) = kept::write(data, KIND, &start) {
            errln!("seawall: nothing will be learned from this start: {e}");
        }
    }

    /// The same server is ready. Returns the speed known from now on, if its start shows anything.
    pub fn learn_from_start(&self) -> Option<Speed> {
        let data = self.data.as_deref()?;
        let start: Start = kept::take(data, KIND)?;
        let took = now_ms().checked_sub(start.at_ms).map(Duration::from_millis);
        let took = took.filter(|took| *took < PATIENCE)?;
        let redo = self.replayed(data, start.redo?)?;
        Some(self.learn(data, took, redo))
    }
}

fn now_ms() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1000 + now.tv_nsec as u64 / 1_000_000
}

#[cfg(test)]
pub mod tests {
    use std::fs;

    use seawall_wire::shm::Preset;

    use super::*;
    use crate::recovery::measured;

    const SHUT_DOWN: u32 = 1;
    const IN_PRODUCTION: u32 = 6;

    /// A data directory of PostgreSQL, as far as it tells a crash.
    pub struct Crashed(pub tempfile::TempDir);

    impl Crashed {
        pub fn new() -> Self {
            Self(tempfile::tempdir().expect("a directory"))
        }

        pub fn is(&self, state: u32, redo: u64) {
            let mut file = vec![0_u8; 8192];
            for (at, bytes) in
                [(8, &1300_u32.to_ne_bytes()[..]), (16, &state.to_ne_bytes()), (40, &redo.to_ne_bytes())]
            {
                file[at..at + bytes.len()].copy_from_slice(bytes);
            }
            fs::create_dir_all(self.0.path().join("global")).expect("made");
            fs::write(self.0.path().join("global/pg_control"), file).expect("written");
        }

        pub fn recovery(&self) -> Recovery {
            Recovery::of(Preset::Postgres, Some(self.0.path()), Duration::from_secs(1)).expect("a goal")
        }

        /// A start that replays 100 MiB in a moment, until it is learned from.
        pub fn start(&self) {
            self.is(IN_PRODUCTION, 16 << 20);
            self.recovery().note_start();
            self.is(IN_PRODUCTION, 116 << 20);
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    impl Drop for Crashed {
        fn drop(&mut self) {
            for kind in ["json", "start"] {
                let _ = fs::remove_file(kept::file(self.0.path(), kind));
            }
        }
    }

    #[test]
    fn what_a_start_took_counts_from_the_next_one_on() {
        let data = Crashed::new();
        assert!(data.recovery().learn_from_start().is_none(), "no start was noted");
        data.is(SHUT_DOWN, 16 << 20);
        data.recovery().note_start();
        data.is(IN_PRODUCTION, 16 << 20);
        assert!(data.recovery().learn_from_start().is_none(), "it was stopped in order");

        let before = data.recovery().most();
        data.start();
        let speed = data.recovery().learn_from_start().expect("a crash recovery");
        assert!(speed.measured && speed.replayed > f64::from(100 << 20), "{speed:?}");
        assert!(data.recovery().most() > before && data.recovery().learn_from_start().is_none(), "once");
        assert_eq!(measured::load(Preset::Postgres, data.0.path()), speed);
    }
}
