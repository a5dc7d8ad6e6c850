//! What a repository keeps, and what it refuses.

use std::io::{Seek, SeekFrom, Write};

use seawall_awr::model::{Instant, Reading, Sample, Snapshot, Target};
use seawall_awr::{Baseline, Repository, RepositoryError, Samples};

fn snapshot(wall_ms: i64, label: &str) -> Snapshot {
    let target = Target { id: "t".into(), ..Target::default() };
    let at = Instant { wall_ms, up_s: wall_ms as f64 / 1000.0, boot_id: "b".into() };
    let mut snapshot = Snapshot { at, target, label: label.into(), ..Snapshot::default() };
    let reading = Reading::new("k", "x", "e").counter("n", wall_ms as f64).fact("query", "SELECT 'é'");
    snapshot.add("k", true, vec![reading]);
    snapshot
}

fn filled(directory: &tempfile::TempDir, name: &str, times: &[i64]) -> Repository {
    let mut repository = Repository::open_or_create(&directory.path().join(name)).expect("made");
    for wall_ms in times {
        repository.put(&mut snapshot(*wall_ms, "")).expect("stored");
        let sample = Sample {
            at_ms: *wall_ms,
            foreground: true,
            wait_type: "IO".into(),
            wait_event: "WALSync".into(),
            query_id: 7,
            sessions: 3,
        };
        repository
            .put_samples("t", &Samples { ticks: vec![*wall_ms], samples: vec![sample] })
            .expect("stored");
    }
    repository
}

#[test]
fn a_snapshot_comes_back_as_it_was() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut repository = Repository::open_or_create(&directory.path().join("a/b.db")).expect("made");
    let mut before = snapshot(1000, "before");
    let id = repository.put(&mut before).expect("stored");
    assert_eq!(repository.get(id).expect("found"), before);
    drop(repository);
    let again = Repository::open(&directory.path().join("a/b.db")).expect("opened");
    assert_eq!(again.get(id).expect("found"), before);
}

#[test]
fn snapshots_have_names() {
    let directory = tempfile::tempdir().expect("a directory");
    let repository = filled(&directory, "r.db", &[1000, 2000, 3000]);
    for (name, id) in [("first", 1), ("last", 3), ("last-1", 2), ("2", 2)] {
        assert_eq!(repository.resolve(name).expect(name), id);
    }
    for wrong in ["4", "last-3", "latest", "", "-1"] {
        let said = repository.resolve(wrong).expect_err(wrong).to_string();
        assert!(said.contains("there are 1 to 3"), "{said}");
    }
}

#[test]
fn a_repository_that_is_missing_empty_or_foreign_is_named() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("r.db");
    assert!(matches!(Repository::open(&path), Err(RepositoryError::Missing(_))));
    std::fs::write(&path, "this is a text file, and long enough to be taken for something else ".repeat(20))
        .expect("written");
    assert!(matches!(Repository::open(&path), Err(RepositoryError::Foreign(_))));
    std::fs::write(&path, "").expect("written");
    assert!(matches!(Repository::open(&path), Err(RepositoryError::Foreign(_))));
    let empty = filled(&directory, "empty.db", &[]);
    assert!(empty.resolve("last").expect_err("nothing").to_string().contains("is empty"));
}

#[test]
fn another_version_is_refused_and_told() {
    let directory = tempfile::tempdir().expect("a directory");
    drop(filled(&directory, "r.db", &[1000]));
    let path = directory.path().join("r.db");
    let raw = rusqlite::Connection::open(&path).expect("opened");
    raw.pragma_update(None, "user_version", 99).expect("set");
    drop(raw);
    let said = Repository::open_or_create(&path).expect_err("another version").to_string();
    assert!(said.contains("version 99") && said.contains("export"), "{said}");
}

