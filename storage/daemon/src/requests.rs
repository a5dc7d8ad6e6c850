//! Requests: one thread per connection, one reply per request.
//!
//! Every byte is a stranger's until the peer's credentials are known, and untrusted afterwards: a message of
//! the wrong length, version or kind is answered with a status, never with a panic.

mod answer;

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;

use seawall_core::journal::{Copies as _, Lent};
use seawall_core::{Errno, FileRef};
use seawall_wire::message::{Kind, MAGIC, Reply, Request, Retire, Status};
use zerocopy::FromBytes;

use crate::cache::{self, Zone};
use crate::net::{self, Message, Peer};
use crate::parts::files::real_sync;
use crate::state::Daemon;
use crate::unmanaged::Unmanaged;
use crate::{
    ahead, closing, control, destaging, directories, freeze, guarding, hello, lend, letting_go, outside,
    rebuild, register, roots, status, tablespaces, tree, unborn, users, warden,
};
use answer::{Answer, answered, send};

/// One connection: the holds it has.
struct Connection<'d> {
    daemon: &'d Daemon,
    peer: Peer,
    holds: bool,
    /// The freeze that ends with it.
    freeze: Option<u64>,
    /// The daemon is to end once the answer is sent: nobody waits for this thread then.
    ends: bool,
}

/// Serves a connection until it ends.
pub(crate) fn serve(daemon: &Daemon, socket: &OwnedFd) {
    let Ok(peer) = net::peer(socket) else { return };
    let mut connection = Connection::new(daemon, peer);
    while let Ok(Some(message)) = net::receive(socket) {
        let answer = connection.answer(&message);
        // Before the front goes on: as long as a copy of its descriptor is open, its locks on the file hold.
        drop(message);
        let sent = send(socket, answer);
        if connection.ends {
            daemon.lifetime.end();
        }
        if sent.is_err() {
            break;
        }
    }
    connection.release();
    if let Some(id) = connection.freeze {
        freeze::thaw_own(daemon, id);
    }
}

impl<'d> Connection<'d> {
    fn new(daemon: &'d Daemon, peer: Peer) -> Self {
        Self { daemon, peer, holds: false, freeze: None, ends: false }
    }

    /// Whoever it is for needs the daemon no more.
    fn release(&mut self) {
        if std::mem::take(&mut self.holds) {
            self.daemon.lifetime.release();
        }
    }

