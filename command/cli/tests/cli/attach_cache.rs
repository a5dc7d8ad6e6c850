//! A service's block cache: `seawall attach --cache`, and what follows the tables in it, on the files of an image.

use crate::common;
use std::fs;

use crate::common::image::{DROP_IN, FOLLOWER, Image, POSTGRES};
use serde_json::Value;

const OF_DAEMON: &str = "etc/systemd/system/seawalld@mnt-a.pool.service.d";

/// What the daemon is started with, by the drop-in of this service.
fn daemon_line(image: &Image, service: &str) -> String {
    let text = image.read(&format!("{OF_DAEMON}/{service}.conf"));
    let lines: Vec<_> = text.lines().filter_map(|line| line.strip_prefix("ExecStart=")).collect();
    match lines.as_slice() {
        // The empty one takes the unit's own away.
        ["", line] => (*line).into(),
        [] => String::new(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_block_cache_comes_with_the_daemon_stays_and_goes() {
    let image = Image::new();
    let before = image.all();
    let pool = ["--pool", "/mnt/a.pool", "--emulated"];
    let cached = [&[POSTGRES], &pool[..], &["--cache", "1G"]].concat();
    let shown = image.attach(&[&cached[..], &["--dry-run"]].concat());
    assert!(shown.succeeds().out.contains("--pool %f --cache 1073741824 "), "{}", shown.out);
    assert_eq!(image.all(), before, "a dry run writes nothing");

    let told = image.attach(&cached);
    assert!(told.succeeds().out.contains("/mnt/a.pool.cache, 1 GiB, blocks of 8 KiB"), "{}", told.out);
    let line = "/usr/bin/seawall daemon --service --pool %f --cache 1073741824 --cache-block 8K --cache-path \
                /mnt/a.pool.cache";
    assert_eq!(daemon_line(&image, POSTGRES), line);
    assert!(
        image.read(&format!("{OF_DAEMON}/{POSTGRES}.conf")).contains("RequiresMountsFor=/mnt/a.pool.cache\n")
    );
    let again = image.attach(&[POSTGRES, "--policy", "atomic", "--json"]).json();
    assert_eq!((&again["changed"], &again["cache"]["size"]), (&Value::Bool(true), &Value::from(1 << 30)));
    assert_eq!(daemon_line(&image, POSTGRES), line, "what was not asked for stays");

    image.attach(&[POSTGRES, "--cache", "2G", "--cache-block", "4K"]).succeeds();
    let larger = image.attach(&[POSTGRES, "--cache", "4G", "--json"]).json();
    assert_eq!(
        larger["cache"],
        serde_json::json!({ "size": 4u64 << 30, "block_bytes": 4096, "path": "/mnt/a.pool.cache" })
    );
    image.attach(&[POSTGRES, "--no-cache"]).succeeds().says(&["/mnt/a.pool.cache is not used"]);
    assert_eq!(daemon_line(&image, POSTGRES), "");
    image.seawall(&["detach", POSTGRES]).succeeds();
    assert_eq!(image.all(), before, "nothing is left of it");
}

/// The unit that follows tables, with its user replaced.
const GOLDEN_FOLLOWER: &str = "\
# Written by `seawall attach`, removed by `seawall detach postgresql@15-main`. Do not edit it: attach again.
[Unit]
Description=Tables of postgresql@15-main that the block cache keeps, followed through rewrites
Documentation=man:seawall-cache(1)
BindsTo=postgresql@15-main.service
After=postgresql@15-main.service seawalld@mnt-a.pool.service

[Service]
User=USER
ExecStart=/usr/bin/seawall cache refresh --follow --wait --pool /mnt/a.pool
# It waits for the server and the daemon itself.
Restart=on-failure
RestartSec=10s
NoNewPrivileges=yes
";

// Holds: internals/CACHE#policies-and-prewarming
#[test]
fn tables_are_followed_by_a_unit_that_comes_and_goes_with_the_service() {
    let image = Image::new();
    let before = image.all();
    let attach = [POSTGRES, "--pool", "/mnt/a.pool", "--emulated"];
    let wants = || image.read(DROP_IN).contains("\nWants=seawall-follow-postgresql@15-main.service\n");
    image.attach(&[&attach[..], &["--cache", "1G"]].concat()).succeeds();
    assert!(!wants() && !image.at(FOLLOWER).exists(), "nobody asked for it");
    let cached = image.all();
    let shown = image.attach(&[POSTGRES, "--follow-tables", "--dry-run"]);
    assert!(shown.succeeds().out.contains("--follow --wait"), "{}", shown.out);
    assert_eq!(image.all(), cached, "a dry run writes nothing");

    image.attach(&[POSTGRES, "--follow-tables"]).succeeds();
    let user = rustix::process::geteuid().as_raw().to_string();
    assert_eq!(image.read(FOLLOWER), GOLDEN_FOLLOWER.replace("USER", &user));
    assert!(wants(), "{}", image.read(DROP_IN));
    let again = image.attach(&[POSTGRES, "--json"]).json();
    assert_eq!((&again["changed"], &again["follower"]), (&Value::Bool(false), &Value::from(user)));

    image.attach(&[POSTGRES, "--no-follow-tables"]).succeeds();
    assert_eq!(image.all(), cached, "nothing of it is left");
    image.attach(&[POSTGRES, "--follow-tables"]).succeeds();
    image.attach(&[POSTGRES, "--no-cache"]).succeeds();
    assert!(!wants() && !image.at(FOLLOWER).exists(), "there is nothing to keep tables in");
    image.attach(&[POSTGRES, "--cache", "1G", "--follow-tables"]).succeeds();
    let shown = image.seawall(&["detach", POSTGRES, "--dry-run"]);
    assert!(shown.succeeds().out.contains(&format!("would remove /{FOLLOWER}")), "{}", shown.out);
    image.seawall(&["detach", POSTGRES]).succeeds();
    assert_eq!(image.all(), before, "nothing is left of it");
}

#[test]
fn tables_that_cannot_be_followed_are_refused_before_anything_is_written() {
    let image = Image::new();
    let pool = ["--pool", "/mnt/a.pool", "--emulated"];
    let with = |service: &[&'static str], more: &[&'static str]| [service, &pool[..], more].concat();
    let before = image.all();
    image.attach(&with(&[POSTGRES], &["--follow-tables"])).fails(1, &["has none", "--cache SIZE"]);
    let app = ["app", "--preset", "sqlite", "--data", "/srv/app"];
    image.attach(&with(&app, &["--cache", "1G", "--follow-tables"])).fails(1, &["only PostgreSQL", "sqlite"]);
    assert_eq!(image.all(), before);
    // Each of two servers would be asked for the other's tables.
    image.file("srv/app/PG_VERSION", "15\n");
    image.file("srv/app/pg_wal/.keep", "");
    let other = ["app", "--preset", "postgres", "--data", "/srv/app"];
    image.attach(&with(&[POSTGRES], &["--cache", "1G", "--follow-tables"])).succeeds();
    let before = image.all();
    image.attach(&with(&other, &[])).fails(1, &[POSTGRES, "whose a table is", "--no-follow-tables"]);
    assert_eq!(image.all(), before);
    image.attach(&[POSTGRES, "--no-follow-tables"]).succeeds();
    image.attach(&with(&other, &[])).succeeds();
    image.attach(&[POSTGRES, "--follow-tables"]).fails(1, &["app is another PostgreSQL"]);
}

#[test]
fn a_detach_removes_the_block_cache_and_nothing_else_of_that_name() {
    let image = Image::new();
    let attach = [POSTGRES, "--pool", "/mnt/a.pool", "--emulated", "--cache", "64M"];
    image.attach(&attach).succeeds();
    image.zone("mnt/a.pool.cache");
    let shown = image.seawall(&["detach", POSTGRES, "--dry-run"]);
    assert!(shown.succeeds().out.contains("would remove /mnt/a.pool.cache"), "{}", shown.out);
    assert!(image.at("mnt/a.pool.cache").exists());
    let told = image.seawall(&["detach", POSTGRES]);
    assert!(told.succeeds().out.contains("removed /mnt/a.pool.cache"), "{}", told.out);
    assert!(!image.at("mnt/a.pool.cache").exists() && image.at("mnt/a.pool").exists());

    image.attach(&attach).succeeds();
    image.file("mnt/a.pool.cache", "a text of mine");
    image
        .seawall(&["detach", POSTGRES])
        .succeeds()
        .says(&["cannot remove the block cache", "not a block cache"]);
    assert_eq!(image.read("mnt/a.pool.cache"), "a text of mine");
}

#[test]
fn a_pool_has_one_block_cache_whoever_asks_for_it() {
    let image = Image::new();
    let pool = ["--pool", "/mnt/a.pool", "--emulated"];
    let app = [&["app", "--preset", "sqlite", "--data", "/srv/app"], &pool[..]].concat();
    image.attach(&[&[POSTGRES], &pool[..], &["--cache", "1G"]].concat()).succeeds();
    let before = image.all();
    image
        .attach(&[&app[..], &["--cache", "2G"]].concat())
        .fails(1, &[POSTGRES, "a pool has only one", "without --cache", "--no-cache"]);
    assert_eq!(image.all(), before);
    image.attach(&app).succeeds().says(&["has a block cache, from postgresql@15-main"]);
    image.attach(&[&app[..], &["--cache", "1G"]].concat()).succeeds();
    image.attach(&[POSTGRES, "--cache", "2G"]).fails(1, &["app already gives"]);
    image.zone("mnt/a.pool.cache");
    image.seawall(&["detach", POSTGRES]).succeeds();
    assert!(image.at("mnt/a.pool.cache").exists(), "the other one's daemon has it");
    image.seawall(&["detach", "app"]).succeeds();
    assert!(!image.at("mnt/a.pool.cache").exists());
}

#[test]
fn a_block_cache_that_cannot_be_is_refused_before_anything_is_written() {
    let image = Image::below("/var/tmp");
    let before = image.all();
    let refused = |arguments: &[&str], status: i32, words: &[&str]| {
        image.attach(&[&[POSTGRES], arguments].concat()).fails(status, words);
        assert_eq!(image.all(), before, "{arguments:?} wrote something");
        assert!(!image.at("srv/pg.seawall").exists(), "{arguments:?} made a pool");
    };
    refused(&["--cache", "1G"], 1, &["a log on a block device", "--cache-path"]);
    refused(&["--block", "/srv/log", "--cache", "1G"], 1, &["a log on a block device"]);
    let pool = ["--pool", "/mnt/a.pool", "--emulated"];
    let with = |more: &[&'static str]| [&pool[..], more].concat();
    refused(&with(&["--cache", "1M"]), 1, &["64M to 16T"]);
    refused(&with(&["--cache", "1G", "--cache-block", "5K"]), 2, &["4K, 8K, 16K"]);
    refused(
        &with(&["--cache", "1G", "--cache-path", "/nowhere/x"]),
        1,
        &["no directory /nowhere", "install -d -o"],
    );
    refused(&with(&["--cache", "1G", "--cache-path", "/mnt/a b"]), 1, &["letters, digits"]);
    refused(&with(&["--cache", "1G", "--no-cache"]), 2, &["cannot be used with"]);
}

/// The daemon makes the cache as the database's user, who may not write where root has put the pool.
#[test]
fn where_the_pools_directory_is_roots_the_cache_gets_one_of_its_own() {
    if !common::is_root() {
        return;
    }
    let image = Image::new();
    const USER: u32 = 4711;
    for path in ["srv/pg", "mnt/a.pool"] {
        std::os::unix::fs::chown(image.at(path), Some(USER), None).expect("given away");
    }
    let pool = [POSTGRES, "--pool", "/mnt/a.pool", "--emulated", "--cache", "1G"];
    image
        .attach(&[&pool[..], &["--cache-path", "/mnt/x"]].concat())
        .fails(1, &["4711", "may not write in /mnt", "install -d -o 4711"]);
    let shown = image.attach(&[&pool[..], &["--dry-run"]].concat());
    assert!(shown.succeeds().out.contains("would make the directory /mnt/a.pool.d"), "{}", shown.out);
    assert!(!image.at("mnt/a.pool.d").exists());
    image.attach(&pool).succeeds();
    assert!(daemon_line(&image, POSTGRES).ends_with("--cache-path /mnt/a.pool.d/cache"));
    let made = fs::metadata(image.at("mnt/a.pool.d")).expect("made");
    assert_eq!(std::os::unix::fs::MetadataExt::uid(&made), USER);
    image.zone("mnt/a.pool.d/cache");
    image.seawall(&["detach", POSTGRES]).succeeds();
    assert!(!image.at("mnt/a.pool.d").exists(), "it was ours, and is empty");
}
