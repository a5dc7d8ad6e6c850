use std::io::Write;

use super::*;

const SET: &str = "*1\r\n$4\r\nPING\r\n";

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn place(&self) -> Place {
        Place { directory: self.0.path().to_owned(), name: "a".into() }
    }

    fn append(&self, name: &str, text: &str) {
        let mut file =
            File::options().append(true).create(true).open(self.0.path().join(name)).expect("opened");
        file.write_all(text.as_bytes()).expect("written");
    }

    /// As Redis does: a new file in the place of the old one.
    fn manifest(&self, parts: &[(&str, u64, char)]) {
        let lines: String =
            parts.iter().map(|(name, seq, kind)| format!("file {name} seq {seq} type {kind}\n")).collect();
        self.append("temp", &lines);
        std::fs::rename(self.0.path().join("temp"), self.place().manifest()).expect("renamed");
    }
}

fn all(log: &mut Log) -> Result<String> {
    let mut out = Vec::new();
    while log.read(&mut out)? {}
    Ok(String::from_utf8(out).expect("text"))
}

#[test]
fn a_rewrite_is_followed_although_its_files_are_removed() {
    let files = Files::new();
    files.append("b1", "REDIS0011");
    files.append("i1", SET);
    files.manifest(&[("b1.rdb", 1, 'b'), ("i1", 1, 'i')]);
    std::fs::rename(files.0.path().join("b1"), files.0.path().join("b1.rdb")).expect("renamed");
    let (base, mut log) = Log::open(&files.place()).expect("opened");
    assert!(matches!(base, Base::Rdb(_)));
    assert_eq!(all(&mut log).expect("read"), SET);
    files.append("i1", SET);
    files.append("i2", "");
    files.manifest(&[("b1.rdb", 1, 'b'), ("i1", 1, 'i'), ("i2", 2, 'i')]);
    files.append("i2", SET);
    std::fs::remove_file(files.0.path().join("i1")).expect("removed");
    assert_eq!(all(&mut log).expect("read"), SET.repeat(2));
    assert_eq!(log.scan.whole(), 3 * SET.len() as u64);
}

#[test]
fn a_base_of_commands_is_the_beginning_of_the_log() {
    let files = Files::new();
    files.append("b", SET);
    files.append("i", SET);
    files.manifest(&[("b", 1, 'b'), ("i", 1, 'i')]);
    let (base, mut log) = Log::open(&files.place()).expect("opened");
    assert!(matches!(base, Base::Commands));
    assert_eq!(all(&mut log).expect("read"), SET.repeat(2));
}

#[test]
fn a_lost_thread_is_an_error() {
    let follow = |change: &dyn Fn(&Files)| {
        let files = Files::new();
        files.append("i1", &SET.repeat(2));
        files.manifest(&[("i1", 1, 'i')]);
        let (_, mut log) = Log::open(&files.place()).expect("opened");
        assert_eq!(all(&mut log).expect("read"), SET.repeat(2));
        change(&files);
        all(&mut log).map(drop).map_err(|e| format!("{e:#}")).expect_err("an error")
    };
    let gap = follow(&|files| {
        files.append("i3", SET);
        files.manifest(&[("i3", 3, 'i')]);
    });
    assert!(gap.contains("was missed"), "{gap}");
    let half = follow(&|files| {
        files.append("i1", &SET[..9]);
        files.append("i2", SET);
        files.manifest(&[("i1", 1, 'i'), ("i2", 2, 'i')]);
    });
    assert!(half.contains("in the middle of a command"), "{half}");
    let shorter = follow(&|files| {
        File::options().write(true).open(files.0.path().join("i1")).and_then(|f| f.set_len(3)).expect("cut");
    });
    assert!(shorter.contains("shorter"), "{shorter}");
    let anew = follow(&|files| files.manifest(&[]));
    assert!(anew.contains("anew"), "{anew}");
}

#[test]
fn an_earlier_redis_is_named() {
    let files = Files::new();
    files.append("appendonly.aof", "REDIS0009");
    files.append("i", "");
    files.manifest(&[("appendonly.aof", 1, 'b'), ("i", 1, 'i')]);
    let error = Log::open(&files.place()).err().expect("refused").to_string();
    assert!(error.contains("BGREWRITEAOF"), "{error}");
}