    fn answer(&mut self, message: &Message) -> Answer<'d> {
        let Ok((request, body)) = Request::read_from_prefix(&message.bytes) else {
            return Answer::status(Status::BadRequest);
        };
        if request.magic != MAGIC {
            self.refuse_version();
            return Answer::status(Status::BadVersion);
        }
        let me = rustix::process::geteuid().as_raw();
        if self.peer.uid != me && self.peer.uid != 0 {
            return Answer::status(Status::Denied);
        }
        if request.body_len as usize != body.len() {
            return Answer::status(Status::BadRequest);
        }
        self.daemon.requests.fetch_add(1, Relaxed);
        match Kind::from_u32(request.kind) {
            None => Answer::status(Status::BadRequest),
            Some(Kind::Ping) => Answer::status(Status::Ok),
            Some(Kind::Hello) => self.hello(),
            Some(Kind::Register) => self.register(message),
            Some(Kind::RegisterNew) => self.register_new(message),
            Some(Kind::SyncFile) => self.sync_file(body),
            Some(Kind::Harden) => self.harden(body),
            Some(Kind::Enter) => self.enter(message),
            Some(Kind::GoWithout) => self.go_without(),
            Some(Kind::Rename) => self.rename(message, body),
            Some(Kind::LowerLeft) => self.lower_left(message),
            Some(Kind::LetGo) => self.let_go(body),
            Some(Kind::SyncTree) => self.sync_tree(message),
            Some(Kind::LookForRoots) => match tablespaces::look(self.daemon) {
                Ok(()) => Answer::status(Status::Ok),
                Err(e) => Answer::failed(e),
            },
            Some(Kind::Status) => Answer::json(Status::Ok, &status::status(self.daemon)),
            Some(Kind::Drain) => self.drain(),
            Some(Kind::AddRoot) => self.add_root(body),
            Some(Kind::Stop) => self.stop(body),
            Some(Kind::Cache) => self.cache(body),
            Some(Kind::Mirror) => self.mirror(body),
            Some(Kind::Freeze) => self.freeze(body),
        }
    }

    fn refuse_version(&self) {
        let pid = self.peer.pid;
        self.daemon.refused.count_version();
        self.keep_out();
        self.daemon.log.say_once(
            "version",
            format!(
                "process {pid} is of another version than this daemon and runs without Seawall: `seawall` \
                 and libseawall_preload.so must come from the same build"
            ),
        );
    }

    /// A process that was greeted is a stranger from now on.
    fn go_without(&self) -> Answer<'d> {
        self.daemon.lifetime.forget(self.peer.pid);
        self.keep_out();
        Answer::status(Status::Ok)
    }

    /// Before the process hears that it goes without, what it has open leaves the log.
    fn keep_out(&self) {
        self.daemon.refused.add(self.peer.pid);
        outside::keep_out_of(self.daemon, self.peer.pid);
    }

    fn hello(&self) -> Answer<'d> {
        // First this, then the look: a daemon that gives up looks in the other order.
        self.daemon.lifetime.greet(self.peer.pid);
        if self.daemon.registering.is_given_up() {
            self.daemon.lifetime.forget(self.peer.pid);
            return Answer::status(Status::Later);
        }
        warden::finish_all(self.daemon);
        let (reply, descriptors) = hello::lent(self.daemon);
        Answer::of(reply, descriptors)
    }

    /// What a front without a way to the journal cannot do itself.
    fn harden(&self, body: &[u8]) -> Answer<'d> {
        let done = match Retire::read_from_bytes(body) {
            Ok(retire) => lend::retire(&self.daemon.engine, retire),
            Err(_) if body.is_empty() => self.daemon.engine.harden_all(),
            Err(_) => return Answer::status(Status::BadRequest),
        };
        match done {
            Ok(()) => self.lend(),
            Err(Errno::NOSPC) => Answer::status(Status::Full),
            Err(e) => Answer::failed(e),
        }
    }

    /// The way to the journal, or to whoever keeps it.
    fn lend(&self) -> Answer<'d> {
        let ok = Reply::new(Status::Ok);
        let Some(kept) = &self.daemon.kept else {
            let (given, descriptors) = lend::journal(&self.daemon.engine);
            return Answer::of(Reply { given, ..ok }, descriptors);
        };
        let Lent { given, keepers, connections } = kept.lend();
        Answer { duplicates: connections, ..Answer::of(Reply { given, keepers, ..ok }, Vec::new()) }
    }

    fn register(&self, message: &Message) -> Answer<'d> {
        let [fd] = message.descriptors.as_slice() else { return Answer::status(Status::BadRequest) };
        match register::register(self.daemon, fd) {
            Ok(file @ FileRef { slot, generation }) => {
                ahead::registered(self.daemon, fd, file);
                let mut answer = Answer::status(Status::Ok);
                (answer.reply.slot, answer.reply.generation) = (slot, generation);
                answer
            }
            Err(Unmanaged(status)) => Answer::status(status),
        }
    }

    fn register_new(&self, message: &Message) -> Answer<'d> {
        let [fd] = message.descriptors.as_slice() else { return Answer::status(Status::BadRequest) };
        match unborn::register(self.daemon, fd) {
            Ok(_) => Answer::status(Status::Ok),
            Err(Unmanaged(status)) => Answer::status(status),
        }
    }

    fn enter(&self, message: &Message) -> Answer<'d> {
        let [fd] = message.descriptors.as_slice() else { return Answer::status(Status::BadRequest) };
        match cache::enter(self.daemon, fd) {
            Ok(file) => {
                let mut answer = Answer::status(Status::Ok);
                (answer.reply.slot, answer.reply.generation) = (file.slot, file.tenant.into());
                answer.descriptors.extend(self.daemon.cache.as_ref().and_then(Zone::disk));
                answer
            }
            Err(Unmanaged(status)) => Answer::status(status),
        }
    }

    fn rename(&self, message: &Message, body: &[u8]) -> Answer<'d> {
        let [directory] = message.descriptors.as_slice() else { return Answer::status(Status::BadRequest) };
        let Ok((words, name)) = <[[u8; 4]; 2]>::read_from_prefix(body) else {
            return Answer::status(Status::BadRequest);
        };
        let [slot, generation] = words.map(u32::from_le_bytes);
        let name = Path::new(OsStr::from_bytes(name));
        if name.file_name().is_none_or(|last| last != name.as_os_str()) {
            return Answer::status(Status::BadRequest);
        }
        match guarding::renaming(self.daemon, FileRef { slot, generation }, directory, name) {
            Ok(()) => Answer::status(Status::Ok),
            Err(e) => Answer::failed(e),
        }
    }

    fn lower_left(&self, message: &Message) -> Answer<'d> {
        let [directory] = message.descriptors.as_slice() else { return Answer::status(Status::BadRequest) };
        match guarding::lower_left(self.daemon, directory) {
            Ok(true) => Answer::status(Status::Ok),
            Ok(false) => Answer::status(Status::Later),
            Err(e) => Answer::failed(e),
        }
    }

    fn sync_tree(&self, message: &Message) -> Answer<'d> {
        let [directory] = message.descriptors.as_slice() else { return Answer::status(Status::BadRequest) };
        let done = tree::sync(self.daemon, directory);
        Answer::status(if done { Status::Ok } else { Status::Refused })
    }

    fn let_go(&self, body: &[u8]) -> Answer<'d> {
        let Some(file) = file_of(body) else { return Answer::status(Status::BadRequest) };
        match letting_go::let_go(self.daemon, file) {
            Ok(()) => Answer::status(Status::Ok),
            Err(e) => Answer::failed(e),
        }
    }

    fn sync_file(&self, body: &[u8]) -> Answer<'d> {
        let Some(file) = file_of(body) else { return Answer::status(Status::BadRequest) };
        match self.daemon.files.get(file.slot).filter(|known| known.reference == file) {
            None => Answer::status(Status::Refused),
            Some(file) if file.is_directory => {
                directories::leave(self.daemon, &file);
                Answer::status(Status::Ok)
            }
            Some(file) => match real_sync(&file) {
                Ok(()) => Answer::status(Status::Ok),
                Err(e) => Answer::failed(e),
            },
        }
    }

    fn drain(&self) -> Answer<'d> {
        let round = destaging::drain(self.daemon);
        match round.failed.first() {
            Some((slot, error)) => {
                Answer::failed(format!("slot {slot}: {error}; its records stay in the log"))
            }
            None => Answer::json(Status::Ok, &control::Drained { dirty: round.dirty }),
        }
    }

    fn add_root(&mut self, body: &[u8]) -> Answer<'d> {
        let Ok(wanted) = serde_json::from_slice(body) else { return Answer::status(Status::BadRequest) };
        // Held first: a daemon about to end must not forget a root it has just promised.
        if !self.holds {
            self.daemon.lifetime.hold();
            self.holds = true;
        }
        warden::finish_all(self.daemon);
        // What was noted before is not this one's.
        self.daemon.engine.shm().header().forget_strays();
        answered(roots::add(self.daemon, &wanted, Some(self.peer.pid)).map(|root| control::Added { root }))
    }

    fn cache(&self, body: &[u8]) -> Answer<'d> {
        let Ok(asked) = serde_json::from_slice::<cache::Asked>(body) else {
            return Answer::status(Status::BadRequest);
        };
        match asked {
            cache::Asked::List => answered(cache::policies(self.daemon)),
            cache::Asked::Set(wanted) => answered(cache::set_policies(self.daemon, wanted)),
            cache::Asked::Resize(wanted) => answered(cache::resize(self.daemon, wanted)),
            cache::Asked::Prewarm(wanted) => answered(cache::prewarm(self.daemon, &wanted)),
        }
    }

    fn mirror(&self, body: &[u8]) -> Answer<'d> {
        match serde_json::from_slice::<rebuild::Asked>(body) {
            Err(_) => Answer::status(Status::BadRequest),
            Ok(rebuild::Asked::Rebuild(wanted)) => {
                answered(self.daemon.rebuilding.begin(wanted, &self.daemon.lifetime))
            }
            Ok(rebuild::Asked::Look) => Answer::json(Status::Ok, &self.daemon.rebuilding.status()),
        }
    }

    fn freeze(&mut self, body: &[u8]) -> Answer<'d> {
        match serde_json::from_slice::<freeze::Asked>(body) {
            Err(_) => Answer::status(Status::BadRequest),
            Ok(freeze::Asked::Thaw) => Answer::json(Status::Ok, &freeze::thaw(self.daemon)),
            Ok(freeze::Asked::Freeze(wanted)) => {
                let bound = wanted.bound;
                answered(freeze::freeze(self.daemon, wanted).map(|(id, done)| {
                    self.freeze = bound.then_some(id);
                    done
                }))
            }
        }
    }

    fn stop(&mut self, body: &[u8]) -> Answer<'d> {
        let Ok(how) = serde_json::from_slice::<control::Stop>(body) else {
            return Answer::status(Status::BadRequest);
        };
        if how.if_idle {
            // Before the others are counted: of two that leave at once one must be the last.
            self.release();
            // A front that leaves was greeted; what it still has of the log is counted below.
            self.daemon.lifetime.forget(self.peer.pid);
        }
        let others = self.daemon.lifetime.holders() - usize::from(self.holds);
        let users = users::users(self.daemon);
        if how.if_idle && (others > 0 || !users.is_empty()) {
            return Answer::json(Status::Ok, &control::Stopped { ended: false, stays: true, users });
        }
        if !users.is_empty() {
            return Answer::failed(crate::DaemonError::Alive { pids: users });
        }
        match closing::close(self.daemon) {
            Ok(()) => {
                // A client that leaves does not end what another one started to stay: a service, or `run --keep`.
                let stays = how.stay || how.if_idle && self.daemon.lifetime.is_kept();
                self.ends = !stays;
                Answer::json(Status::Ok, &control::Stopped { ended: true, stays, users })
            }
            Err(e) => {
                // What nobody can write any more is not waited for: the keepers have it.
                self.ends |= self.daemon.kept.as_ref().is_some_and(|kept| kept.is_over());
                Answer::failed(e)
            }
        }
    }
}

