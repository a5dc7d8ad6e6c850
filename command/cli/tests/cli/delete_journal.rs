//! SQLite's default, journal mode `delete`: a journal that is removed after each transaction and made again for the next.

use std::fs;

use crate::common::{Place, SEAWALL, Said, has, is_root, names};
use serde_json::Value;

const JOURNAL: &str = "a.db-journal";

/// Transactions of one row each, in one process.
fn rows(from: u32, to: u32) -> String {
    (from..=to).map(|n| format!("insert into t values({n});")).collect()
}

/// A process of sqlite3 on `data/a.db` under Seawall, fed with these lines.
fn sqlite(place: &Place, lines: &[&str]) -> Said {
    let mut all = vec!["data/a.db"];
    all.extend(lines);
    let run = ["run", "--pool", place.pool(), "--", "sqlite3"];
    place.seawall(&[&run[..], &all].concat())
}

fn place() -> Option<Place> {
    let place = Place::new();
    fs::create_dir(place.file("data")).expect("made");
    has("sqlite3").then_some(place)
}

/// What the database says without Seawall.
fn bare(place: &Place, sql: &str) -> String {
    let output = std::process::Command::new("sqlite3").arg(place.file("data/a.db")).arg(sql).output();
    String::from_utf8(output.expect("sqlite3").stdout).expect("text").trim().to_owned()
}

// Holds: internals/SEMANTICS#which-files
#[test]
fn a_journal_that_is_removed_again_and_again_stays_and_is_not_seen() {
    let Some(place) = place() else { return };
    let status = format!(".shell {SEAWALL} status --json --pool {} > status.json", place.pool());
    let look = ".shell ls -a data > seen; test -e data/a.db-journal; echo $? >> seen; stat data/a.db-journal 2>> seen";
    let said = sqlite(&place, &["create table t(x);", &rows(1, 20), look, &status, &rows(21, 22)]);
    said.succeeds();
    let seen = fs::read_to_string(place.file("seen")).expect("looked");
    assert!(seen.starts_with(".\n..\na.db\n1\n") && seen.contains("No such file"), "{seen}");
    let text = fs::read_to_string(place.file("status.json")).expect("looked");
    let status: Value = serde_json::from_str(&text).expect("JSON");
    let files = status["files"].as_array().expect("files");
    let is_journal = |file: &&Value| file["path"].as_str().is_some_and(|path| path.contains(JOURNAL));
    let journal = files.iter().find(is_journal).unwrap_or_else(|| panic!("it is in the log: {status}"));
    assert!(journal["absorbed"].as_u64() > Some(15), "{journal}");
    assert_eq!(journal["flags"], serde_json::json!(["removed, to be made again"]), "{journal}");
    assert_eq!(names(&place.file("data")), ["a.db"], "and goes with its guard");
    assert_eq!(bare(&place, "pragma integrity_check; select sum(x), count(*) from t"), "ok\n253|22");
}

/// Changes that the journal alone can undo are in the database's file when the process dies.
// Holds: internals/SEMANTICS#which-files
#[test]
fn a_journal_that_was_made_again_undoes_what_its_process_left() {
    let Some(place) = place() else { return };
    let spilled = "pragma cache_size = 5; begin; update t set x = -x; \
                   insert into t select x from t, (select 1 union select 2 union select 3) limit 20000;";
    let create = "create table t(x); insert into t with recursive n(x) as (select 1 union all select x + 1 from n \
                  where x < 20000) select x from n;";
    let said = sqlite(&place, &[create, &rows(1, 5), spilled, ".shell kill -9 $PPID"]);
    assert_ne!(said.code, Some(0), "it was killed: {}", said.err);
    let hot = names(&place.file("data"));
    let after = sqlite(&place, &["pragma integrity_check; select count(*), min(x) from t;", &rows(6, 12)]);
    assert_eq!(after.succeeds().out, "ok\n20005|1\n", "{hot:?}: {}", after.err);
    assert_eq!(names(&place.file("data")), ["a.db"]);
    assert_eq!(bare(&place, "pragma integrity_check; select count(*), min(x) from t"), "ok\n20012|1");
}

// Holds: internals/SEMANTICS#which-files
#[test]
fn a_program_without_seawall_meets_no_journal_and_the_next_transaction_makes_one() {
    let Some(place) = place().filter(|_| is_root()) else { return };
    let look = ".shell env -u LD_PRELOAD ls -a data >> seen";
    let said = sqlite(
        &place,
        &[
            "create table t(x);",
            &rows(1, 9),
            look,
            &rows(10, 19),
            look,
            "pragma journal_mode=truncate;",
            &rows(20, 22),
        ],
    );
    said.succeeds();
    let seen = fs::read_to_string(place.file("seen")).expect("looked");
    assert_eq!(seen, ".\n..\na.db\n.\n..\na.db\n");
    assert_eq!(bare(&place, "pragma integrity_check; select sum(x), count(*) from t"), "ok\n253|22");
}

/// By other calls than SQLite's own the name means what it says.
// Holds: internals/SEMANTICS#which-files
#[test]
fn whatever_else_is_done_with_the_name_of_a_removed_journal_is_the_kernels() {
    let Some(place) = place() else { return };
    let at = "data/a.db-journal";
    let shell = ".shell cd data; rm a.db-journal 2> ../no; cat a.db-journal 2>> ../no; mv a.db-journal b 2>> ../no; \
                 echo moved > b; mv b a.db-journal && cat a.db-journal > ../content; ls > ../listed; rm a.db-journal";
    let said = sqlite(&place, &["create table t(x);", &rows(1, 9), shell, &rows(10, 22)]);
    said.succeeds();
    let read = |name| fs::read_to_string(place.file(name)).expect("written");
    assert_eq!(read("no").matches("No such file").count(), 3, "{}", read("no"));
    assert_eq!(read("content"), "moved\n");
    assert_eq!(read("listed"), "a.db\na.db-journal\n");
    assert!(!place.file(at).exists());
    assert_eq!(bare(&place, "pragma integrity_check; select sum(x), count(*) from t"), "ok\n253|22");
}
