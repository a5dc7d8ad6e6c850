//! A log is taken over on another host. The hosts are namespaces of their own that share the data's disk.

mod common;

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::process::Stdio;

use common::hosts::{Host, Network};
use common::keepers::Keeper;
use common::{Place, Writer, wait_for};

/// Two hosts with a database's data, and three keepers.
struct Scene {
    place: Place,
    a: Host,
    b: Host,
    keepers: Vec<Keeper>,
    /// The hosts that keepers are on.
    on: Vec<Host>,
    network: Network,
}

impl Scene {
    fn new(acks: usize) -> Option<Self> {
        let mut network = Network::new()?;
        let (a, b) = (network.host("db-a"), network.host("db-b"));
        let on: Vec<Host> = (1..=3).map(|i| network.host(&format!("keeper-{i}"))).collect();
        let keepers: Vec<Keeper> = on.iter().map(|host| Keeper::on(host, &[])).collect();
        let place = Place::bare();
        let scene = Self { place, a, b, keepers, on, network };
        let (pool, acks) = (scene.pool("a"), acks.to_string());
        let mut init = vec!["init", &pool, "--size", "16M", "--acks", &acks];
        scene.keepers.iter().for_each(|keeper| init.extend(["--keeper", &keeper.address]));
        scene.a.seawall(&init).succeeds();
        Some(scene)
    }

    /// A pool's file on the disk that all share, under the name of a host.
    fn pool(&self, host: &str) -> String {
        self.place.file(&format!("{host}.log")).display().to_string()
    }

    fn data(&self) -> String {
        self.place.data.path().display().to_string()
    }

    /// The database, on a host.
    fn writer(&self, host: &Host, pool: &str) -> Writer {
        let (pool, data) = (self.pool(pool), self.data());
        let run = ["run", "--pool", &pool, "--preset", "sqlite", "--data", ".", "--"];
        let mut command = host.seawall_command(&data, &[&run[..], &Writer::PROGRAM].concat());
        command.stdin(Stdio::piped());
        Writer::start_by(&self.place, command)
    }

    fn takeover(&self, host: &Host, name: &str, more: &[&str]) -> common::Said {
        let (pool, data) = (self.pool(name), self.data());
        let keeper = self.keepers[1].address.clone();
        host.seawall(&[&["takeover", &pool, "--keeper", &keeper, "--data", &data], more].concat())
    }

    /// What the data's disk had not been given when the host was lost: all but the first block.
    fn lose_page_cache(&self, blocks: usize) {
        let file = fs::File::options().write(true).open(self.place.file("x-wal")).expect("the file");
        file.write_all_at(&vec![0; (blocks - 1) * 4096], 4096).expect("rolled back");
    }
}

/// What a former writer wrote may not count, and whoever waits for it must hear so.
fn gets_an_error(mut writer: Writer) -> common::Said {
    let stdin = writer.run.stdin.as_mut().expect("piped");
    // It may be gone already.
    let _ = std::io::Write::write_all(stdin, &[0xee; 4096]);
    writer.finish()
}

