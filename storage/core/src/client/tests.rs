//! A daemon that answers as the test tells it to, and a clock that nobody waits for.

use std::cell::{Cell, RefCell};
use std::os::fd::AsFd;

use rustix::io::Errno;
use seawall_wire::message::{Kind, Reply, Request, Status};
use zerocopy::FromBytes;

use super::{Client, Course, Entered, HARDEN_TRIES, Received, Registered, Synced, Transport, Use, answer};
use crate::FileRef;
use crate::policy::{ASK_AGAIN, Manage};

const ALL: [Status; 10] = [
    Status::Ok,
    Status::BadVersion,
    Status::Denied,
    Status::Bypass,
    Status::Refused,
    Status::BadRequest,
    Status::Failed,
    Status::Full,
    Status::Later,
    Status::Suspended,
];

const FILE: FileRef = FileRef { slot: 7, generation: 9 };

fn reply(status: Status) -> Reply {
    Reply { slot: FILE.slot, generation: FILE.generation, ..Reply::new(status) }
}

/// A row: what a front does under `tail` and under `atomic`, and whether the latter prints a message.
fn courses(registered: Registered) -> (Course, Course, bool) {
    (registered.course(false), registered.course(true), registered.torn().is_some())
}

/// What each answer to a registration leads to. Under `atomic` only the log needs no message, and no answer is final.
// Holds: internals/SEMANTICS#policy-atomic
#[test]
fn every_answer_to_a_registration_has_its_course() {
    use Course::{AskAgain, AskNext, Leave, Log, Unanswered};
    for status in ALL {
        let wanted = match status {
            Status::Ok => (Log(FILE), Log(FILE), false),
            Status::Bypass => (Leave, AskAgain, true),
            Status::Later | Status::Suspended => (AskNext, AskNext, true),
            Status::Refused
            | Status::BadVersion
            | Status::Denied
            | Status::BadRequest
            | Status::Failed
            | Status::Full => (AskAgain, AskAgain, true),
        };
        assert_eq!(courses(Registered::of(&reply(status))), wanted, "{status:?}");
    }
    assert_eq!(courses(Registered::NoAnswer), (Unanswered, Unanswered, true));
    assert_eq!(courses(Registered::File(FILE).if_known(|_| false)), (AskAgain, AskAgain, true));
    let unknown = Reply { status: 99, ..reply(Status::Ok) };
    assert_eq!(courses(Registered::of(&unknown)), (AskAgain, AskAgain, true), "a status of a later version");
    let older = Reply { magic: 0, ..reply(Status::Ok) };
    assert_eq!(courses(Registered::of(&older)), (AskAgain, AskAgain, true), "another version");
}

#[test]
fn every_other_answer_has_its_meaning() {
    for status in ALL {
        let reply = reply(status);
        let is = |wanted: &[Status]| wanted.contains(&status);
        let entered = match status {
            Status::Ok => Entered::File { slot: 7, tenant: 9 },
            Status::Refused | Status::Later | Status::Suspended => Entered::NotNow,
            _ => Entered::Never,
        };
        assert_eq!(Entered::of(&reply), entered, "{status:?}");
        let synced = match status {
            Status::Ok => Synced::Done,
            Status::Failed => Synced::Failed,
            _ => Synced::Not,
        };
        assert_eq!(Synced::of(&reply), synced, "{status:?}");
        let hardened = match status {
            Status::Ok => Ok(()),
            Status::Full => Err(Errno::NOSPC),
            _ => Err(Errno::IO),
        };
        assert_eq!(answer::hardened(&reply), hardened, "{status:?}");
        assert_eq!(answer::is_done(&reply), is(&[Status::Ok]), "{status:?}");
        assert_eq!(
            answer::is_heard(&reply),
            is(&[Status::Ok, Status::BadVersion, Status::Denied]),
            "{status:?}"
        );
        assert_eq!(answer::stands(&reply).is_err(), is(&[Status::Refused]), "{status:?}");
    }
}

