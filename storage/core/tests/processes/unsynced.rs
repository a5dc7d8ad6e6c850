//! Writes around the log, of files that nobody has synced yet.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::common::World;
use crate::{nobody_forks, spawning};
use rustix::process::{Pid, Signal, kill_process};
use seawall_core::{Engine, Owner};

/// Long enough for a sync that does not wait.
const MOMENT: Duration = Duration::from_millis(100);
/// Less than the two seconds after which a writer that takes longer is given up.
const GIVES_UP: Duration = Duration::from_secs(1);

fn world() -> World {
    let _nobody_forks = nobody_forks();
    World::new(16 << 20)
}

#[test]
fn a_right_ends_with_the_next_sync_and_a_later_file_has_another_one() {
    let world = world();
    let (engine, who) = (&world.engine, world.who(0));
    let first = engine.expect_unsynced();
    assert_eq!(engine.expect_unsynced(), first, "nobody has synced anything");
    assert!(engine.write_around(who, first).is_some());
    engine.revoke_rights();
    assert!(engine.write_around(who, first).is_none());
    let second = engine.expect_unsynced();
    assert_ne!(second, first);
    assert!(engine.write_around(who, second).is_some());
    assert!(engine.write_around(who, first).is_none(), "the file was synced");
    for _ in 0..4 {
        engine.revoke_rights();
        engine.expect_unsynced();
        assert!(engine.write_around(who, first).is_none() && engine.write_around(who, second).is_none());
    }
}

/// One who comes while another one waits has to wait as well, in this period and in the next one.
#[test]
fn every_sync_waits_for_the_writes_that_are_under_way() {
    let world = world();
    let engine = &world.engine;
    let right = engine.expect_unsynced();
    let around = engine.write_around(world.who(0), right).expect("nobody has synced anything");
    let has_ended = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let sync = || {
            engine.revoke_rights();
            assert!(has_ended.load(SeqCst), "a write was under way");
        };
        threads.spawn(sync);
        while engine.write_around(world.who(1), right).is_some() {
            std::thread::yield_now();
        }
        threads.spawn(sync);
        let next = engine.expect_unsynced();
        assert!(engine.write_around(world.who(1), next).is_some(), "another file's writes wait for nobody");
        threads.spawn(sync);
        std::thread::sleep(MOMENT);
        has_ended.store(true, SeqCst);
        drop(around);
    });
    assert!(engine.write_around(world.who(0), right).is_none());
}

#[test]
fn writes_of_the_next_period_are_not_waited_for() {
    let world = world();
    let engine = &world.engine;
    let former = engine.write_around(world.who(0), engine.expect_unsynced()).expect("a right");
    std::thread::scope(|threads| {
        let sync = threads.spawn(|| engine.revoke_rights());
        std::thread::sleep(MOMENT);
        let next = engine.expect_unsynced();
        let _later = engine.write_around(world.who(1), next).expect("a right");
        drop(former);
        sync.join().expect("no panic");
    });
}

/// Another process, which ends with its test.
struct Process(Child);

impl Process {
    fn end(&mut self) {
        self.0.kill().expect("alive");
        self.0.wait().expect("it ends");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn process() -> Process {
    let spawning = spawning();
    let mut cat = Command::new("cat");
    let mut child = cat.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("cat");
    let (to, from) = (child.stdin.as_mut().expect("piped"), child.stdout.as_mut().expect("piped"));
    to.write_all(b"?").expect("written");
    // Once it answers, the kernel has closed the descriptors that it had of ours: not when we go on, and not when it has its name.
    from.read_exact(&mut [0]).expect("answered");
    drop(spawning);
    Process(child)
}

/// A client slot of a process, with a write under way.
fn writer(engine: &Engine, pid: u32) -> Owner {
    let who = Owner::new(engine.claim_client(pid, 0).expect("a slot"), 16);
    std::mem::forget(engine.write_around(who, engine.expect_unsynced()).expect("a right"));
    who
}

fn took(what: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    what();
    begin.elapsed()
}

#[test]
fn nobody_waits_for_a_process_that_died_in_its_write() {
    let world = world();
    let engine = &world.engine;
    let mut child = process();
    writer(engine, child.0.id());
    child.end();
    assert!(took(|| engine.revoke_rights()) < GIVES_UP);
}

#[test]
fn a_slots_next_process_has_nothing_under_way() {
    let world = world();
    let engine = &world.engine;
    // Of a process that is gone by now, as far as anybody can tell.
    let former = writer(engine, std::process::id());
    engine.release_client(former.client());
    let next = engine.claim_client(std::process::id(), 0).expect("a slot");
    assert_eq!(next, former.client());
    let around = engine.write_around(former, engine.expect_unsynced()).expect("a right");
    drop(around);
    assert!(took(|| engine.revoke_rights()) < GIVES_UP);
}

#[test]
fn a_process_that_is_stopped_in_its_write_is_given_up_and_no_other_one() {
    let world = world();
    let engine = &world.engine;
    let mut child = process();
    let stopped = writer(engine, child.0.id());
    kill_process(Pid::from_child(&child.0), Signal::STOP).expect("alive");
    assert!(took(|| engine.revoke_rights()) < GIVES_UP);
    let right = engine.expect_unsynced();
    assert!(engine.write_around(stopped, right).is_none(), "its former write may come at any time");
    assert!(engine.write_around(world.who(0), right).is_some());
    assert!(took(|| engine.revoke_rights()) < GIVES_UP, "it was given up before");
    child.end();
}
