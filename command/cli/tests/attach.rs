//! `seawall attach` and `detach` on the files of an image: no systemd runs, so that anybody can run this.
//! What systemd makes of the drop-ins is asked of `systemd-analyze verify`, where it is installed.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use common::keepers::Keeper;
use common::{SEAWALL, Said};
use seawall_wire::shm::Preset;
use serde_json::Value;

const POSTGRES: &str = "postgresql@15-main";
const DROP_IN: &str = "etc/systemd/system/postgresql@15-main.service.d/seawall.conf";
const ENVIRONMENT: &str = "etc/postgresql/15/main/environment";
const UNIT: &str = include_str!("../../../packaging/systemd/seawalld@.service");

/// An image with a PostgreSQL as Debian installs it, another service, and Seawall.
struct Image {
    root: tempfile::TempDir,
}

impl Image {
    fn new() -> Self {
        Self::below("/dev/shm")
    }

    fn below(directory: &str) -> Self {
        let image = Self { root: tempfile::tempdir_in(directory).expect("a directory") };
        image.file("usr/bin/seawall", "");
        image.file("usr/lib/seawall/libseawall_preload.so", "");
        image.file("usr/lib/systemd/system/seawalld@.service", &UNIT.replace("@BINDIR@", "/bin"));
        image.file(
            "lib/systemd/system/postgresql@.service",
            "[Service]\nType=forking\nExecStart=-/bin/true %i\n",
        );
        image.file("lib/systemd/system/postgresql.service", "[Service]\nExecStart=/bin/true\n");
        image.file("etc/postgresql/15/main/postgresql.conf", "data_directory = '/srv/pg' # here\n");
        image.file(ENVIRONMENT, "# for postgres\nLD_PRELOAD = '/usr/lib/libjemalloc.so'\n");
        image.file("srv/pg/PG_VERSION", "15\n");
        image.file("srv/pg/pg_wal/.keep", "");
        image.file(
            "lib/systemd/system/app.service",
            "[Service]\nExecStart=/bin/true\nRestrictAddressFamilies=AF_INET\nEnvironment=LD_PRELOAD=/j.so\n",
        );
        image.file("srv/app/app.db", "");
        image.pool("mnt/a.pool");
        image
    }

    fn at(&self, path: &str) -> PathBuf {
        self.root.path().join(path.trim_start_matches('/'))
    }

    fn file(&self, path: &str, text: &str) {
        let at = self.at(path);
        fs::create_dir_all(at.parent().expect("a parent")).expect("a directory");
        fs::write(at, text).expect("written");
    }

    fn pool(&self, path: &str) {
        let at = self.at(path);
        fs::create_dir_all(at.parent().expect("a parent")).expect("a directory");
        let made = Command::new(SEAWALL).arg("init").arg(at).args(["--size", "16M", "--emulated"]).output();
        Said::from(made.expect("seawall starts")).succeeds();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap_or_default()
    }

    fn seawall(&self, arguments: &[&str]) -> Said {
        let mut command = Command::new(SEAWALL);
        command.args(arguments).arg("--root").arg(self.root.path());
        command.output().expect("seawall starts").into()
    }

    fn attach(&self, arguments: &[&str]) -> Said {
        self.seawall(&[&["attach"], arguments].concat())
    }

    /// Does it, and asserts that this changes what a dry run said before, and nothing else.
    #[track_caller]
    fn as_the_dry_run_says(&self, words: &[&str]) {
        let before = self.paths();
        let says = self.seawall(&[words, &["--dry-run", "--json"]].concat()).json();
        assert_eq!(self.paths(), before, "a dry run changes nothing");
        self.seawall(words).succeeds();
        let after = self.paths();
        let paths = |key: &str| {
            let said = says[key].as_array().expect("a list").iter();
            said.map(|path| self.at(path.as_str().expect("a path"))).collect::<Vec<_>>()
        };
        let mut expected = before.clone();
        expected.retain(|path, _| !paths("removed").contains(path));
        for file in says["files"].as_array().expect("files") {
            let text = |key: &str| file[key].as_str().expect("text").to_owned();
            expected.insert(self.at(&text("path")), Some(text("text")));
        }
        let made = paths("made");
        expected
            .extend(made.iter().filter(|path| path.exists()).map(|path| (path.clone(), after[path].clone())));
        assert_eq!(after, expected, "{words:?}: the right one is what was said");
        // Nothing was said in vain.
        let wrong =
            [made.iter().find(|path| before.contains_key(*path)), made.iter().find(|path| !path.exists())];
        assert_eq!(wrong, [None, None], "{words:?}");
        assert!(paths("removed").iter().all(|path| before.contains_key(path)), "{words:?}: {says}");
        let text = self.seawall(&[words, &["--dry-run"]].concat()).succeeds().out.clone();
        assert!(!text.contains("would write") && !text.contains("would remove"), "{words:?}, again:\n{text}");
    }

