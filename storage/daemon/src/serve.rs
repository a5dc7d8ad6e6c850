//! The running daemon: listener, threads, signals, and its orderly end.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread::JoinHandle;

use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec};
use seawall_core::pool::Pool;
use seawall_media::Medium;
use seawall_wire::message::{Reply, Status};
use zerocopy::IntoBytes;

use crate::errors::DaemonError;
use crate::log::Log;
use crate::options::Options;
use crate::parts::lifetime::Lifetime;
use crate::place::Place;
use crate::pulse::Watchdog;
use crate::state::Daemon;
use crate::workers::Workers;
use crate::{
    ahead, backing, boot, cache, closing, desk, destaging, doors, freeze, journal, kept, leader, limits, net,
    pulse, rebuild, requests, spill, start, tree, users, warden, watch,
};

/// Connections served at once. Clients connect for one request each; those beyond this many at the same moment
/// get [`Status::Failed`].
const CONNECTIONS: usize = 1024;
/// Stack of a connection's thread.
const STACK: usize = 256 << 10;

/// Runs a daemon until it is asked to end or nobody needs it. `ready` is called once it listens.
///
/// # Errors
/// [`DaemonError`] if it could not start; nothing was changed then that a later start would not put right.
pub fn serve(options: &Options, ready: impl FnOnce()) -> Result<(), DaemonError> {
    seawall_stats::Clock::begin();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    crate::sys::share_arenas(limits::arenas());
    limits::raise();
    limits::check(std::fs::metadata(&options.pool).map_or(0, |pool| pool.len()))?;
    let signals = block_signals();
    let daemon = Arc::new(start::start(options)?);
    let buries = Arc::downgrade(&daemon);
    daemon.engine.finishes_by(move |slot| {
        if let Some(daemon) = buries.upgrade() {
            warden::finish(&daemon, slot);
        }
    });
    let listener = listen(&daemon.pool, &daemon.place)?;
    if options.boot {
        enter_registry(&daemon.pool, &daemon.log);
    }
    daemon.log.say(format!(
        "listening; pool {} ({}), foreign writers by {}",
        daemon.pool.path.display(),
        daemon.pool.medium.label(),
        daemon.watch.name()
    ));
    let threads = begin_threads(&daemon)?;
    // By this thread, which lives as long as the process: the kernel ends it with us.
    let watchdog = options.watchdog.and_then(|command| pulse::start(&daemon, &listener, command));
    ready();
    accept_all(&daemon, &listener, signals.as_ref().ok());
    daemon.lifetime.end();
    drop(listener);
    daemon.engine.wake_daemon();
    daemon.ahead.end();
    daemon.rebuilding.end();
    for thread in threads {
        let _ = thread.join();
    }
    finish(&daemon, watchdog);
    // Until now a process that opened a file waited for it.
    daemon.lifetime.finish();
    Ok(())
}

/// Begins the daemon's work. Returns the threads that its end waits for.
fn begin_threads(daemon: &Arc<Daemon>) -> Result<Vec<JoinHandle<()>>, DaemonError> {
    let threads = vec![
        spawn(daemon, "memory", backing::run)?,
        spawn(daemon, "destage", destaging::run)?,
        spawn(daemon, "warden", warden::run)?,
        spawn(daemon, "harden", journal::run)?,
        spawn(daemon, "ahead", ahead::run)?,
        spawn(daemon, "cache", cache::run)?,
        spawn(daemon, "bring", cache::bring)?,
        spawn(daemon, "rebuild", rebuild::run)?,
        spawn(daemon, "copies", kept::run)?,
        spawn(daemon, "lead", kept::lead)?,
        spawn(daemon, "alone", kept::alone::run)?,
        spawn(daemon, "spill", spill::run)?,
    ];
    // These end with the process. A look at many busy processes takes long, and whoever waits for the pool waits for us.
    spawn(daemon, "watch", watch::run)?;
    spawn(daemon, "leader", look_after_leaders)?;
    spawn(daemon, "sync tree", tree::run)?;
    Ok(threads)
}

/// SIGTERM and SIGINT are read, not delivered; SIGIO, of leases, is neither. Before any thread starts, so that
/// all inherit it.
fn block_signals() -> io::Result<SignalFd> {
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGIO);
    mask.thread_block()?;
    let mut mask = SigSet::empty();
    mask.add(Signal::SIGTERM);
    mask.add(Signal::SIGINT);
    mask.thread_block()?;
    Ok(SignalFd::with_flags(&mask, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?)
}