#[test]
fn another_host_takes_the_log_over_and_the_former_one_writes_nothing_more() {
    let Some(s) = Scene::new(2) else { return };
    let mut writer = s.writer(&s.a, "a");
    writer.write(20);
    // Looking changes nothing.
    let seen = s.takeover(&s.b, "b", &["--dry-run", "--json"]).json();
    assert_eq!(
        (&seen["found"]["holder"]["host"], &seen["found"]["is_here"]),
        (&"db-a".into(), &false.into())
    );
    assert!(seen["found"]["heard"].is_u64(), "{seen}");
    assert!(!fs::exists(s.pool("b")).expect("looked"));
    writer.write(1);

    s.a.unplug();
    let done = s.takeover(&s.b, "b", &["--json"]).json();
    assert_eq!((&done["done"], &done["takeover"]["recovery"]["replayed"]), (&true.into(), &true.into()));
    assert_eq!((&done["from"]["host"], &done["takeover"]["was_here"]), (&"db-a".into(), &false.into()));
    assert_eq!(Writer::found(&s.place), 21);
    assert!(!s.place.guard().exists());
    // Once more: nothing is left to do.
    let again = s.takeover(&s.b, "b", &["--json"]).json();
    assert_eq!(again["takeover"]["recovery"]["live"], 0, "{again}");

    fs::remove_file(s.place.file("x-wal")).expect("the former host's");
    let mut other = s.writer(&s.b, "b");
    other.write(5);
    let served = s.takeover(&s.b, "b", &[]);
    assert!(served.succeeds().out.contains("a daemon serves it"), "{}", served.out);

    // The former host comes back, and does not know.
    s.a.plug();
    wait_for("the former host to learn of it", || s.a.status(&s.pool("a"))["kept"]["over"].is_string());
    let status = s.a.status(&s.pool("a"));
    assert_eq!(status["kept"]["taken_by"]["host"], "db-b", "{status}");
    let log = status["log"].as_str().expect("a path").to_owned();
    gets_an_error(writer).says(&["Input/output error"]);
    wait_for("its daemon to end", || s.a.daemon(&s.pool("a")).is_none());
    let log = s.a.run(&["cat", &log]).out;
    assert!(log.contains("NO COMMITS ANY MORE: host db-b since") && log.contains("(EIO)"), "{log}");
    assert!(s.place.guard().exists(), "it is the other host's");

    // Nor does it go on when it is started again, with what it has in memory and without.
    let (pool, data) = (s.pool("a"), s.data());
    let start = ["run", "--pool", &pool, "--preset", "sqlite", "--data", &data, "--", "true"];
    for _ in 0..2 {
        let refused = s.a.seawall(&start);
        refused.fails(125, &["db-b since", "in turn", "seawall takeover", "othing was replayed"]);
        s.a.seawall(&["recover", "--replay", "--pool", &pool]).fails(1, &["db-b since", "seawall takeover"]);
        s.a.forget();
    }
    assert!(s.place.guard().exists());
    other.write(5);
    other.finish().succeeds();
    assert_eq!(Writer::found(&s.place), 10);
    // Back again.
    let back = s.takeover(&s.a, "a", &["--json"]).json();
    assert_eq!(back["from"]["host"], "db-b");
    s.a.seawall(&start).succeeds();
    s.b.seawall(&["recover", "--pool", &s.pool("b")]).fails(1, &["db-a since"]);
}

#[test]
fn a_former_host_that_slept_gets_nothing_confirmed() {
    let Some(s) = Scene::new(2) else { return };
    let mut writer = s.writer(&s.a, "a");
    writer.write(10);
    let daemon = s.a.daemon(&s.pool("a")).expect("a daemon");
    s.a.signal(daemon, "STOP");
    s.takeover(&s.b, "b", &[]).succeeds();
    assert_eq!(Writer::found(&s.place), 10);
    s.a.signal(daemon, "CONT");
    gets_an_error(writer).says(&["Input/output error"]);
    assert!(!s.place.guard().exists(), "the former host raises none");
}

#[test]
fn where_it_cannot_be_right_it_is_refused_and_nothing_is_changed() {
    let Some(mut s) = Scene::new(2) else { return };
    let mut writer = s.writer(&s.a, "a");
    writer.write(5);
    let copy = tempfile::tempdir_in("/var/tmp").expect("a directory");
    fs::copy(s.place.file("x-wal"), copy.path().join("x-wal")).expect("copied");
    let (pool, copied, keeper) =
        (s.pool("b"), copy.path().display().to_string(), s.keepers[0].address.clone());
    let of = |more: &[&str]| s.b.seawall(&[&["takeover", &pool][..], more].concat());
    of(&["--keeper", &keeper, "--data", &copied])
        .fails(5, &["another directory", "file by file", "nothing was changed"]);
    of(&[]).fails(1, &["name a keeper of the log with --keeper"]);
    of(&["--keeper", &keeper, "--log", &"0".repeat(32)]).fails(1, &["keeps no such log", "keeper status"]);
    of(&["--keeper", "169.254.77.1:7700"]).fails(3, &["169.254.77.1:7700"]);
    let other = s.place.file("other.log").display().to_string();
    s.a.seawall(&["init", &other, "--size", "16M", "--keeper", &keeper]).succeeds();
    of(&["--keeper", &keeper])
        .fails(1, &["several logs are kept there: choose with --log", "host db-a since"]);
    s.a.seawall(&["takeover", &s.place.file("x-wal").display().to_string(), "--keeper", &keeper])
        .fails(1, &["is no log that keepers keep"]);
    // One keeper of three is not enough to know what two confirmed.
    s.keepers[0].kill();
    s.keepers[2].kill();
    let refused = s.takeover(&s.b, "b", &["--json"]);
    refused.fails(3, &["1 of 3 keepers answered", "2 are needed"]);
    let json: serde_json::Value = serde_json::from_str(&refused.out).expect("JSON");
    assert_eq!((&json["code"], &json["found"]["keepers"][0]["kept"]), (&3.into(), &false.into()));
    assert!(!fs::exists(s.pool("b")).expect("looked"));
    s.keepers[0].again_on(Some(&s.on[0]));
    // The former writer never heard of any of this.
    writer.write(5);
    writer.finish().succeeds();
    assert_eq!(Writer::found(&s.place), 10);
}

