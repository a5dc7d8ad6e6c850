//! To whom a keeper gives its promise of a log, to whom not any more, and what it remembers of that.

use seawall_keeper::holder::Holder;
use seawall_keeper::keeper::{Keeper, Options};
use seawall_keeper::log::Harden;
use seawall_keeper::meta::{Member, Mode, Roster, Terms};
use seawall_keeper::uuid::low_half;
use seawall_wire::keeper::{Epoch, Frame, Greeting, KEEPER_VERSION, Kind, Position, Refusal};
use zerocopy::IntoBytes as _;

const LOG: [u8; 16] = [7; 16];
const OPTIONS: Options = Options { harden: Harden::NoAffirm, witness: false, quota: 16 << 20 };

fn epoch(counter: u64) -> Epoch {
    Epoch { counter, writer: 5 }
}

/// What a writer of this host says.
fn terms(host: &str, found: Option<(u64, u64)>) -> Terms {
    let holder = Holder { machine: host.into(), host: host.into(), since: 0 };
    let roster = Roster {
        acks: 1,
        members: vec![Member { id: "a".into(), address: "b:1".into(), witness: false }],
        mode: Mode::default(),
    };
    Terms { roster, holder: Some(holder), found }
}

fn greeting() -> Greeting {
    Greeting { version: KEEPER_VERSION, make: 1, log: LOG, image: 1 << 20, keeper: [0; 16] }
}

#[test]
fn a_keeper_remembers_which_host_has_a_log_and_since_when() {
    let directory = tempfile::tempdir().expect("a directory");
    let open = || Keeper::open(directory.path(), OPTIONS).expect("opened");
    let keeper = open();
    let log = keeper.greet(&greeting(), "").expect("made");
    let lock = || log.lock().expect("whole");
    lock().promise(epoch(1), Some(terms("db-a", None))).expect("the first");
    let first = lock().meta().holder.clone().expect("said");
    assert!(first.since > 0 && first.host == "db-a");
    lock().promise(epoch(1), Some(terms("db-a", None))).expect("the same once more");
    assert_eq!(lock().meta().holder.as_ref(), Some(&first), "since the first time");
    lock().promise(epoch(3), Some(terms("db-b", None))).expect("newer");
    let refused = lock().promise(epoch(2), Some(terms("db-a", None))).expect_err("older");
    assert!(refused.to_string().contains("host db-b since 20"), "{refused}");
    drop(log);
    drop(keeper);
    assert_eq!(open().report().logs[0].holder.as_ref().map(|holder| holder.host.as_str()), Some("db-b"));
}

/// Two hosts find a log that nobody writes any more. The one that is slower asks with a higher epoch, when the other one has
/// the copy already and may serve.
// Holds: admin/KEEPERS#what-is-tested
#[test]
fn a_promise_is_refused_if_somebody_took_the_log_over_since_it_was_looked_at() {
    let directory = tempfile::tempdir().expect("a directory");
    let keeper =
        Keeper::open(directory.path(), Options { harden: Harden::Memory, ..OPTIONS }).expect("opened");
    let log = keeper.greet(&greeting(), "").expect("made");
    let mut log = log.lock().expect("whole");
    let found = Some((0, 0));
    let quick = Epoch { counter: 2, writer: 5 };
    let slow = Epoch { counter: 2, writer: 9 };
    log.promise(slow, Some(terms("db-c", found))).expect("nobody has more than its promise");
    let quick = Epoch { writer: 10, ..quick };
    let turn = log.promise(quick, Some(terms("db-b", found))).expect("newer");
    let adopt = Frame::new(Kind::Adopt, low_half(LOG), quick).numbered(1, 0);
    log.answer(turn, &adopt, Position::default().as_bytes()).expect("its copy");
    let late = Epoch { counter: 2, writer: 11 };
    let refused = log.promise(late, Some(terms("db-c", found))).expect_err("taken over");
    assert_eq!(refused.refusal, Refusal::Taken);
    assert!(refused.to_string().contains("host db-b"), "{refused}");
    assert_eq!(log.copy().promised(), quick, "it is not fenced");
    log.promise(quick, Some(terms("db-b", found))).expect("its own, on another connection");
    log.promise(late, Some(terms("db-c", None))).expect("without a condition");
}

/// Others have the log while it is forgotten, and write its promise beside what is being removed.
// Holds: admin/KEEPERS#what-is-tested
#[test]
fn a_log_is_forgotten_while_others_are_promised_it_and_does_not_reach_the_next_one() {
    let directory = tempfile::tempdir().expect("a directory");
    let keeper = Keeper::open(directory.path(), OPTIONS).expect("opened");
    for round in 0..100 {
        let log = keeper.greet(&greeting(), "").expect("made");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for counter in 1..30 {
                    let _ = log.lock().expect("whole").promise(epoch(counter), Some(terms("db-a", None)));
                }
            });
            std::thread::sleep(std::time::Duration::from_micros(round * 20));
            keeper.forget(LOG).expect("forgotten");
        });
        let next = keeper.greet(&greeting(), "").expect("made anew");
        let _ = log.lock().expect("whole").promise(epoch(100), Some(terms("db-a", None)));
        drop((log, next));
        drop(keeper.report());
        keeper.forget(LOG).expect("forgotten");
        assert_eq!(std::fs::read_dir(directory.path()).expect("listed").count(), 1, "its number alone");
    }
}