    /// Every file with its text, if it has one, and every directory that is in none of systemd's.
    fn paths(&self) -> BTreeMap<PathBuf, Option<String>> {
        let mut all = BTreeMap::new();
        let mut dirs = vec![self.root.path().to_owned()];
        while let Some(dir) = dirs.pop() {
            let entries = fs::read_dir(dir).expect("a directory").flatten().map(|e| e.path());
            for entry in entries.filter(|entry| !entry.is_symlink()) {
                if entry.is_dir() {
                    dirs.push(entry.clone());
                }
                if !entry.is_dir() || !entry.starts_with(self.at("etc/systemd")) {
                    all.insert(entry.clone(), fs::read_to_string(&entry).ok());
                }
            }
        }
        all
    }

    /// Every file but pools, and its text.
    fn all(&self) -> Vec<(PathBuf, String)> {
        let mut all = Vec::new();
        let mut dirs = vec![self.root.path().to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).expect("a directory").flatten().map(|e| e.path()) {
                match fs::read_to_string(&entry) {
                    _ if entry.is_dir() => dirs.push(entry),
                    Ok(text) => all.push((entry, text)),
                    Err(_) => {}
                }
            }
        }
        all.sort();
        all
    }
}

/// The drop-in as it is meant to be, with the socket's name and user replaced.
const GOLDEN: &str = "\
# Written by `seawall attach`, removed by `seawall detach postgresql@15-main`. Do not edit it: attach again.
[Unit]
Wants=seawalld@mnt-a.pool.service
After=seawalld@mnt-a.pool.service

[Service]
# Its environment comes from /etc/postgresql/15/main/environment.
# Recovered and served, or not started.
ExecStartPre=+/usr/bin/seawall service start --pool /mnt/a.pool --preset postgres --policy tail --data /srv/pg
ExecStartPost=-+/usr/bin/seawall service check --pool /mnt/a.pool
ExecStopPost=-+/usr/bin/seawall service stop --pool /mnt/a.pool

[X-Seawall]
Pool=/mnt/a.pool
Preset=postgres
Policy=tail
Data=/srv/pg
Program=/usr/bin/seawall
Preload=/usr/lib/seawall/libseawall_preload.so:/usr/lib/libjemalloc.so
Socket=SOCKET
EnvironmentFile=/etc/postgresql/15/main/environment
";

fn socket(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("Socket=")).expect("a socket")
}

#[test]
fn a_cluster_is_attached_once_and_detached_without_a_trace() {
    let image = Image::new();
    let before = image.all();
    let attach = [POSTGRES, "--pool", "/mnt/a.pool", "--emulated"];
    image.attach(&[&attach[..], &["--dry-run"]].concat()).succeeds();
    assert_eq!(image.all(), before, "a dry run writes nothing");

    image.attach(&attach).succeeds();
    let text = image.read(DROP_IN);
    let socket = socket(&text).to_owned();
    assert_eq!(text, GOLDEN.replace("SOCKET", &socket));
    let uid = rustix::process::geteuid().as_raw();
    assert!(socket.starts_with(&format!("/run/seawalld/{uid}/a.pool-")), "{socket}");
    let environment = image.read(ENVIRONMENT);
    assert!(environment.starts_with("# for postgres\nLD_PRELOAD = '/usr/lib/libjemalloc.so'\n"));
    let preload = "LD_PRELOAD = '/usr/lib/seawall/libseawall_preload.so:/usr/lib/libjemalloc.so'\n";
    assert!(environment.contains(preload), "{environment}");
    assert!(environment.contains(&format!("SEAWALL_SOCKET = '{socket}'\n")), "{environment}");
    let of_daemon = "etc/systemd/system/seawalld@mnt-a.pool.service.d/postgresql@15-main.conf";
    assert!(image.read(of_daemon).contains("RequiresMountsFor=/srv/pg\n"));

    let attached = image.all();
    let again = image.attach(&[POSTGRES, "--json"]).json();
    assert_eq!(again["changed"], Value::Bool(false));
    assert_eq!(again["daemon"], "seawalld@mnt-a.pool.service");
    assert_eq!(image.all(), attached, "attaching again changes nothing");

    let gone = image.seawall(&["detach", POSTGRES, "--json"]).json();
    assert_eq!(gone["detached"], Value::Bool(true));
    assert_eq!(image.all(), before, "nothing is left of it");
    let nothing = image.seawall(&["detach", POSTGRES, "--json"]).json();
    assert_eq!(nothing["detached"], Value::Bool(false));
}

