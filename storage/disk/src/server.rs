//! The socket to which QEMU connects: one guest at a time, and the next one when that is gone.

use std::fs::Permissions;
use std::io;
use std::os::unix::fs::{FileTypeExt, PermissionsExt, chown};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::AsFd;
use rustix::fs::{FlockOperation, flock};
use vhost::vhost_user::{BackendReqHandler, Error};

use crate::control::Control;
use crate::disk::Disk;
use crate::failure::Refused;
use crate::session::Session;

/// A disk that is served.
pub struct Server {
    disk: Arc<Disk>,
    listener: UnixListener,
    socket: PathBuf,
    control: Control,
    /// Held as long as the socket is ours: the file beside it.
    _claim: std::fs::File,
}

impl Server {
    /// Listens. A socket that a dead process left is replaced. Its owner may connect, and this group.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn new(disk: Disk, socket: &Path, group: Option<u32>) -> Result<Self, Refused> {
        let failed = || Refused::failed(format!("cannot listen at {}", socket.display()));
        let claim = claim(socket).map_err(failed())?.ok_or_else(|| Refused::Served(socket.into()))?;
        if std::fs::symlink_metadata(socket).is_ok_and(|found| found.file_type().is_socket()) {
            std::fs::remove_file(socket).map_err(failed())?;
        }
        let listener = UnixListener::bind(socket).map_err(failed())?;
        let mode = if group.is_some() { 0o660 } else { 0o600 };
        chown(socket, None, group).map_err(failed())?;
        std::fs::set_permissions(socket, Permissions::from_mode(mode)).map_err(failed())?;
        let control = Control::new(socket).map_err(failed())?;
        Ok(Self { disk: Arc::new(disk), listener, socket: socket.into(), control, _claim: claim })
    }

    /// Serves guests, one after the other, until `stop` can be read; then the one that is there has its answers first.
    ///
    /// # Errors
    /// The socket is of no use any more.
    pub fn serve(self, stop: impl AsFd) -> io::Result<()> {
        let over = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while is_first_readable(&self.control, &over) {
                    self.control.answer(&self.disk);
                }
            });
            let served = self.serve_guests(&stop);
            let _ = rustix::io::write(&over, &1_u64.to_ne_bytes());
            served
        })?;
        self.disk.workers.finish();
        self.disk.image.leave();
        // Whoever comes now meets nobody, and not somebody who is going.
        std::fs::remove_file(&self.socket)
    }

    fn serve_guests(&self, stop: &impl AsFd) -> io::Result<()> {
        while is_first_readable(&self.listener, stop) {
            let (stream, _) = self.listener.accept()?;
            self.serve_one(stream, stop);
            self.disk.back.close();
        }
        Ok(())
    }

    fn serve_one(&self, stream: UnixStream, stop: &impl AsFd) {
        let session = Arc::new(Mutex::new(Session::new(Arc::clone(&self.disk))));
        let Ok(heard) = stream.try_clone() else { return };
        let mut handler = BackendReqHandler::from_stream(stream, session);
        while is_first_readable(&heard, stop) {
            self.disk.back.look(&heard);
            match handler.handle_request() {
                Ok(()) => {}
                Err(Error::Disconnected | Error::SocketBroken(_)) => return,
                Err(error) if is_harmless(&error) => {
                    errln!("seawall: {}: refused: {error}", self.socket.display())
                }
                Err(error) => {
                    errln!("seawall: {}: {error}: the connection is closed", self.socket.display());
                    return;
                }
            }
        }
    }
}

/// Refused, and the connection goes on: whoever is at the other end got an answer, or did not ask for one.
fn is_harmless(error: &Error) -> bool {
    matches!(error, Error::ReqHandlerError(_) | Error::InvalidOperation(_))
}

/// True when the first can be read; false when the second can.
fn is_first_readable(first: impl AsFd, stop: &impl AsFd) -> bool {
    let mut fds = [PollFd::new(&first, PollFlags::IN), PollFd::new(stop, PollFlags::IN)];
    loop {
        let _ = poll(&mut fds, None);
        if !fds[1].revents().is_empty() {
            return false;
        }
        if !fds[0].revents().is_empty() {
            return true;
        }
    }
}

/// Takes the place of whoever listens there. `None`: somebody does.
fn claim(socket: &Path) -> io::Result<Option<std::fs::File>> {
    let mut path = socket.as_os_str().to_owned();
    path.push(".lock");
    let file = std::fs::File::create(path)?;
    match flock(&file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(Some(file)),
        Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
        Err(error) => Err(error.into()),
    }
}
