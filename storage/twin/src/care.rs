//! That there is a twin: one is started, noticed when it is ready and when it is dead, and followed by another one.

use std::time::{Duration, Instant};

use anyhow::Result;

use crate::address::Listening;
use crate::pair::Supervisor;
use crate::twin::{Site, Twin};
use crate::{end, guard};

/// Between two twins that did not live, at first and at last.
pub const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

impl Supervisor {
    /// To be called now and then.
    pub fn look_after_the_twin(&mut self) {
        if let Some(twin) = &mut self.twin {
            if twin.server.is_dead() {
                self.has_no_twin("the twin ended; its own messages are above, or in its log file".into());
            } else if !self.was_ready && twin.watch.seen().ready.is_some() {
                self.twin_is_ready();
            }
        } else if self.next_twin <= Instant::now() && self.place().manifest().exists() {
            match self.start_twin() {
                Ok(twin) => {
                    (self.twin, self.was_ready, self.trouble) = (Some(twin), false, None);
                }
                Err(e) => self.has_no_twin(format!("cannot start a twin: {e:#}")),
            }
        }
    }

    /// From now on the server may die.
    fn twin_is_ready(&mut self) {
        errln!("seawall: the twin is ready");
        (self.was_ready, self.is_proven, self.failures) = (true, true, 0);
        self.pause = FIRST_PAUSE;
        self.listening = Listening::borrow(self.primary.number(), &self.primary);
        let home = self.settings.place(&self.state.home);
        if self.state.current != self.state.home
            && let Err(e) = guard::empty(&home)
        {
            errln!("seawall: {}: {e:#}", home.directory.display());
        }
    }

    /// The primary goes on without; after a while there is another one.
    fn has_no_twin(&mut self, why: String) {
        errln!("seawall: {why}; the next twin is started in {} s", self.pause.as_secs());
        self.twin.take().into_iter().for_each(end::kill);
        self.directory.tidy(&self.state);
        self.trouble = Some(why);
        self.next_twin = Instant::now() + self.pause;
        self.pause = LONGEST_PAUSE.min(self.pause * 2);
    }

    fn start_twin(&mut self) -> Result<Twin> {
        self.state.last_twin += 1;
        self.directory.store(&self.state)?;
        self.directory.tidy(&self.state);
        let (directory, addition) = self.directory.twin(self.state.last_twin);
        let site = Site {
            command: &self.options.command,
            settings: &self.settings,
            address: &self.address,
            follows: self.place(),
            directory,
            addition,
        };
        Twin::start(site)
    }
}
