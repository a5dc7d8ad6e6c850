//! Progress on a terminal (a bar) and in a log (a line now and then), on standard error.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use seawall_load::progress::Progress;

/// Shows progress.
pub struct Shown {
    bar: ProgressBar,
    is_terminal: bool,
    /// The last tenth that was printed, where standard error is no terminal.
    told: AtomicU64,
}

impl Shown {
    pub fn new() -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let target = if is_terminal { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() };
        let bar = ProgressBar::with_draw_target(None, target);
        let style =
            ProgressStyle::with_template("  {bar:28} {human_pos}/{human_len} {msg}  {per_sec}, {eta} left");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Shown { bar, is_terminal, told: AtomicU64::new(0) }
    }
}

impl Progress for Shown {
    fn begin(&self, what: &str, steps: u64) {
        self.bar.reset();
        self.bar.set_length(steps);
        self.bar.set_message(what.to_owned());
        self.bar.enable_steady_tick(Duration::from_millis(250));
        self.told.store(0, Ordering::Relaxed);
    }

    fn advance(&self, steps: u64) {
        self.bar.inc(steps);
        let (done, all) = (self.bar.position(), self.bar.length().unwrap_or(0));
        let tenth = (done * 10).checked_div(all).unwrap_or(0);
        if !self.is_terminal && self.told.fetch_max(tenth, Ordering::Relaxed) < tenth {
            eprintln!("{done}/{all} {}", self.bar.message());
        }
    }

    fn note(&self, text: &str) {
        if self.is_terminal { self.bar.println(text) } else { eprintln!("{text}") }
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