/// Only the daemon of such a log needs other hosts; its own unit keeps it from any network.
#[test]
fn a_log_that_keepers_keep_waits_for_the_network_and_its_daemon_may_use_it() {
    assert!(
        UNIT.contains("PrivateNetwork=yes\nRestrictAddressFamilies=AF_UNIX\n"),
        "else there is nothing to undo"
    );
    let keeper = Keeper::start(&[]);
    let image = Image::new();
    let before = image.all();
    let attach = [POSTGRES, "--pool", "/mnt/kept.log", "--size", "16M", "--keeper", &keeper.address];
    let shown = image.attach(&[&attach[..], &["--dry-run", "--json"]].concat()).json();
    assert_eq!((&shown["has_keepers"], image.all()), (&Value::Bool(true), before), "also before it is made");
    image.attach(&attach).succeeds();
    let network = "Wants=network-online.target\nAfter=network-online.target\n";
    let of_daemon =
        || image.read("etc/systemd/system/seawalld@mnt-kept.log.service.d/postgresql@15-main.conf");
    let unit_part = |text: &str| text.split_once("[Service]").expect("a service").0.to_owned();
    assert!(unit_part(&image.read(DROP_IN)).contains(network), "{}", image.read(DROP_IN));
    assert!(unit_part(&of_daemon()).contains(network), "{}", of_daemon());
    let reaches = "PrivateNetwork=no\nRestrictAddressFamilies=AF_INET AF_INET6\n";
    assert!(of_daemon().ends_with(reaches), "{}", of_daemon());
    // It stays so, also with a block cache.
    assert_eq!(image.attach(&[POSTGRES, "--json"]).json()["changed"], Value::Bool(false));
    image.attach(&[POSTGRES, "--cache", "1G"]).succeeds();
    assert!(of_daemon().ends_with(reaches) && of_daemon().contains("--cache 1073741824"), "{}", of_daemon());
    image.seawall(&["detach", POSTGRES]).succeeds();
    assert_eq!(of_daemon(), "");
}

#[test]
fn the_policy_stays_until_another_one_is_asked_for() {
    let image = Image::new();
    let attach = [POSTGRES, "--pool", "/mnt/a.pool", "--emulated"];
    let policy =
        || image.read(DROP_IN).lines().find_map(|line| Some(line.strip_prefix("Policy=")?.to_owned()));
    image.attach(&[&attach[..], &["--policy", "atomic"]].concat()).succeeds();
    assert_eq!(policy().as_deref(), Some("atomic"));
    assert!(image.read(DROP_IN).contains(" --policy atomic --data /srv/pg\n"));
    let again = image.attach(&[POSTGRES, "--json"]).json();
    assert_eq!((&again["changed"], &again["policy"]), (&Value::Bool(false), &Value::from("atomic")));
    image.attach(&[POSTGRES, "--policy", "tail"]).succeeds().says(&["full_page_writes = on"]);
    assert_eq!(policy().as_deref(), Some("tail"));
    image.attach(&[&attach[..], &["--policy", "atomic"]].concat()).succeeds();
    image.seawall(&["detach", POSTGRES]).succeeds().says(&["full_page_writes = on"]);
}

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