/// The pool's lock is ours, so a socket of that name is a dead daemon's.
fn listen(pool: &Pool, place: &Place) -> Result<OwnedFd, DaemonError> {
    let socket = &place.socket;
    let _ = std::fs::remove_file(socket);
    let listener = net::listen(socket).map_err(|error| DaemonError::Listen { socket: socket.clone(), error });
    doors::be_found(pool, place);
    listener
}

/// Before the log can hold anything: should the machine crash, the pool is recovered when it starts.
fn enter_registry(pool: &Pool, log: &Log) {
    if pool.medium == Medium::Emulated {
        return;
    }
    match boot::enter(&pool.path) {
        Ok(true) => {
            log.say("the pool is registered, and will be recovered when this machine starts after a crash")
        }
        Ok(false) => {}
        Err(e) => log.say(format!(
            "cannot register the pool, so it is not recovered when this machine starts, only when the \
             database does: {}: {e}",
            boot::registry().display()
        )),
    }
}

fn spawn(daemon: &Arc<Daemon>, name: &str, run: fn(&Arc<Daemon>)) -> Result<JoinHandle<()>, DaemonError> {
    let daemon = Arc::clone(daemon);
    let named = std::thread::Builder::new().name(name.into());
    named.spawn(move || run(&daemon)).map_err(DaemonError::Thread)
}

fn look_after_leaders(daemon: &Arc<Daemon>) {
    if let Some(desk) = desk::of(&daemon.pool) {
        leader::run(desk, &daemon.log);
    }
}

fn accept_all(daemon: &Arc<Daemon>, listener: &OwnedFd, signals: Option<&SignalFd>) {
    let open = Arc::new(AtomicUsize::new(0));
    let workers = Workers::new("connection", STACK, CONNECTIONS);
    while !daemon.lifetime.is_ending() {
        if let Some(signal) = signals.and_then(|s| s.read_signal().ok().flatten()) {
            daemon.log.say(format!("signal {}", signal.ssi_signo));
            return;
        }
        if wait(&daemon.lifetime, listener, signals)
            && let Ok(connection) = net::accept(listener)
        {
            serve_connection(daemon, connection, (&workers, &open));
        }
    }
}

/// True if a connection waits. Looks up now and then, should the event of the end be missing.
fn wait(lifetime: &Lifetime, listener: &OwnedFd, signals: Option<&SignalFd>) -> bool {
    let mut fds = vec![PollFd::new(listener, PollFlags::IN)];
    fds.extend(signals.map(|s| PollFd::new(s, PollFlags::IN)));
    fds.extend(lifetime.end_event());
    let tick = Timespec { tv_sec: 1, tv_nsec: 0 };
    rustix::event::poll(&mut fds, Some(&tick)).is_ok() && !fds[0].revents().is_empty()
}

fn serve_connection(
    daemon: &Arc<Daemon>,
    connection: OwnedFd,
    (workers, open): (&Workers, &Arc<AtomicUsize>),
) {
    let (daemon, count) = (Arc::clone(daemon), Arc::clone(open));
    if count.fetch_add(1, SeqCst) >= CONNECTIONS {
        count.fetch_sub(1, SeqCst);
        let _ = net::send(&connection, Reply::new(Status::Failed).as_bytes(), &[]);
        return;
    }
    workers.run(move || {
        requests::serve(&daemon, &connection);
        drop(connection);
        count.fetch_sub(1, SeqCst);
    });
}

/// Drains and, if nobody is left, closes. With clients left the guards stay up: they go on writing.
fn finish(daemon: &Daemon, watchdog: Option<Watchdog>) {
    freeze::thaw(daemon);
    let users = users::users(daemon);
    let closed = if users.is_empty() {
        cache::close(daemon);
        closing::close(daemon).map_err(|e| e.to_string())
    } else {
        destaging::drain(daemon);
        Err(format!("processes {users:?} still use the log: the guards stay up until the next daemon ends"))
    };
    if let Some(kept) = &daemon.kept {
        kept::tell_end(kept, &daemon.log);
    }
    // It has the listening socket too, and lets processes in while this one is stopped: from here on none may come.
    if let Some(watchdog) = watchdog {
        watchdog.end();
    }
    match closed {
        Ok(()) => {
            daemon.log.say("ended; drained, guards down");
            closing::forget_boot(daemon);
            boot::leave(&daemon.pool.path);
        }
        Err(why) => daemon.log.say(format!("ended; {why}")),
    }
    start::release(daemon);
    doors::be_lost(&daemon.pool, &daemon.place);
    let _ = std::fs::remove_file(&daemon.place.socket);
}