/// Which of `syncs` fsyncs ask, if all of them are refused, starting with a first one.
fn asks(manage: Manage, syncs: u8, is_sqlite: bool) -> Vec<u8> {
    let mut count = 0;
    let sync = |n: &u8| {
        let due = manage.due(Use::Sync, count, || is_sqlite);
        (count, _) = (due.count, n);
        due.is_now
    };
    (1..=syncs).filter(sync).collect()
}

#[test]
fn a_candidate_is_asked_for_when_its_preset_says_and_refused_so_often() {
    assert!(Manage::Now.due(Use::Change, 0, || false).is_now, "from its first write");
    assert_eq!(asks(Manage::Now, 40, false), (1..ASK_AGAIN).collect::<Vec<_>>());
    assert_eq!(asks(Manage::AfterSyncs(3), 40, false), (3..ASK_AGAIN).collect::<Vec<_>>());
    assert_eq!(asks(Manage::IfSqlite, 40, true), (1..ASK_AGAIN).collect::<Vec<_>>());
    assert_eq!(asks(Manage::Again, 40, false), (2..ASK_AGAIN).collect::<Vec<_>>());
    for (manage, is_sqlite) in
        [(Manage::IfSqlite, false), (Manage::AfterSyncs(u8::MAX), true), (Manage::Bypass, true)]
    {
        assert_eq!(asks(manage, 40, is_sqlite), [], "{manage:?}");
        assert_eq!(
            manage.due(Use::Sync, 0, || is_sqlite).count,
            0,
            "it becomes another file, or another name"
        );
    }
    assert!(!Manage::IfSqlite.due(Use::Change, 0, || true).is_now);
}

#[test]
fn of_any_program_writes_that_are_syncs_ask_at_once_and_a_sync_before_the_file_was_closed_counts() {
    assert!(Manage::Again.due(Use::SyncedWrites, 0, || false).is_now);
    assert!(!Manage::Again.due(Use::Change, 1, || false).is_now);
    let closed_after = |count| Manage::Again.reopened(count);
    assert!(Manage::Again.due(Use::Sync, closed_after(1), || false).is_now);
    assert!(!Manage::Again.due(Use::Sync, closed_after(0), || false).is_now);
    assert!(Manage::Again.due(Use::Sync, closed_after(ASK_AGAIN), || false).is_now, "what was refused");
    assert_eq!(Manage::Now.reopened(ASK_AGAIN), 0);
}

/// What the daemon does with a request.
#[derive(Clone, Copy)]
enum Does {
    Answers(Status),
    Nothing,
    IsAway,
}

/// A front.
struct Front {
    now_ns: Cell<u64>,
    asked: RefCell<Vec<Kind>>,
    does: RefCell<Box<dyn Fn(Kind) -> Does>>,
}

impl Front {
    fn client(does: impl Fn(Kind) -> Does + 'static) -> Client<Self> {
        let does: Box<dyn Fn(Kind) -> Does> = Box::new(does);
        Client::new(Self { now_ns: Cell::new(1), asked: RefCell::default(), does: RefCell::new(does) })
    }

    /// The requests since the last call of this.
    fn asked(&self) -> Vec<Kind> {
        self.asked.take()
    }
}

impl Transport for Front {
    type Connection = (Kind, u32);
    type Descriptors = ();

    fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }

    fn nap_ns(&self, ns: u64) {
        self.now_ns.set(self.now_ns.get() + ns);
    }

    fn send(
        &self,
        [request, _]: [&[u8]; 2],
        _: Option<rustix::fd::BorrowedFd<'_>>,
        limit_us: u32,
    ) -> Result<Self::Connection, Errno> {
        let request = Request::read_from_bytes(request).expect("a request");
        let kind = Kind::from_u32(request.kind).expect("a kind");
        self.asked.borrow_mut().push(kind);
        match self.does.borrow()(kind) {
            Does::IsAway => Err(Errno::CONNREFUSED),
            _ => Ok((kind, limit_us)),
        }
    }

    fn receive(&self, (kind, limit_us): &Self::Connection) -> Result<Received<()>, Errno> {
        match self.does.borrow()(*kind) {
            Does::Answers(status) => Ok(Received { reply: reply(status), descriptors: () }),
            Does::Nothing => {
                self.nap_ns(u64::from(*limit_us) * 1000);
                Err(Errno::AGAIN)
            }
            Does::IsAway => Err(Errno::CONNRESET),
        }
    }

    fn say(&self, _: &'static str) {}

    fn not_served(&self) {}
}