#[test]
fn of_two_at_once_one_takes_it_over_and_the_other_is_told() {
    let Some(mut s) = Scene::new(2) else { return };
    let c = s.network.host("db-c");
    let mut writer = s.writer(&s.a, "a");
    writer.write(10);
    s.a.forget();
    let _ = writer.run.wait();
    for round in 0..4 {
        let (pools, data, keeper) = ([s.pool("b"), s.pool("c")], s.data(), s.keepers[1].address.clone());
        let start = |host: &Host, pool: &str| {
            let mut command = host
                .seawall_command("/", &["takeover", pool, "--keeper", &keeper, "--data", &data, "--json"]);
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts")
        };
        let both = [start(&s.b, &pools[0]), start(&c, &pools[1])];
        let said = both.map(|child| common::Said::from(child.wait_with_output().expect("it ends")));
        let won: Vec<usize> = (0..2).filter(|i| said[*i].code == Some(0)).collect();
        let tell = || format!("{round}: {} {}\n{} {}", said[0].out, said[0].err, said[1].out, said[1].err);
        match won.as_slice() {
            [winner] => {
                let other = ["host db-b since", "host db-c since"][*winner];
                assert!([4, 7].contains(&said[1 - winner].code.expect("a code")), "{}", tell());
                if said[1 - winner].code == Some(4) {
                    said[1 - winner].says(&["took this log over at the same time", other]);
                }
            }
            // One after the other.
            [_, _] => {
                let turn = |i: usize| said[i].json()["takeover"]["turn"].as_u64().expect("a turn");
                assert_ne!(turn(0), turn(1), "{}", tell());
            }
            _ => panic!("{}", tell()),
        }
        assert_eq!(Writer::found(&s.place), 10);
    }
}

#[test]
fn a_takeover_that_is_killed_anywhere_is_made_again() {
    let Some(s) = Scene::new(2) else { return };
    let mut writer = s.writer(&s.a, "a");
    writer.write(20);
    s.a.forget();
    let _ = writer.run.wait();
    for milliseconds in [0, 5, 10, 15, 20, 30, 40, 60, 80, 120, 160] {
        s.lose_page_cache(20);
        let (pool, data, keeper) = (s.pool("b"), s.data(), s.keepers[1].address.clone());
        let mut command =
            s.b.seawall_command("/", &["takeover", &pool, "--keeper", &keeper, "--data", &data]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
        s.b.end_processes();
        child.wait().expect("reaped");
        if s.b.run(&["sh", "-c", "ls /dev/shm/*.takeover"]).code == Some(0) {
            let start = ["run", "--pool", &pool, "--preset", "sqlite", "--data", &data, "--", "true"];
            s.b.seawall(&start)
                .fails(125, &["a takeover of this log was cut short", "run `seawall takeover` again"]);
        } else if !s.place.guard().exists() {
            // It had ended well, and the log is closed: what is lost now is nobody's.
            break;
        }
    }
    s.takeover(&s.b, "b", &[]).succeeds();
    if s.place.guard().exists() {
        panic!("the guard is up");
    }
}

#[test]
fn a_volume_that_is_mounted_elsewhere_is_found_there() {
    let Some(s) = Scene::new(2) else { return };
    let mut writer = s.writer(&s.a, "a");
    writer.write(12);
    s.a.forget();
    let _ = writer.run.wait();
    s.lose_page_cache(12);
    let there = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let there = there.path().display().to_string();
    s.b.with_all_rights(&["mount", "--bind", &s.data(), &there]).succeeds();
    let (pool, keeper) = (s.pool("b"), s.keepers[2].address.clone());
    let done = s.b.seawall(&["takeover", &pool, "--keeper", &keeper, "--data", &there, "--json"]).json();
    assert_eq!(done["found"]["directories"][0]["here"], there.as_str());
    let file = done["takeover"]["recovery"]["files"][0].as_str().expect("a file").to_owned();
    assert!(file.starts_with(&there), "{file}");
    assert_eq!(Writer::found(&s.place), 12);
    assert!(!s.place.guard().exists());
}
