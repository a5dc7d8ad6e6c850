//! SQLite: what its file's header says. `PRAGMA synchronous`, which decides on durability, is each connection's own.

use std::path::Path;

use super::found::{Database, Engine};
use crate::finding::Unseen;
use crate::root::Root;

const MAGIC: &[u8] = b"SQLite format 3\0";

/// The database in a file, if it is one.
pub fn read(root: &Root, at: &Path) -> Option<Database> {
    let header = root.bytes(at).ok().filter(|bytes| bytes.starts_with(MAGIC) && bytes.len() >= 100)?;
    let mut found = Database::new(Engine::Sqlite, at);
    // 1 stands for 65536, which two bytes do not hold.
    found.page = match u16::from_be_bytes([header[16], header[17]]) {
        1 => 65536,
        bytes => bytes.into(),
    };
    let mode = if header[18] == 2 { "wal" } else { "rollback" };
    found.settings.set("journal_mode", mode, "the file's header");
    let wal = at.with_file_name(format!("{}-wal", at.file_name()?.to_string_lossy()));
    if mode == "wal" && root.has(&wal) {
        found.log = wal;
    }
    found.unseen.push(Unseen::aside(
        "PRAGMA synchronous",
        "each connection has its own value, and no file holds it: ask in the program (PRAGMA synchronous). 2 \
         is FULL; with 1 (NORMAL) in WAL mode a power cut loses the latest transactions, with 0 (OFF) it may \
         damage the file",
    ));
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_says_its_page_and_its_journal() {
        let dir = tempfile::tempdir().expect("a directory");
        let mut header = [MAGIC, &[0; 100][..]].concat();
        (header[16], header[17], header[18]) = (0x10, 0x00, 2);
        std::fs::write(dir.path().join("a.db"), &header).expect("written");
        let found = read(&Root::at(dir.path()), Path::new("/a.db")).expect("a database");
        assert_eq!((found.page, found.settings.value("journal_mode")), (4096, Some("wal")));
        assert!(read(&Root::at(dir.path()), Path::new("/nothing")).is_none());
    }
}
