//! A server and its twin, from start to end.
//!
//! ```text
//! read the settings ─ take the lock ─ find the primary, or start it on the current directory ─ start a twin
//!   ─ primary dead: the twin takes over, or else the primary is started again ─ a new twin
//!   ─ twin dead: a new twin
//!   ─ SIGTERM, or the primary ended by itself: the end
//! ```

use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::address::{Address, Listening};
use crate::care::FIRST_PAUSE;
use crate::pair::{Options, Supervisor};
use crate::process::users_of;
use crate::server::{Server, check_version};
use crate::settings::Settings;
use crate::signals::Signals;
use crate::start::{Start, end_orphans};
use crate::state::Directory;
use crate::status::Report;
use crate::takeover::Takeover;
use crate::twin::Twin;
use crate::{end, hook, status};

/// How soon a dead server is noticed.
const TICK: Duration = Duration::from_millis(5);
/// Between two reports.
const PUBLISH: Duration = Duration::from_millis(500);
/// A server that ends so soon, without having had a twin, has a reason that a restart does not change.
const TOO_SOON: Duration = Duration::from_secs(5);
/// So often in a row.
const TOO_OFTEN: u32 = 5;

/// Runs a server and its twin. Returns the exit code.
///
/// # Errors
/// If they cannot be started, or not be kept.
pub fn run(options: Options) -> Result<u8> {
    let (program, arguments) =
        options.command.split_first().context("no server is named: give its command behind --")?;
    let settings = Settings::of(arguments)?;
    settings.check()?;
    check_version(program)?;
    let home = settings.directory()?;
    let directory = Directory::open(&options.state)?;
    let mut state = directory.load(&home)?;
    status::forget(directory.path());
    end_orphans(&directory, &settings, &mut state)?;
    let signals = Signals::take()?;
    let address = Address::of(&settings, &home)?;
    let command = &options.command;
    let start =
        Start { command, settings: &settings, address: &address, directory: &directory, state: &state };
    let (primary, is_adopted) = start.or_find(options.follow)?;
    let now = Instant::now();
    let mut supervisor = Supervisor {
        address,
        is_foreign: is_adopted && options.follow.is_some(),
        options,
        settings,
        directory,
        state,
        signals,
        primary,
        started: now,
        listening: Listening::default(),
        twin: None,
        was_ready: false,
        is_proven: is_adopted,
        failures: 0,
        next_twin: now,
        pause: FIRST_PAUSE,
        trouble: None,
        stopping: false,
        last_takeover_ms: None,
        published: None,
    };
    supervisor.directory.tidy(&supervisor.state);
    supervisor.watch()
}

impl Supervisor {
    fn watch(&mut self) -> Result<u8> {
        loop {
            self.signals.wait(&self.primary, TICK);
            end::forward_signals(self);
            if self.stopping && self.is_foreign {
                end::all(self);
                return Ok(0);
            }
            if self.primary.is_dead()
                && let Some(code) = self.primary_ended()?
            {
                return Ok(code);
            }
            self.look_after_the_twin();
            self.publish();
        }
    }

    /// The primary will never write again. Returns the exit code if that is the end.
    fn primary_ended(&mut self) -> Result<Option<u8>> {
        let seen = Instant::now();
        let number = self.primary.number();
        if let Some(code) = end::is_wanted(self) {
            end::all(self);
            return Ok(Some(code));
        }
        if let Some(twin) = self.twin.take() {
            match self.take_over(&twin) {
                Ok(()) => {
                    self.serves(twin, seen, number);
                    return Ok(None);
                }
                Err(e) => errln!("seawall: the twin cannot take over: {e:#}"),
            }
            end::kill(twin);
        }
        if let Some(code) = self.ended_too_soon() {
            return Ok(Some(code));
        }
        self.restart()?;
        Ok(None)
    }

    /// A server that does not come to live has a reason that a restart does not change. Its exit code is ours then.
    fn ended_too_soon(&mut self) -> Option<u8> {
        if self.started.elapsed() > TOO_SOON || self.was_ready {
            return None;
        }
        self.failures += 1;
        let gives_up = !self.is_proven || self.failures > TOO_OFTEN;
        gives_up.then(|| {
            errln!("seawall: the server ended at once; its own messages are above, or in its log file");
            end::all(self);
            self.primary.wait().map_or(1, end::code)
        })
    }

    fn take_over(&mut self, twin: &Twin) -> Result<()> {
        let takeover = Takeover {
            group: self.primary.group(),
            old: self.settings.place(&self.state.current),
            settings: &self.settings,
            address: &self.address,
            directory: &self.directory,
        };
        let mut control = takeover.prepare(twin)?;
        takeover.decide(twin, &mut self.state)?;
        takeover.promote(twin, &mut control, std::mem::take(&mut self.listening))?;
        self.state.is_promoting = false;
        self.directory.store(&self.state)
    }

    /// The twin is the primary now.
    fn serves(&mut self, twin: Twin, seen: Instant, former: i32) {
        let took = seen.elapsed();
        self.last_takeover_ms = Some(took.as_secs_f64() * 1000.0);
        errln!(
            "seawall: the server {former} is dead; its twin {} took over {:.1} ms after the death was seen",
            twin.server.number(),
            took.as_secs_f64() * 1000.0
        );
        let Twin { server, watch, feed, .. } = twin;
        let mut former = std::mem::replace(&mut self.primary, server);
        // That takes until its memory is freed.
        std::thread::spawn(move || former.wait());
        std::thread::spawn(|| drop((watch, feed)));
        (self.is_foreign, self.was_ready) = (false, false);
        (self.started, self.next_twin) = (Instant::now(), Instant::now());
        if let Some(command) = &self.options.on_takeover {
            hook::run(command, self.primary.number(), &self.address);
        }
        self.published = None;
    }

    /// An ordinary restart, with all its loading.
    fn restart(&mut self) -> Result<()> {
        std::mem::take(&mut self.listening).shut_down();
        // Its ports are its own until then.
        self.primary.wait();
        let users = users_of(&self.state.current, &self.place().directory);
        let other = users.iter().find(|user| user.group != self.primary.group() && user.number == user.group);
        self.primary = match other {
            Some(other) => {
                errln!("seawall: process {} now serves {}", other.number, self.state.current.display());
                Server::adopt(other.number)?
            }
            None => {
                errln!("seawall: the server is dead; it is being started again and loads its data");
                let (command, settings) = (&self.options.command[..], &self.settings);
                let (address, directory, state) = (&self.address, &self.directory, &self.state);
                Start { command, settings, address, directory, state }.start()?
            }
        };
        (self.started, self.next_twin, self.was_ready) = (Instant::now(), Instant::now(), false);
        Ok(())
    }

    fn publish(&mut self) {
        if self.published.is_some_and(|at| at.elapsed() < PUBLISH) {
            return;
        }
        self.published = Some(Instant::now());
        let seen = self.twin.as_ref().map(|twin| twin.watch.seen()).unwrap_or_default();
        let sent = self.twin.as_ref().map(|twin| twin.sent.progress()).unwrap_or_default();
        let report = Report {
            runs: true,
            primary: Some(self.primary.number()),
            current: self.state.current.clone(),
            twin: self.twin.as_ref().map(|twin| twin.server.number()),
            ready: seen.ready.is_some(),
            behind: sent.passed.saturating_sub(seen.applied),
            memory: seen.memory,
            synchronisations: sent.synchronisations,
            trouble: self.trouble.clone().or(sent.trouble).or(seen.trouble),
            takeovers: self.state.takeovers,
            last_takeover_ms: self.last_takeover_ms,
        };
        report.publish(self.directory.path());
    }
}
