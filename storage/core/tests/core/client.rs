//! What must not go around the log waits for a daemon that is away. Where it goes around it, a message says so once.

use std::cell::{Cell, RefCell};

use crate::common::World;
use rustix::fd::{AsFd, BorrowedFd};
use seawall_core::Errno;
use seawall_core::client::{Client, Course, Received, Transport};
use seawall_wire::message::{Reply, Status};

/// A daemon that answers from the so-manieth question on.
struct Front {
    now_ns: Cell<u64>,
    asked: Cell<u32>,
    answers_at: Cell<u32>,
    status: Cell<Status>,
    said: RefCell<Vec<&'static str>>,
}

impl Front {
    fn client(answers_at: u32, status: Status) -> Client<Self> {
        Client::new(Self {
            now_ns: Cell::new(1),
            asked: Cell::new(0),
            answers_at: Cell::new(answers_at),
            status: Cell::new(status),
            said: RefCell::default(),
        })
    }
}

impl Transport for Front {
    type Connection = ();
    type Descriptors = ();

    fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }

    fn nap_ns(&self, ns: u64) {
        self.now_ns.set(self.now_ns.get() + ns);
    }

    fn send(&self, _: [&[u8]; 2], _: Option<BorrowedFd<'_>>, _: u32) -> Result<(), Errno> {
        self.asked.set(self.asked.get() + 1);
        if self.asked.get() < self.answers_at.get() { Err(Errno::CONNREFUSED) } else { Ok(()) }
    }

    fn receive(&self, (): &()) -> Result<Received<()>, Errno> {
        Ok(Received { reply: Reply::new(self.status.get()), descriptors: () })
    }

    fn say(&self, what: &'static str) {
        self.said.borrow_mut().push(what);
    }

    fn not_served(&self) {}
}

#[test]
fn no_daemon_is_waited_for_under_tail_and_five_seconds_under_atomic() {
    let world = World::new(16 << 20);
    let file = std::fs::File::open(world.dir.path()).expect("open");
    let client = Front::client(u32::MAX, Status::Refused);
    let register = |is_atomic| client.register(&world.engine, file.as_fd(), is_atomic);
    assert_eq!(register(false), Course::Unanswered);
    let front = client.transport();
    assert_eq!((front.now_ns.get(), front.asked.get(), front.said.borrow().len()), (1, 1, 0));
    assert_eq!(register(true), Course::Unanswered);
    assert_eq!((front.now_ns.get(), front.said.take().len()), (5_000_000_001, 1));
    // Once more, and by another process of the same database: nobody waits, and nobody says it again.
    let begin = front.now_ns.get();
    assert_eq!(register(true), Course::Unanswered);
    let other = Front::client(1, Status::Later);
    assert_eq!(other.register(&world.engine, file.as_fd(), true), Course::AskNext);
    assert_eq!((front.now_ns.get(), front.said.borrow().len()), (begin, 0));
    assert_eq!(other.transport().said.borrow().len(), 0);
}

#[test]
fn the_next_daemon_is_heard() {
    let world = World::new(16 << 20);
    let file = std::fs::File::open(world.dir.path()).expect("open");
    let client = Front::client(4, Status::Bypass);
    assert_eq!(client.register(&world.engine, file.as_fd(), true), Course::AskAgain);
    assert_eq!(client.transport().asked.get(), 4);
    let said = client.transport().said.take();
    assert!(said.len() == 1 && said[0].contains("can tear"), "{said:?}");
    assert_eq!(client.register(&world.engine, file.as_fd(), false), Course::Leave);
}