#[test]
fn a_damaged_repository_is_refused_and_told() {
    let directory = tempfile::tempdir().expect("a directory");
    drop(filled(&directory, "r.db", &(0..400).collect::<Vec<_>>()));
    let path = directory.path().join("r.db");
    let mut file = std::fs::OpenOptions::new().write(true).open(&path).expect("opened");
    file.seek(SeekFrom::Start(4096)).expect("sought");
    file.write_all(&[0xAB; 40_960]).expect("overwritten");
    let said = Repository::open(&path).expect_err("damaged").to_string();
    assert!(said.contains("damaged") && said.contains(".recover"), "{said}");
}

#[test]
fn old_snapshots_are_pruned_but_not_those_of_a_baseline() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut repository = filled(&directory, "r.db", &[1000, 2000, 3000, 4000, 5000]);
    repository.put_baseline(&Baseline { name: "good".into(), first: 2, last: 3 }).expect("named");
    let pruned = repository.prune(4500).expect("pruned");
    assert_eq!((pruned.snapshots, pruned.samples), (2, 2));
    let left: Vec<_> = repository.list().expect("listed").iter().map(|e| e.id).collect();
    assert_eq!(left, [2, 3, 5]);
    assert_eq!(repository.samples("t", 0, 9999).expect("read").samples.len(), 3);
}

#[test]
fn a_baseline_needs_its_snapshots() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut repository = filled(&directory, "r.db", &[1000]);
    let wrong = repository.put_baseline(&Baseline { name: "x".into(), first: 1, last: 2 });
    assert!(matches!(wrong, Err(RepositoryError::NoSnapshot { .. })));
    assert!(repository.baseline("x").expect_err("none").to_string().contains("has none"));
}

#[test]
fn what_was_exported_can_be_imported_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut from = filled(&directory, "a.db", &[1000, 2000, 3000]);
    from.put_baseline(&Baseline { name: "good".into(), first: 2, last: 3 }).expect("named");
    let mut lines = Vec::new();
    assert_eq!(from.export(2, 3, &mut lines).expect("exported"), 2);
    let mut to = filled(&directory, "b.db", &[500]);
    let first = to.import(lines.as_slice()).expect("imported");
    assert_eq!((first.snapshots, first.known), (2, 0));
    assert_eq!(to.baseline("good").expect("there"), Baseline { name: "good".into(), first: 2, last: 3 });
    assert_eq!(to.samples("t", 0, 9999).expect("read").samples.len(), 3);
    let again = to.import(lines.as_slice()).expect("imported");
    assert_eq!((again.snapshots, again.known), (0, 2));
    assert_eq!(to.samples("t", 0, 9999).expect("read").samples.len(), 3);
}

#[test]
fn a_damaged_export_changes_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    let from = filled(&directory, "a.db", &[1000, 2000]);
    let mut lines = Vec::new();
    from.export(1, 2, &mut lines).expect("exported");
    let cut = &lines[..lines.len() - 40];
    let mut to = filled(&directory, "b.db", &[]);
    let said = to.import(cut).expect_err("cut short").to_string();
    assert!(said.contains("line 4") && said.contains("nothing was imported"), "{said}");
    assert!(to.list().expect("listed").is_empty());
    assert!(to.import("{\"header\":{\"format\":\"x\",\"version\":1}}\n".as_bytes()).is_err());
    assert!(to.import("[]\n".as_bytes()).is_err());
}

#[test]
fn nobody_sees_half_of_a_new_repository() {
    let directory = tempfile::tempdir().expect("a directory");
    for round in 0..20 {
        let path = directory.path().join(format!("{round}.db"));
        std::thread::scope(|scope| {
            scope.spawn(|| Repository::open_or_create(&path).expect("made"));
            while !path.exists() {}
            Repository::open(&path).expect("whole");
        });
    }
    assert!(
        std::fs::read_dir(directory.path()).expect("listed").flatten().all(|e| !e
            .path()
            .display()
            .to_string()
            .contains("new"))
    );
}
