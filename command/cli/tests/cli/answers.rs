//! A daemon that answers what it should not: the library leaves the file to the kernel, asks for it again, and under
//! the policy `atomic` says so.

use crate::common;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use crate::common::{Place, Said, cluster};
use seawall_daemon::control::{Control, Stop, Stopped};
use seawall_daemon::net::{self, Message};
use seawall_wire::message::{Kind, Reply, Request, Status};
use zerocopy::{FromBytes, IntoBytes};

/// In front of a place's daemon: it passes everything on, but answers the first registrations itself.
struct Between {
    socket: PathBuf,
    asked: Arc<AtomicU32>,
}

impl Between {
    /// Answers `times` registrations with this status.
    fn new(place: &Place, daemon: &Path, status: u32, times: u32) -> Self {
        let socket = PathBuf::from(place.ram("between"));
        let listener = net::listen(&socket).expect("it listens");
        rustix::fs::fcntl_setfl(&listener, rustix::fs::OFlags::empty()).expect("it waits");
        let asked = Arc::new(AtomicU32::new(0));
        let (daemon, counted) = (daemon.to_owned(), asked.clone());
        // It ends with the test's process.
        std::thread::spawn(move || {
            while let Ok(connection) = net::accept(&listener) {
                let Ok(Some(message)) = net::receive(&connection) else { continue };
                if is_register(&message) && counted.fetch_add(1, SeqCst) < times {
                    let reply = Reply { status, ..Reply::new(Status::Ok) };
                    let _ = net::send(&connection, reply.as_bytes(), &[]);
                } else {
                    pass_on(&connection, &daemon, &message);
                }
            }
        });
        Self { socket, asked }
    }
}

fn is_register(message: &Message) -> bool {
    let request = Request::read_from_prefix(&message.bytes);
    request.is_ok_and(|(request, _)| Kind::from_u32(request.kind) == Some(Kind::Register))
}

fn pass_on(front: &OwnedFd, daemon: &Path, message: &Message) {
    let connection = net::connect(daemon).expect("a daemon");
    let send = |to: &OwnedFd, message: &Message| {
        let descriptors: Vec<_> = message.descriptors.iter().map(AsFd::as_fd).collect();
        net::send(to, &message.bytes, &descriptors)
    };
    send(&connection, message).expect("sent");
    let answer = net::receive(&connection).expect("an answer").expect("an answer");
    let _ = send(front, &answer);
}

/// The output of a program that writes a data file twice and syncs it each time, when the first question for it is
/// answered so; and how often the daemon was asked.
fn written_by(status: u32) -> (Said, u32) {
    let place = cluster::place().expect("perl");
    let write = "open(my $f, '+>', 'base/5/16400') or die; use IO::Handle; \
                 for (1 .. 2) { syswrite($f, 'x' x 8192) == 8192 or die; $f->sync or die; }";
    let outer = cluster::start(&place, "atomic", "");
    let between = Between::new(&place, &socket_of(&outer), status, 1);
    let run =
        ["run", "--pool", place.pool(), "--preset", "postgres", "--policy", "atomic", "--data", ".", "--"];
    let mut run = place.command(&run);
    run.args(["env", &format!("SEAWALL_SOCKET={}", between.socket.display()), "perl", "-e", write]);
    let said = Said::from(run.stdin(Stdio::null()).output().expect("runs"));
    let asked = between.asked.load(SeqCst);
    let status = place.status();
    let found = cluster::file(&status, "/16400");
    assert!(
        found.is_some_and(|file| file["tracked"] == true),
        "not in the log: {said:?} {status:#}",
        said = said.err
    );
    leave(&place);
    cluster::finish(outer);
    (said, asked)
}

/// This process said Hello for the program: the daemon would stay as long as it lives.
fn leave(place: &Place) {
    let control = Control::connect(Path::new(place.pool())).expect("connected").expect("a daemon");
    let _: Stopped = control.request(Kind::Stop, &Stop { if_idle: true, stay: false }).expect("answered");
}

/// The socket that a run gave to its program.
fn socket_of(run: &std::process::Child) -> PathBuf {
    let child = common::child(run.id(), "perl");
    let environment = std::fs::read_to_string(format!("/proc/{child}/environ")).expect("its environment");
    let named = environment.split('\0').find_map(|var| var.strip_prefix("SEAWALL_SOCKET="));
    named.expect("a socket").into()
}

// Holds: internals/SEMANTICS#policy-atomic
#[test]
fn whatever_the_daemon_answers_a_data_file_is_asked_for_again_and_it_is_said() {
    if !common::has("perl") {
        return eprintln!("skipped: needs perl");
    }
    const FROM_THE_FUTURE: u32 = 99;
    for status in [
        Status::Bypass as u32,
        Status::Refused as u32,
        Status::Later as u32,
        Status::Denied as u32,
        Status::BadRequest as u32,
        Status::Failed as u32,
        Status::Full as u32,
        FROM_THE_FUTURE,
    ] {
        let (said, asked) = written_by(status);
        said.succeeds().says(&["a data file is not in the log"]);
        assert_eq!(said.err.matches("can tear").count(), 1, "{status}: {}", said.err);
        assert_eq!(asked, 2, "{status}");
    }
}
