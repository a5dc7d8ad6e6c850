use seawall_media::LINE;
use seawall_wire::keeper::Position;
use zerocopy::IntoBytes as _;

use super::*;
use crate::meta::Roster;

const LOW: u64 = 7;

fn created(path: &Path) -> Log {
    let meta = Meta {
        log: format!("{LOW:032x}"),
        image: LINE as u64,
        owner: String::new(),
        promised: (0, 0),
        holder: None,
        roster: Roster::default(),
        affirmed: false,
        closed_at: None,
    };
    Log::create(path, meta, LOW, Harden::NoAffirm, false).expect("made")
}

fn answer(log: &mut Log, kind: Kind, number: u64, body: &[u8]) {
    let epoch = Epoch { counter: 1, writer: 5 };
    let turn = log.promise(epoch, None).expect("its own");
    log.answer(turn, &Frame::new(kind, LOW, epoch).numbered(number, 0), body).expect("taken");
}

/// The thread of a connection may be slow, or end, between an answer and what is to follow it; the next connection is
/// served meanwhile. The file used to have their frames in the order in which they came back, and to be called durable
/// up to what it did not have.
#[test]
fn the_file_has_what_was_answered_in_that_order() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("log");
    let mut log = created(&path);
    answer(&mut log, Kind::Adopt, 3, Position::default().as_bytes());
    let bytes = || {
        let file = std::fs::read(copy_of(&path)).expect("the file");
        file.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1)
    };
    log.answered();
    assert_eq!(bytes(), 0, "it waits for more");
    assert_eq!(log.behind().map(|(_, at)| at.number), Some(3));
    assert!(bytes() > 0, "it is made durable with all that was confirmed");
    answer(&mut log, Kind::Begin, 0, &[]);
    log.answered();
    assert_eq!(log.behind().map(|(_, at)| at.number), Some(3));
    let at = log.copy().position();
    answer(&mut log, Kind::Adopt, 4, at.as_bytes());
    log.close().expect("closed");
    let meta = Meta::read(&meta_of(&path)).expect("read").expect("there");
    let again = Log::open(&path, meta, LOW, Harden::NoAffirm, false).expect("opened");
    assert_eq!((again.copy().is_kept(), again.copy().position().number), (true, 4));
}

/// A copy is of use without its file, for as long as its keeper runs.
#[test]
fn after_its_disk_failed_nothing_is_kept_for_the_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut log = created(&directory.path().join("log"));
    log.trouble = Some("it failed".into());
    answer(&mut log, Kind::Adopt, 3, Position::default().as_bytes());
    assert_eq!(log.copy().position().number, 3);
    assert!(log.behind().is_none() && log.unspooled.is_empty());
}