/// A file that begins as a block cache does.
fn zone(image: &Image, path: &str) {
    let layout = seawall_cache::shared::Layout::for_zone(64 << 20, 8192).expect("a layout");
    let header = seawall_cache::shared::Header::new(layout, [7; 16], false);
    fs::write(image.at(path), zerocopy::IntoBytes::as_bytes(&header)).expect("written");
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

#[test]
fn a_dry_run_says_what_is_done_whatever_is_asked_for() {
    let image = Image::new();
    let before = image.all();
    let attach = |more: &[&str]| image.as_the_dry_run_says(&[&["attach", POSTGRES], more].concat());
    attach(&["--pool", "/mnt/a.pool", "--emulated"]);
    attach(&["--cache", "1G"]);
    attach(&["--follow-tables"]);
    attach(&["--policy", "atomic"]);
    attach(&["--cache", "2G", "--cache-block", "4K", "--cache-max", "4G", "--cache-path", "/mnt/other"]);
    attach(&[]);
    let shown = image.attach(&[POSTGRES, "--no-follow-tables", "--dry-run"]);
    assert!(shown.succeeds().out.contains(&format!("would remove /{FOLLOWER}\n")), "{}", shown.out);
    attach(&["--no-follow-tables"]);
    attach(&["--follow-tables"]);
    let shown = image.attach(&[POSTGRES, "--no-cache", "--dry-run"]);
    shown.succeeds().says(&["/mnt/other is not used"]);
    assert!(shown.out.contains(&format!("would remove /{FOLLOWER}\n")), "{}", shown.out);
    attach(&["--no-cache"]);
    attach(&["--cache", "1G", "--follow-tables"]);
    zone(&image, "mnt/a.pool.cache");
    image.as_the_dry_run_says(&["detach", POSTGRES]);
    assert_eq!(image.all(), before);
    // What is made: a pool, here by its name behind a link, and a directory of the user's.
    std::os::unix::fs::symlink(image.at("mnt"), image.at("srv/link")).expect("a link");
    let new = ["--pool", "/srv/link/b.pool", "--size", "16M", "--emulated"];
    let shown = image.attach(&[&[POSTGRES], &new[..], &["--dry-run"]].concat());
    assert!(shown.succeeds().out.contains("would make the pool /mnt/b.pool for "), "{}", shown.out);
    attach(&new);
    image.as_the_dry_run_says(&["detach", POSTGRES]);
    if common::is_root() {
        for path in ["srv/pg", "mnt/a.pool"] {
            std::os::unix::fs::chown(image.at(path), Some(4711), None).expect("given away");
        }
        attach(&["--pool", "/mnt/a.pool", "--emulated", "--cache", "1G"]);
        zone(&image, "mnt/a.pool.d/cache");
        image.seawall(&["detach", POSTGRES]).succeeds();
    }
}

/// Whatever is wrong is found before the pool is made, too.
#[test]
fn who_is_refused_gets_no_pool() {
    let image = Image::new();
    let new = [POSTGRES, "--pool", "/mnt/b.pool", "--size", "16M", "--emulated"];
    image.attach(&[&new[..], &["--follow-tables"]].concat()).fails(1, &["has none", "--cache SIZE"]);
    image.attach(&[POSTGRES, "--pool", "/nowhere/b.pool", "--emulated"]).fails(1, &["/nowhere"]);
    let mirrored = ["--block", "/srv/log", "--mirror", "/srv/log2"];
    for more in [&[][..], &["--dry-run"]] {
        image
            .attach(&[&[POSTGRES], &mirrored[..], more].concat())
            .fails(1, &["seawall init --block /srv/log --mirror /srv/log2"]);
    }
    image.attach(&[POSTGRES, "--pool", "/mnt/a.pool", "--emulated"]).succeeds();
    image.attach(&new).fails(1, &["is attached to the pool /mnt/a.pool"]);
    fs::remove_file(image.at("usr/lib/systemd/system/seawalld@.service")).expect("removed");
    image.seawall(&["detach", POSTGRES]).succeeds();
    image.attach(&new).fails(1, &["seawalld@.service"]);
    assert!(!image.at("mnt/b.pool").exists());
}

const FOLLOWER: &str = "etc/systemd/system/seawall-follow-postgresql@15-main.service";

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
    zone(&image, "mnt/a.pool.cache");
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
    zone(&image, "mnt/a.pool.cache");
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
    zone(&image, "mnt/a.pool.d/cache");
    image.seawall(&["detach", POSTGRES]).succeeds();
    assert!(!image.at("mnt/a.pool.d").exists(), "it was ours, and is empty");
}

