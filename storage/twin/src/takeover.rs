//! A twin takes a dead primary's place.
//!
//! ```text
//!  1 tail     the feed reads the append-only file to its end            nothing is changed
//!  2 apply    the twin says it has applied the last whole command       before here: whatever fails,
//!  3 sync     its own append-only file is durable                       the primary is started again
//!  4 guard    the old directory's manifest is a text
//!  5 alone?   no other server works in the old directory                else: the guard is lowered
//!  6 note     the twin's directory is the current one, durably          from here on the old directory is superseded
//!  7 promote  it is a primary with the primary's settings
//!  8 address  ports and the socket's path are its own                   now clients reach it
//! ```
//!
//! Nothing that was acknowledged is missing in 8, since the dead server had written it to its file before it answered, and
//! no power cut undoes that, since 3 and 6 are durable. A crash between 4 and 6 leaves a guard in the current directory,
//! which the next start lowers; one between 6 and the end of 8 leaves a twin that may be a replica still, which the next start
//! ends, to start its directory as any server's.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::address::{Address, Listening};
use crate::control::Control;
use crate::guard;
use crate::log::Place;
use crate::process::users_of;
use crate::server::set_back;
use crate::settings::Settings;
use crate::state::{Directory, State};
use crate::twin::Twin;
use crate::watch::sync;

/// A twin that makes no progress for so long is not waited for.
const STUCK: Duration = Duration::from_secs(10);
/// Between two questions how far it is.
const PAUSE: Duration = Duration::from_micros(500);
/// How long a port may belong to the dead server: until the kernel has freed its memory.
const PORT: Duration = Duration::from_secs(60);

/// What a takeover is about.
pub struct Takeover<'a> {
    /// The dead server's process group.
    pub group: i32,
    /// Its append-only file.
    pub old: Place,
    /// What the configuration says.
    pub settings: &'a Settings,
    /// What clients connect to.
    pub address: &'a Address,
    /// Where the state is noted.
    pub directory: &'a Directory,
}

impl Takeover<'_> {
    /// Steps 1 to 3.
    ///
    /// # Errors
    /// If the twin cannot take over. Nothing was changed.
    pub fn prepare(&self, twin: &Twin) -> Result<Control> {
        let Some(id) = twin.watch.seen().ready else {
            let why = twin.watch.seen().trouble.or(twin.sent.progress().trouble);
            bail!("the twin was not ready ({})", why.unwrap_or_else(|| "it was still loading".into()));
        };
        let sent = twin.feed.finish(STUCK).context("cannot send the end of the append-only file")?;
        ensure!(sent.id == id, "the twin has begun to load again");
        let mut control = twin.control(STUCK)?;
        settle(&mut control, &id, sent.whole, &self.settings.place(&twin.directory))?;
        Ok(control)
    }

    /// Steps 4 to 6.
    ///
    /// # Errors
    /// If the old directory is still the current one.
    pub fn decide(&self, twin: &Twin, state: &mut State) -> Result<()> {
        guard::raise(&self.old, &twin.directory, self.directory.path())?;
        let users = users_of(&state.current, &self.old.directory);
        if let Some(other) = users.iter().find(|user| user.group != self.group) {
            guard::lower(&self.old)?;
            bail!("process {} works in {} too", other.number, state.current.display());
        }
        let mut decided = state.clone();
        (decided.current, decided.takeovers) = (twin.directory.clone(), state.takeovers + 1);
        decided.is_promoting = true;
        self.directory.store(&decided)?;
        *state = decided;
        Ok(())
    }

    /// Steps 7 and 8.
    ///
    /// # Errors
    /// If the twin does not serve. Its directory is the current one.
    pub fn promote(&self, twin: &Twin, control: &mut Control, listening: Listening) -> Result<()> {
        for (name, value) in set_back(self.settings) {
            control.call(&["CONFIG", "SET", name, &value])?;
        }
        control.call(&["REPLICAOF", "NO", "ONE"])?;
        for name in ["masteruser", "masterauth"] {
            control.call(&["CONFIG", "SET", name, self.settings.value(name).unwrap_or("")])?;
        }
        listening.shut_down();
        let ports = [("port", self.address.port), ("tls-port", self.address.tls_port)];
        for (name, port) in ports.into_iter().filter(|(_, port)| *port != 0) {
            listen(control, name, port)?;
        }
        self.address.take_socket(&twin.socket)?;
        if let Some(value) = self.settings.value("tls-replication") {
            control.call(&["CONFIG", "SET", "tls-replication", value])?;
        }
        // It ends this connection, too.
        control.send(&["ACL", "DELUSER", crate::control::USER]);
        Ok(())
    }
}

