//! The terminal of `seawall top`: keys without a line break, a page of its own, everything as before at the end.

use std::io::{IsTerminal, Write, stdin, stdout};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signalfd::SignalFd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{self, LocalModes, OptionalActions, Termios};
use seawall_awr::top::Screen;

use crate::interrupt;

/// The other page, without a cursor; and back.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";

/// A terminal that is ours until this is dropped.
pub struct Terminal {
    /// How it was; absent where keys cannot be read.
    before: Option<Termios>,
    /// Ctrl-C and its kin: they end us, but not before the terminal is as it was.
    signals: SignalFd,
}

impl Terminal {
    /// Takes it. `None`: frames go to a file, or a pipe.
    pub fn take() -> Result<Option<Self>> {
        if !stdout().is_terminal() {
            return Ok(None);
        }
        let signals = interrupt::block()?;
        let before = termios::tcgetattr(stdin()).ok();
        if let Some(before) = &before {
            let mut keys = before.clone();
            keys.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
            termios::tcsetattr(stdin(), OptionalActions::Now, &keys).context("cannot read keys")?;
        }
        write(ENTER);
        Ok(Some(Self { before, signals }))
    }

    /// How large it is now, and whether it may be coloured (<https://no-color.org>).
    pub fn screen(&self) -> Screen {
        let size = termios::tcgetwinsize(stdout()).ok().filter(|s| s.ws_col > 0 && s.ws_row > 0);
        let (width, height) = size.map_or((80, 24), |s| (s.ws_col.into(), s.ws_row.into()));
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        Screen { width, height, colour: !refused && !dumb }
    }

    /// Waits so long. True: somebody pressed q, or sent a signal.
    pub fn quits_within(&self, wait: Duration) -> Result<bool> {
        let end = Instant::now() + wait;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let keys = stdin();
            let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
            if self.before.is_some() {
                fds.push(PollFd::new(&keys, PollFlags::IN));
            }
            match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
                Ok(0) => return Ok(false),
                Ok(_) if !fds[0].revents().is_empty() => return Ok(true),
                Ok(_) => {
                    let mut key = [0];
                    let read = rustix::io::read(&keys, &mut key).unwrap_or(0);
                    // Nobody is at the keyboard any more: the terminal is gone.
                    if read == 0 || matches!(key[0], b'q' | b'Q') {
                        return Ok(true);
                    }
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(e) => return Err(e).context("cannot wait for a key"),
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        write(LEAVE);
        if let Some(before) = &self.before {
            let _ = termios::tcsetattr(stdin(), OptionalActions::Now, before);
        }
    }
}

fn write(text: &str) {
    let mut out = stdout();
    let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
}