/// The file that a body names: slot, generation.
fn file_of(body: &[u8]) -> Option<FileRef> {
    let [slot, generation] = <[[u8; 4]; 2]>::read_from_bytes(body).ok()?.map(u32::from_le_bytes);
    Some(FileRef { slot, generation })
}

#[cfg(test)]
mod tests {
    use zerocopy::IntoBytes;

    use super::*;
    use crate::start;

    fn directory() -> tempfile::TempDir {
        tempfile::tempdir_in("/dev/shm").expect("a directory")
    }

    fn connection(daemon: &Daemon) -> Connection<'_> {
        let peer = Peer { pid: std::process::id(), uid: rustix::process::geteuid().as_raw() };
        Connection::new(daemon, peer)
    }

    /// Sends a request. Returns the status of its answer.
    fn ask(connection: &mut Connection<'_>, kind: Kind, body: &[u8]) -> Status {
        let bytes = [Request::new(kind, body.len() as u32).as_bytes(), body].concat();
        let answer = connection.answer(&Message { bytes, descriptors: Vec::new() });
        Status::from_u32(answer.reply.status)
    }

    #[test]
    fn a_process_that_comes_while_the_log_is_given_up_asks_again_later() {
        let dir = directory();
        let daemon = start::without_threads(&dir);
        let mut connection = connection(&daemon);
        daemon.registering.give_up();
        assert_eq!(ask(&mut connection, Kind::Hello, &[]), Status::Later);
        assert!(daemon.lifetime.greeted().is_empty(), "it is not believed to use the log");
        daemon.registering.go_on();
        assert_eq!(ask(&mut connection, Kind::Hello, &[]), Status::Ok);
        assert_eq!(daemon.lifetime.greeted(), [std::process::id()]);
        daemon.lifetime.forget(std::process::id());
        closing::forget_boot(&daemon);
        start::release(&daemon);
    }

    #[test]
    fn the_memory_of_a_log_stays_for_a_process_that_came_at_its_end() {
        let dir = directory();
        let daemon = start::without_threads(&dir);
        daemon.lifetime.greet(std::process::id());
        closing::forget_boot(&daemon);
        assert!(daemon.lent.has_memory(), "the next daemon takes it, and the process with it");
        assert!(!daemon.registering.is_given_up());
        daemon.lifetime.forget(std::process::id());
        closing::forget_boot(&daemon);
        assert!(!daemon.lent.has_memory());
        assert!(daemon.registering.is_given_up());
        start::release(&daemon);
    }

    #[test]
    fn who_stops_the_daemon_is_answered_before_it_ends() {
        let dir = directory();
        let daemon = start::without_threads(&dir);
        let mut connection = connection(&daemon);
        let body = serde_json::to_vec(&control::Stop { if_idle: true, stay: false }).expect("text");
        assert_eq!(ask(&mut connection, Kind::Stop, &body), Status::Ok);
        assert!(!daemon.lifetime.is_ending(), "the process may be gone before the answer is");
        assert!(connection.ends);
        closing::forget_boot(&daemon);
        start::release(&daemon);
    }
}
