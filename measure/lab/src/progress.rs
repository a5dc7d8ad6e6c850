//! Progress for people (a bar) and for logs (plain lines), on standard error.

use std::cell::OnceCell;
use std::io::IsTerminal;
use std::time::Instant;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Counts steps.
pub struct Progress {
    bar: ProgressBar,
    plain: bool,
    /// When the first step was done.
    first: OnceCell<Instant>,
}

impl Progress {
    /// For a job of `steps` steps.
    pub fn new(steps: usize) -> Self {
        let plain = !std::io::stderr().is_terminal();
        let target = if plain { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(steps as u64), target);
        let style = ProgressStyle::with_template("  {bar:28} {pos:>3}/{len}  {prefix}  {msg}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.enable_steady_tick(std::time::Duration::from_millis(250));
        Progress { bar, plain, first: OnceCell::new() }
    }

    /// Says nothing.
    pub fn silent() -> Self {
        Progress { bar: ProgressBar::hidden(), plain: false, first: OnceCell::new() }
    }

    /// A line that stays.
    pub fn note(&self, text: &str) {
        if self.plain { errln!("{text}") } else { self.bar.println(text) }
    }

    /// What is being done now.
    pub fn doing(&self, text: &str) {
        self.bar.set_message(text.to_owned());
    }

    /// So many steps fall away.
    pub fn skip(&self, steps: usize) {
        let (_, all) = self.count();
        self.bar.set_length(all.saturating_sub(steps as u64));
    }

    /// Steps done, and all there are.
    fn count(&self) -> (u64, u64) {
        (self.bar.position(), self.bar.length().unwrap_or(0))
    }

    /// One step is done; `text` is its result.
    pub fn done(&self, text: &str) {
        self.bar.inc(1);
        let first = *self.first.get_or_init(Instant::now);
        let (done, all) = self.count();
        // The first step makes the databases: the others are alike, and tell how long they take.
        let left = match done {
            0..3 => String::new(),
            _ if done >= all => String::new(),
            _ => {
                let step = first.elapsed().as_secs_f64() / (done - 1) as f64;
                format!(", about {:.0} s left", step * all.saturating_sub(done) as f64)
            }
        };
        self.bar.set_prefix(left.trim_start_matches(", ").to_owned());
        if self.plain {
            let width = all.to_string().len();
            errln!("[{done:>width$}/{all}{left}] {text}");
        }
    }

    /// All is done: the bar goes away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_falls_away_is_not_waited_for() {
        let progress = Progress::new(5);
        progress.skip(3);
        progress.done("one");
        assert_eq!(progress.count(), (1, 2));
        progress.skip(9);
        assert_eq!(progress.count().1, 0);
    }
}