/// Steps 2 and 3: what makes the twin's directory as good as the dead server's.
fn settle(control: &mut Control, id: &str, whole: u64, place: &Place) -> Result<()> {
    await_applied(control, id, whole)?;
    sync(place)
}

/// Waits until the twin has applied exactly what was sent and is whole.
fn await_applied(control: &mut Control, id: &str, whole: u64) -> Result<()> {
    let (mut last, mut since) = (0, Instant::now());
    loop {
        let applied = control.info()?.applied(id).context("the twin no longer follows the server")?;
        ensure!(applied <= whole, "the twin has applied {applied} bytes of {whole}");
        if applied == whole {
            return Ok(());
        }
        if applied != last {
            (last, since) = (applied, Instant::now());
        }
        ensure!(
            since.elapsed() < STUCK,
            "the twin has applied {applied} bytes of {whole}, and makes no progress"
        );
        std::thread::sleep(PAUSE);
    }
}

fn listen(control: &mut Control, name: &str, port: u16) -> Result<()> {
    let end = Instant::now() + PORT;
    loop {
        match control.call(&["CONFIG", "SET", name, &port.to_string()]) {
            Ok(_) => return Ok(()),
            Err(e) if Instant::now() > end => return Err(e).with_context(|| format!("{name} {port}")),
            Err(_) => std::thread::sleep(Duration::from_millis(2)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    use super::*;

    /// A twin that says these offsets, one after another; `None`: that it has lost its primary. Returns how often it was asked.
    fn settled(whole: u64, says: &[Option<u64>]) -> (Result<()>, usize) {
        let dir = tempfile::tempdir().expect("a directory");
        let place = Place { directory: dir.path().join("log"), name: "a".into() };
        std::fs::create_dir(&place.directory).expect("made");
        std::fs::write(place.manifest(), "").expect("written");
        let (ours, mut twins) = UnixStream::pair().expect("a pair");
        let answers = says.iter().map(|at| {
            let (link, at) = at.map_or(("down", 0), |at| ("up", at));
            let text = format!(
                "role:slave\r\nmaster_link_status:{link}\r\nmaster_replid:x\r\nslave_repl_offset:{at}\r\n\
                 aof_enabled:1\r\naof_last_write_status:ok\r\n"
            );
            format!("${}\r\n{text}\r\n", text.len())
        });
        let answers: Vec<String> = answers.collect();
        let twin = std::thread::spawn(move || {
            let mut asked = 0;
            for answer in answers {
                if twins.read(&mut [0; 4096]).is_ok_and(|n| n > 0) {
                    asked += 1;
                    twins.write_all(answer.as_bytes()).expect("answered");
                }
            }
            asked
        });
        let done = settle(&mut Control::on(ours), "x", whole, &place);
        (done, twin.join().expect("a twin"))
    }

    #[test]
    fn a_twin_is_waited_for_until_it_has_applied_exactly_what_was_whole() {
        let (done, asked) = settled(7, &[Some(3), Some(5), Some(5), Some(7)]);
        assert!(done.is_ok() && asked == 4, "{done:?} after {asked}");
        // More than that would be half a transaction, and another primary's commands are none of this one.
        assert!(settled(7, &[Some(3), Some(8)]).0.is_err());
        assert!(settled(7, &[Some(3), None]).0.is_err());
    }
}