#[test]
fn another_service_gets_its_environment_from_the_unit() {
    let image = Image::new();
    image
        .attach(&["app", "--pool", "/mnt/a.pool", "--emulated", "--preset", "sqlite", "--data", "/srv/app"])
        .succeeds();
    let text = image.read("etc/systemd/system/app.service.d/seawall.conf");
    let preload = "\nEnvironment=LD_PRELOAD=/usr/lib/seawall/libseawall_preload.so:/j.so\n";
    for part in
        [preload, "\nEnvironment=SEAWALL_SOCKET=/run/seawalld/", "\nRestrictAddressFamilies=AF_UNIX\n"]
    {
        assert!(text.contains(part), "no {part:?} in:\n{text}");
    }
    // It would be refused if the drop-in's own LD_PRELOAD were taken for the unit's.
    let again = image.attach(&["app", "--preset", "sqlite", "--data", "/srv/app", "--json"]).json();
    assert_eq!(again["changed"], Value::Bool(false));
    image.seawall(&["detach", "app"]).succeeds();
}

#[test]
fn what_is_wrong_is_said_before_anything_is_written() {
    let image = Image::new();
    image.pool("mnt/b.pool");
    let before = image.all();
    let pool = ["--pool", "/mnt/a.pool", "--emulated"];
    let refused = |arguments: &[&str], words: &[&str]| {
        image.attach(arguments).fails(1, words);
        assert_eq!(image.all(), before, "{arguments:?} wrote something");
    };
    let with = |service: &'static str| [&[service], &pool[..]].concat();
    refused(&with("nonsense"), &["no service nonsense", "systemctl list-units"]);
    refused(&with("../x"), &["not the name of a service"]);
    refused(&with("postgresql"), &["each one by its own name", POSTGRES]);
    refused(&with("postgresql@15-other"), &["no cluster 15/other", POSTGRES]);
    refused(&with("app"), &["which database app is", "--preset"]);
    let atomic = ["--preset", "sqlite", "--data", "/srv/app", "--policy", "atomic"];
    refused(&[&with("app")[..], &atomic].concat(), &["atomic", "sqlite"]);
    refused(&[&with("app")[..], &["--preset", "sqlite"]].concat(), &["cannot tell where the data", "--data"]);
    refused(&[&with("app")[..], &["--preset", "postgres", "--data", "/srv/app"]].concat(), &["not a PGDATA"]);
    refused(&[POSTGRES, "--pool", "/mnt/a.pool"], &["in RAM", "--emulated"]);
    refused(&[POSTGRES, "--pool", "/mnt/none.pool"], &["no pool /mnt/none.pool", "--size"]);
    refused(&[POSTGRES], &["no pool is named", "beside the data", "is RAM", "--block", "--pool"]);
    refused(&[POSTGRES, "--pool", "/srv/pg/PG_VERSION", "--emulated"], &["PG_VERSION"]);
    fs::remove_file(image.at("usr/lib/systemd/system/seawalld@.service")).expect("removed");
    let error = image.attach(&with(POSTGRES));
    error.fails(1, &["seawalld@.service", "install"]);
}

#[test]
fn without_persistent_memory_the_log_is_made_beside_the_data() {
    let image = Image::below("/var/tmp");
    let log = image.at("srv/pg.seawall");
    image.attach(&[POSTGRES, "--dry-run"]).succeeds();
    assert!(!log.exists(), "showing makes nothing");
    image.attach(&[POSTGRES, "--size", "16M"]).succeeds().says(&["made /srv/pg.seawall"]);
    assert!(image.read(DROP_IN).contains("\nPool=/srv/pg.seawall\n"), "{}", image.read(DROP_IN));
    let again = image.attach(&[POSTGRES]);
    assert!(again.succeeds().out.contains("nothing was changed"), "{}", again.out);
    image.seawall(&["detach", POSTGRES]).succeeds();
    // It may hold what the files lack.
    assert!(log.exists(), "a detach leaves the log");
    image.attach(&[POSTGRES]).succeeds();
    image.file("srv/app.seawall", "something else");
    let others = ["app", "--preset", "sqlite", "--data", "/srv/app"];
    image.attach(&others).fails(1, &["/srv/app.seawall"]);
}