#[test]
fn a_daemon_at_work_is_waited_for_and_a_stopped_one_costs_a_second() {
    let client = Front::client(|kind| match kind {
        Kind::Ping => Does::Answers(Status::Ok),
        _ => Does::Nothing,
    });
    let begin = client.transport().now_ns();
    assert_eq!(client.sync_file(FILE), Synced::Not);
    let waited = client.transport().now_ns() - begin;
    assert!((120_000_000_000..=121_000_000_000).contains(&waited), "{waited}");

    let client = Front::client(|_| Does::Nothing);
    let begin = client.transport().now_ns();
    let times: Vec<u64> = (0..3)
        .map(|_| {
            assert_eq!(client.sync_file(FILE), Synced::Not);
            client.transport().now_ns() - begin
        })
        .collect();
    assert_eq!(times, [1_000_000_000; 3], "one wait, once");
    assert_eq!(client.transport().asked(), [Kind::SyncFile, Kind::Ping]);
    // It gets a ping now and then, and nothing else.
    client.transport().nap_ns(2_000_000_000);
    assert_eq!(client.sync_file(FILE), Synced::Not);
    assert_eq!(client.transport().asked(), [Kind::Ping]);
    *client.transport().does.borrow_mut() = Box::new(|_| Does::Answers(Status::Ok));
    client.transport().nap_ns(2_000_000_000);
    assert_eq!(client.sync_file(FILE), Synced::Done);
    assert_eq!(client.transport().asked(), [Kind::Ping, Kind::SyncFile]);
}

#[test]
fn by_its_watchdog_a_daemon_is_known_to_be_stopped() {
    let client = Front::client(|kind| match kind {
        Kind::Ping => Does::Answers(Status::Refused),
        _ => Does::Nothing,
    });
    assert_eq!(client.sync_file(FILE), Synced::Not);
    assert_eq!(client.sync_file(FILE), Synced::Not);
    assert_eq!(client.transport().asked(), [Kind::SyncFile, Kind::Ping]);
}

#[test]
fn who_removes_a_directory_of_guards_waits_for_a_daemon_that_is_busy() {
    let client = Front::client(|_| Does::IsAway);
    assert!(client.hello().is_err());
    let begin = client.transport().now_ns();
    assert!(!client.lower_left(std::io::stdin().as_fd()), "there is none");
    assert_eq!((client.transport().now_ns() - begin).div_ceil(1_000_000_000), 3);
    *client.transport().does.borrow_mut() = Box::new(|_| Does::Answers(Status::Ok));
    let begin = client.transport().now_ns();
    assert!(client.lower_left(std::io::stdin().as_fd()), "the next one came");
    assert!(
        client.transport().now_ns() - begin <= 1_100_000_000,
        "what failed a moment ago is not asked for a second"
    );
}

#[test]
fn a_daemon_about_to_end_is_as_good_as_away() {
    let client = Front::client(|_| Does::Answers(Status::Later));
    assert_eq!(client.hello().err(), Some(Errno::BUSY));
    assert!(!client.may_ask());
    client.transport().nap_ns(1_000_000_001);
    assert!(client.may_ask(), "the next one may be there");
    assert_eq!(client.transport().asked(), [Kind::Hello]);
}

#[test]
fn what_failed_is_not_asked_again_for_a_second_and_the_log_is_hardened_for_five() {
    let client = Front::client(|_| Does::IsAway);
    assert!(client.hello().is_err());
    assert!(!client.may_ask());
    assert_eq!(client.sync_file(FILE), Synced::Not);
    assert!(!client.sync_tree(std::io::stdin().as_fd()));
    assert_eq!(client.transport().asked(), [Kind::Hello], "not the others");
    let begin = client.transport().now_ns();
    assert_eq!(client.harden(None, |(), _| ()), Err(Errno::IO));
    assert_eq!(client.transport().now_ns() - begin, 5_000_000_000);
    assert_eq!(client.transport().asked().len(), HARDEN_TRIES as usize + 1);
    assert!(client.may_ask());
}
