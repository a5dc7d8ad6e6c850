//! Names and statements are bytes, and need not be text.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::process::Stdio;

use crate::common::server::Server;
use crate::common::{Place, Said, Writer, kill_everything};
use serde_json::Value;

const NAME: &[u8] = b"donn\xe9es";

/// A place whose directory has such a name, what that lies in, and the directory.
fn place() -> (tempfile::TempDir, Place, PathBuf) {
    let mut place = Place::new();
    let directory = place.data.path().join(OsStr::from_bytes(NAME));
    fs::create_dir(&directory).expect("made");
    let inner = tempfile::TempDir::new_in(&directory).expect("a directory");
    let outer = std::mem::replace(&mut place.data, inner);
    let real = place.data.path().to_owned();
    (outer, place, real)
}

/// A path as it stands in JSON.
fn bytes(path: &Value) -> Vec<u8> {
    assert!(path["text"].as_str().is_some_and(|text| text.contains("donn\u{fffd}es")), "{path}");
    let bytes = path["bytes"].as_array().expect("bytes").iter();
    bytes.map(|byte| byte.as_u64().expect("a number") as u8).collect()
}

// Holds: admin/RUN#names-that-are-not-text
#[test]
fn a_directory_whose_name_is_no_text_is_served_like_any_other() {
    let (_outer, place, directory) = place();
    let mut writer = Writer::start(&place);
    writer.write(5);
    let status = place.status();
    assert_eq!(bytes(&status["roots"][0]["path"]), directory.as_os_str().as_bytes());
    let wal = directory.join("x-wal");
    assert_eq!(bytes(&status["files"][0]["path"]), wal.as_os_str().as_bytes());
    place.seawall(&["status", "--pool", place.pool()]).succeeds();
    let mut freeze = place.command(&["freeze", "--json", "--pool", place.pool()]);
    let frozen = Said::from(freeze.arg(&directory).stdin(Stdio::null()).output().expect("runs")).json();
    assert_eq!(bytes(&frozen["directories"][0]), directory.as_os_str().as_bytes());
    place.seawall(&["thaw", "--pool", place.pool()]).succeeds();
    writer.write(5);
    kill_everything(&place, writer);
    let recovered = place.seawall(&["recover", "--pool", place.pool(), "--json"]).json();
    assert_eq!(bytes(&recovered["files"][0]), wal.as_os_str().as_bytes(), "{recovered}");
    assert_eq!(Writer::found(&place), 10);
}

#[test]
fn a_pool_whose_name_is_no_text_is_found_again() {
    let place = Place::new();
    let pool = place.pool.with_file_name(OsStr::from_bytes(b"p\xe9.pool"));
    fs::rename(&place.pool, &pool).expect("renamed");
    let ask = |words: &[&str]| {
        let mut command = place.command(words);
        Said::from(command.arg("--pool").arg(&pool).stdin(Stdio::null()).output().expect("runs"))
    };
    let mut run = place.command(&["run", "--preset", "sqlite", "--data", "."]);
    run.arg("--pool").arg(&pool).args([
        "--",
        "dd",
        "if=/dev/zero",
        "of=x-wal",
        "bs=4096",
        "count=2",
        "oflag=dsync",
    ]);
    Said::from(run.stdin(Stdio::null()).output().expect("runs")).succeeds();
    let status = ask(&["status", "--json"]).json();
    assert!(status["pool"]["bytes"].is_array(), "{status}");
    for words in [&["status"][..], &["drain", "--json"], &["recover", "--json"], &["stop"]] {
        ask(words).succeeds();
    }
}

/// pg_stat_statements converts the texts of all databases to the encoding of ours: one that cannot be is an error for all.
#[test]
fn a_statement_that_is_no_text_hides_no_other_one() {
    let Some(server) = Server::start_with(&["-c", "shared_preload_libraries=pg_stat_statements"]) else {
        return;
    };
    if server.sql("CREATE EXTENSION pg_stat_statements").is_none() {
        return; // Another package.
    }
    for encoding in ["UTF8", "SQL_ASCII", "LATIN1"] {
        let made = format!(
            "CREATE DATABASE in_{encoding} ENCODING {encoding} TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
        );
        server.sql(&made).expect("made");
        server.sql_bytes(&format!("in_{}", encoding.to_lowercase()), b"CREATE EXTENSION pg_stat_statements;");
    }
    let place = Place::bare();
    let snap = |database: &str| {
        let (repo, db) = (format!("{database}.db"), server.address(database));
        let taken = place.seawall(&["snap", "--no-seawall", "--json", "--repo", &repo, "--db", &db]).json();
        assert!(!taken["notes"].to_string().contains("pg_stat"), "{database}: {taken}");
    };
    let databases = ["in_utf8", "in_sql_ascii", "in_latin1"];
    databases.iter().for_each(|database| snap(database));
    server.sql_bytes("in_utf8", b"SELECT /* plain */ count(*), 'x' FROM generate_series(1, 300000);");
    server.sql_bytes("in_sql_ascii", b"SELECT /* caf\xe9 \xff */ count(*) FROM generate_series(1, 300000);");
    databases.iter().for_each(|database| snap(database));
    for database in databases {
        let repo = format!("{database}.db");
        let report = place.seawall(&["report", "first", "last", "--repo", &repo]);
        report.succeeds();
        let expected: &[&str] = match database {
            "in_sql_ascii" => &["/* plain */", "/* caf\u{fffd} \u{fffd} */"],
            // Any bytes are a text there.
            "in_latin1" => &["/* plain */", "/* caf\u{e9} \u{ff} */"],
            _ => &["its text is not of the database's encoding"],
        };
        assert!(expected.iter().all(|text| report.out.contains(text)), "{database}: {}", report.out);
        place.seawall(&["report", "first", "last", "--repo", &repo, "--html", "r.html"]).succeeds();
        assert!(String::from_utf8(fs::read(place.file("r.html")).expect("written")).is_ok());
    }
}
