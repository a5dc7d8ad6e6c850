//! `seawall cache refresh --follow`: asks for tables again when one was rewritten, without another command.
//!
//! PostgreSQL writes a rewritten table into new files, and empties the old ones when the transaction has ended; they vanish at
//! the next checkpoint. So a file of a table that is empty or gone, and was not before, says that there are others. A
//! new index or partition leaves no such trace: a look now and then finds it.
//!
//! It is a process of its own, and not the daemon's work, because it is the user's psql that may ask the server: the daemon
//! runs nothing that somebody gave it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::Result;
use seawall_daemon::cache::Listed;

use super::super::ask::connect;
use super::again::ask_again;
use super::asking::{Which, ask};

/// How often files are looked at.
const LOOK: Duration = Duration::from_secs(1);
/// How often the daemon is asked which tables there are: somebody may name another one.
const LIST: Duration = Duration::from_secs(30);
/// The shortest time from one question to the server to the next: whoever rewrites tables all the time is not followed more
/// closely.
const REST: Duration = Duration::from_secs(5);
/// The longest.
const AT_LEAST: Duration = Duration::from_secs(600);
/// How often a follower without a table looks: whether there is one to follow, or no daemon any more.
const IDLE: Duration = Duration::from_secs(10);

/// What is there of a table's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Gone,
    Empty,
    Filled,
}

/// The tables' files, and what was there of them before the server was asked.
type Seen = BTreeMap<PathBuf, State>;

/// Looks in vain, one after the other, after which nobody believes in a daemon any more.
const VAIN: u32 = 60;

/// Follows until the daemon ends, and with `waits` beyond that.
///
/// # Errors
/// If no daemon can be asked, or the server cannot be asked the first time. Later it reports a failure and tries again,
/// until for a minute nobody can say whether there is a daemon. With `waits` it reports all of that, each once, and
/// tries again.
pub fn follow(which: &Which, psql: &str, waits: bool) -> Result<()> {
    let mut follower = Follower { which, psql, seen: Seen::new(), is_owed: true, told: String::new() };
    match follower.ask() {
        Err(error) if !waits => return Err(error),
        Err(error) => tell(&error, &mut follower.told),
        Ok(()) => {}
    }
    let (mut asked, mut listed) = (Instant::now(), Instant::now());
    let mut vain = 0;
    loop {
        std::thread::sleep(follower.pause());
        match connect(&which.pool_asked_for()) {
            Ok((_, None)) if !waits => return Ok(()),
            Ok((_, Some(_))) => vain = 0,
            Err(error) if !waits && vain >= VAIN => return Err(error),
            // The next one may know other tables.
            Ok((_, None)) => follower.is_owed = true,
            Err(_) => vain += 1,
        }
        if listed.elapsed() >= LIST {
            listed = Instant::now();
            follower.look_for_others();
        }
        let is_news = follower.is_owed || follower.is_rewritten();
        if (is_news && asked.elapsed() >= REST) || asked.elapsed() >= AT_LEAST {
            asked = Instant::now();
            match follower.ask() {
                Ok(()) => follower.told.clear(),
                Err(error) => tell(&error, &mut follower.told),
            }
        }
    }
}

/// The follower.
struct Follower<'a> {
    which: &'a Which,
    psql: &'a str,
    seen: Seen,
    /// The server is to be asked, whatever the files say: nobody has, or there was no answer.
    is_owed: bool,
    /// What was wrong at last.
    told: String,
}

impl Follower<'_> {
    /// Asks the server; if there is no answer, it is asked again.
    fn ask(&mut self) -> Result<()> {
        self.is_owed = true;
        self.seen = ask_once_more(self.which, self.psql, &self.seen)?;
        self.is_owed = false;
        Ok(())
    }

    fn is_rewritten(&self) -> bool {
        self.seen.iter().any(|(path, before)| is_news(*before, state(path)))
    }

    /// Whether somebody has named another table.
    fn look_for_others(&mut self) {
        let Ok((_, now)) = ask(self.which) else { return };
        self.is_owed |= files(&now).any(|path| !self.seen.contains_key(path));
    }

    fn pause(&self) -> Duration {
        if self.seen.is_empty() && !self.is_owed { IDLE } else { LOOK }
    }
}

/// Says what is wrong, once.
fn tell(error: &anyhow::Error, told: &mut String) {
    let text = format!("{error:#}");
    if *told != text {
        errln!("seawall: {text}");
        *told = text;
    }
}

/// Whether this says that the table has other files now. One that is filled again was not rewritten.
fn is_news(before: State, now: State) -> bool {
    now != State::Filled && now != before
}

/// Asks the server, and says what was there of the files before: one that is emptied while the server answers is news.
///
/// A file that nobody had looked at counts as filled: if it is empty, somebody may have rewritten the table meanwhile, and
/// the server is asked once more.
fn ask_once_more(which: &Which, psql: &str, seen: &Seen) -> Result<Seen> {
    let before: Seen = seen.keys().map(|path| (path.clone(), state(path))).collect();
    let now = ask_again(which, psql)?;
    Ok(files(&now).map(|path| (path.clone(), before.get(path).copied().unwrap_or(State::Filled))).collect())
}

fn files(listed: &Listed) -> impl Iterator<Item = &PathBuf> {
    let of_tables = listed.policies.iter().filter(|policy| policy.rule.table.is_some());
    of_tables.map(|policy| &policy.rule.path)
}

fn state(path: &std::path::Path) -> State {
    match std::fs::metadata(path) {
        Ok(stat) if stat.len() > 0 => State::Filled,
        Ok(_) => State::Empty,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => State::Gone,
        // Not ours to see: it is asked for now and then all the same.
        Err(_) => State::Filled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_emptied_or_has_gone_is_news_once() {
        use State::{Empty, Filled, Gone};
        for (before, now) in [(Filled, Empty), (Filled, Gone), (Empty, Gone)] {
            assert!(is_news(before, now), "{before:?} {now:?}");
        }
        for (before, now) in [(Filled, Filled), (Empty, Empty), (Empty, Filled), (Gone, Gone), (Gone, Filled)]
        {
            assert!(!is_news(before, now), "{before:?} {now:?}");
        }
    }
}