#[test]
fn another_pool_needs_a_detach_first() {
    let image = Image::new();
    image.pool("mnt/b.pool");
    image.attach(&[POSTGRES, "--pool", "/mnt/a.pool", "--emulated"]).succeeds();
    let before = image.all();
    image
        .attach(&[POSTGRES, "--pool", "/mnt/b.pool", "--emulated"])
        .fails(1, &["is attached to the pool /mnt/a.pool", "seawall detach"]);
    assert_eq!(image.all(), before);
}

/// Commits may be in the log only: then the drop-in is what recovers them.
#[test]
fn a_guard_that_is_up_keeps_a_service_attached() {
    let image = Image::new();
    image.attach(&[POSTGRES, "--pool", "/mnt/a.pool", "--emulated"]).succeeds();
    let claim = seawall_daemon::guard::Claim { uuid: 7, pool: "/mnt/a.pool".into() };
    let label = image.at("srv/pg/backup_label");
    seawall_daemon::guard::raise(Preset::Postgres, &label, &claim).expect("raised");
    let before = image.all();
    image.seawall(&["detach", POSTGRES]).fails(1, &["stays attached", "guard", "seawall recover"]);
    assert_eq!(image.all(), before);
    seawall_daemon::guard::lower(Preset::Postgres, &label, Some(&claim)).expect("lowered");
    image.seawall(&["detach", POSTGRES]).succeeds();
}

#[test]
fn systemd_understands_the_units() {
    if !common::has("systemd-analyze") {
        return;
    }
    let image = Image::new();
    image
        .attach(&[POSTGRES, "--pool", "/mnt/a.pool", "--emulated", "--cache", "1G", "--follow-tables"])
        .succeeds();
    for (name, text) in [("bin/true", ""), ("bin/seawall", ""), ("usr/bin/seawall", "")] {
        image.file(name, text);
        let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(image.at(name), executable).expect("made executable");
    }
    for unit in ["sysinit.target", "basic.target", "shutdown.target", "-.mount"] {
        image.file(&format!("lib/systemd/system/{unit}"), "[Unit]\nDescription=x\n");
    }
    let root = format!("--root={}", image.root.path().display());
    let follower = "seawall-follow-postgresql@15-main.service";
    let units = ["postgresql@15-main.service", "seawalld@mnt-a.pool.service", follower];
    let said = Command::new("systemd-analyze").args(["verify", "--man=no", &root]).args(units).output();
    let said = Said::from(said.expect("systemd-analyze starts"));
    for wrong in ["seawall", "Unknown", "ignoring"] {
        let lines = said.err.lines().filter(|line| !line.contains("mount:") && line.contains(wrong));
        assert_eq!(lines.collect::<Vec<_>>(), [""; 0], "{}", said.err);
    }
}

#[test]
fn a_service_that_is_to_be_back_soon_has_settings_and_a_unit_until_it_is_detached() {
    let image = Image::new();
    let words =
        ["attach", POSTGRES, "--pool", "/mnt/a.pool", "--emulated", "--policy", "atomic", "--recovery", "1s"];
    image.seawall(&words).fails(1, &["include_dir", "seawall tune postgres"]);
    image.file(
        "etc/postgresql/15/main/postgresql.conf",
        "data_directory = '/srv/pg'\ninclude_dir = 'conf.d'\n",
    );
    image.seawall(&words).succeeds();
    let settings = "etc/postgresql/15/main/conf.d/zz-seawall-recovery.conf";
    let pacer = "etc/systemd/system/seawall-pace-postgresql@15-main.service";
    assert!(image.read(settings).contains("max_wal_size = '32MB'"));
    assert!(image.read(pacer).contains("service pace --data /srv/pg --recovery 1s"));
    let drop_in = image.read(DROP_IN);
    for wanted in
        ["Wants=seawall-pace-", "--data /srv/pg --recovery 1s", "service stop --pool /mnt/a.pool --back-soon"]
    {
        assert!(drop_in.contains(wanted), "no {wanted} in\n{drop_in}");
    }
    image.seawall(&words[..5]).succeeds();
    assert!(image.at(settings).exists(), "what was asked once holds");
    image.seawall(&["attach", POSTGRES, "--emulated", "--no-recovery"]).succeeds();
    assert!(!image.at(settings).exists() && !image.at(pacer).exists());
    image.seawall(&words).succeeds();
    image.seawall(&["detach", POSTGRES]).succeeds();
    assert!(!image.at(settings).exists() && !image.at(pacer).exists());
}
