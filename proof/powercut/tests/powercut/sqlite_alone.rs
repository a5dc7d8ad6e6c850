//! What SQLite does by itself on a disk that refuses a write in the background, without Seawall: limit 13 of the
//! failure model stands on this.
//!
//! A checkpoint that a reader holds up copies a part of the log and does not sync the database. The error of a
//! page of that part comes at the sync of a later checkpoint, once. SQLite drops it and tries again: the rest
//! is copied, the sync succeeds, the log begins anew, and the page is nowhere.

use std::fs::File;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use crate::common::{Mounted, Scene};
use fastrand::Rng;
use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
use rusqlite::Connection;
use seawall_faulty_disk::{Disk, Loss, Request};

fn open(path: &Path) -> Connection {
    let database = Connection::open(path).expect("a database");
    let settings = "PRAGMA journal_mode = wal; PRAGMA synchronous = full; PRAGMA wal_autocheckpoint = 0";
    database.execute_batch(settings).expect("settings");
    database
}

fn create(database: &Connection) {
    let sql = "CREATE TABLE accounts (id INTEGER PRIMARY KEY, balance INTEGER, filler TEXT); \
               CREATE TABLE history (id INTEGER PRIMARY KEY, delta INTEGER); \
               WITH RECURSIVE n(id) AS (SELECT 0 UNION ALL SELECT id + 1 FROM n WHERE id < 1999) \
               INSERT INTO accounts SELECT id, 0, printf('%.300c', 'x') FROM n; \
               PRAGMA wal_checkpoint(truncate)";
    database.execute_batch(sql).expect("tables, on disk");
}

fn transfer(database: &Connection, account: u32) {
    let sql = format!(
        "BEGIN; UPDATE accounts SET balance = balance + 7 WHERE id = {account}; \
         INSERT INTO history (delta) VALUES (7); COMMIT"
    );
    database.execute_batch(&sql).expect("a commit");
}

fn checkpoint(database: &Connection) -> rusqlite::Result<(i64, i64)> {
    database.query_row("PRAGMA wal_checkpoint(passive)", [], |row| Ok((row.get(1)?, row.get(2)?)))
}

fn sum(database: &Connection, sql: &str) -> i64 {
    database.query_row(sql, [], |row| row.get(0)).expect("a sum")
}

/// Lets the kernel write the file back, and the disk refuse.
fn refuse_a_write_back(disk: &Disk, path: &Path) {
    let file = File::open(path).expect("the database's file");
    disk.fail(Request::Write, u64::MAX);
    while disk.counts().failed == 0 {
        posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED).expect("write-back");
        sleep(Duration::from_millis(5));
    }
    // What was sent with it is refused too.
    sleep(Duration::from_millis(100));
    disk.heal();
}

// Holds: L13
#[test]
fn a_page_that_an_earlier_checkpoint_could_not_write_is_forgotten() {
    let Some(scene) = Scene::new("SQLITE ALONE") else { return };
    let mounted = Mounted::new(&scene);
    let Scene { disk, at, .. } = &scene;
    let path = at.join("bank.db");
    let (writer, reader) = (open(&path), open(&path));
    create(&writer);
    (0..2000).step_by(10).for_each(|account| transfer(&writer, account));

    reader.execute_batch("BEGIN; SELECT count(*) FROM history").expect("a reader");
    transfer(&writer, 5);
    let (frames, copied) = checkpoint(&writer).expect("a part of a checkpoint");
    assert!(0 < copied && copied < frames, "held up by the reader: {copied} of {frames}");
    refuse_a_write_back(disk, &path);
    reader.execute_batch("COMMIT").expect("the reader's end");
    checkpoint(&writer).expect_err("the kernel tells the error at the next sync");
    let (frames, copied) = checkpoint(&writer).expect("and not again");
    assert_eq!(frames, copied);
    transfer(&writer, 15);

    disk.cut(Loss::Everything, &mut Rng::with_seed(1));
    disk.off();
    drop((writer, reader, mounted));
    disk.reboot().expect("power");
    let mounted = Mounted::again(&scene);
    let after = open(&path);
    let (balances, history) =
        (sum(&after, "SELECT sum(balance) FROM accounts"), sum(&after, "SELECT sum(delta) FROM history"));
    assert_ne!(balances, history, "SQLite keeps it now: say so in the failure model");
    drop(after);
    drop(mounted);
}
