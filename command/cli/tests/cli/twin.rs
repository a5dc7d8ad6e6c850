//! `seawall twin` with a real Redis: whoever is killed, nothing that was acknowledged is lost, and the twin has what an
//! ordinary restart would have loaded.

mod load;
mod pair;

use crate::common;
use std::process::Command;
use std::time::Duration;

use crate::common::redis::{Redis, Reply};
use crate::common::wait_for;
use load::Load;
use pair::{Pair, is_installed};

fn rounds(default: usize) -> usize {
    std::env::var("SEAWALL_TWIN_ROUNDS").ok().map_or(default, |n| n.parse().expect("a number"))
}

// Holds: K10, K11
#[test]
fn whoever_is_killed_no_acknowledged_write_is_lost_and_the_twin_has_what_a_restart_would_load() {
    if !is_installed() {
        return;
    }
    let mut random = fastrand::Rng::with_seed(34);
    let mut pair = Pair::start(&[], &[]);
    let mut load = Load::new(&mut pair.redis());
    let mut takeovers = 0;
    for round in 0..rounds(20) {
        pair.await_ready();
        load.begin(&pair.socket());
        std::thread::sleep(Duration::from_millis(random.u64(20..300)));
        match random.u8(0..10) {
            0 => {
                pair.kill_twin();
                assert!(load.goes_on(), "round {round}: a dead twin is no business of the primary's clients");
                pair.kill_primary();
            }
            1 => {
                pair.kill_supervisor();
                assert!(load.goes_on(), "round {round}: nor is a dead supervisor");
                pair.supervise();
                assert!(load.goes_on(), "round {round}: the server that was found is the same one");
                pair.await_ready();
                pair.kill_primary();
                takeovers += 1;
            }
            2 => pair.kill_everything(),
            _ => {
                let former = pair.kill_primary_and_keep_its_file(|_| ());
                load.end();
                let now = pair.contents();
                let differ = |key: &&String| former.get(*key) != now.get(*key);
                let keys: Vec<_> = former.keys().chain(now.keys()).filter(differ).take(9).collect();
                assert!(keys.is_empty(), "round {round}: not what a restart would have loaded: {keys:?}");
                takeovers += 1;
            }
        }
        load.end();
        let mut redis = pair.redis();
        load.check(&mut redis, &format!("round {round}"));
    }
    // Two rewrites while the supervisor is stopped are more than it can follow.
    let missed =
        pair.said().matches("does not take over: the end of the append-only file: increment").count();
    assert_eq!(pair.status()["takeovers"], takeovers - missed, "{}", pair.said());
    assert!(pair.stop(), "{}", pair.said());
}

#[test]
fn a_twin_that_is_far_behind_is_waited_for() {
    if !is_installed() {
        return;
    }
    let mut pair = Pair::start(&[], &[]);
    pair.await_ready();
    let former = pair.kill_primary_and_keep_its_file(load::write_what_takes_long);
    assert!(
        pair.contents() == former && former.contains_key("0 last"),
        "{:?}",
        pair.contents().get("0 last")
    );
    assert_eq!(pair.status()["takeovers"], 1, "{}", pair.said());
    assert!(pair.stop(), "{}", pair.said());
}

// Holds: K10
#[test]
fn with_seawalls_log_below_both_nothing_is_lost_either() {
    if !is_installed() {
        return;
    }
    let mut pair = Pair::start(&["run", "--emulated", "--quiet", "--"], &[]);
    let mut load = Load::new(&mut pair.redis());
    for round in 0..rounds(20).div_ceil(4) {
        pair.await_ready();
        load.begin(&pair.socket());
        std::thread::sleep(Duration::from_millis(150));
        pair.kill_primary();
        load.end();
        load.check(&mut pair.redis(), &format!("round {round}"));
        assert_eq!(pair.status()["takeovers"], round + 1, "{}", pair.said());
    }
    assert!(pair.stop(), "{}", pair.said());
}

#[test]
fn a_start_on_the_directory_that_was_superseded_says_what_to_do_and_the_state_knows_the_current_one() {
    if !is_installed() {
        return;
    }
    let mut pair = Pair::start(&[], &[]);
    pair.await_ready();
    pair.redis().ask("SET k 1").expect("set");
    pair.kill_primary();
    let mut redis = pair.redis();
    assert_eq!(redis.ask("INCR k").expect("an answer").number(), 2);
    // As a primary it has the primary's settings, and nobody else's user.
    let setting = |redis: &mut Redis, name| match redis.call(&["CONFIG", "GET", name]).expect("an answer") {
        Reply::List(both) => both[1].clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(setting(&mut redis, "appendfsync"), Reply::Text("always".into()));
    assert_eq!(setting(&mut redis, "masterauth"), Reply::Text(String::new()));
    let Reply::List(users) = redis.ask("ACL USERS").expect("an answer") else { panic!("no list") };
    assert_eq!(users, [Reply::Text("default".into())]);
    let refused = pair.start_on_the_former_directory();
    assert!(refused.contains("SEAWALL-superseded:start-it-by-seawall-twin"), "{refused}");
    assert!(pair.stop(), "{}", pair.said());
    pair.supervise();
    assert_eq!(pair.redis().ask("GET k").expect("an answer").number(), 2);
    // SHUTDOWN is no crash.
    pair.await_ready();
    pair.redis().call(&["SHUTDOWN"]);
    assert!(pair.ends(), "{}", pair.said());
}

#[test]
fn passwords_users_transactions_with_notes_and_a_port_are_taken_over() {
    if !is_installed() {
        return;
    }
    let port = free_port();
    let more = ["--requirepass", "secret", "--aof-timestamp-enabled", "yes", "--port", &port];
    let mut pair = Pair::start(&[], &more);
    pair.await_ready();
    let login = |redis: &mut Redis| {
        assert_eq!(redis.ask("AUTH secret").expect("an answer"), Reply::Text("OK".into()));
    };
    let mut redis = Redis::open(&pair.socket()).expect("connected");
    login(&mut redis);
    redis.together(&[&["MULTI"], &["SET", "k", "1"], &["INCR", "k"], &["EXEC"]]).expect("done");
    pair.kill_primary();
    wait_for("the port", || std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok());
    let mut redis = Redis::open(&pair.socket()).expect("connected");
    login(&mut redis);
    assert_eq!(redis.ask("GET k").expect("an answer").number(), 2);
    assert!(pair.stop(), "{}", pair.said());
}

// Holds: K10
#[test]
fn a_server_that_runs_already_gets_a_twin_and_a_command_hears_of_each_takeover() {
    if !is_installed() {
        return;
    }
    let note = tempfile::NamedTempFile::new().expect("a file");
    let say = r#"echo "$SEAWALL_TWIN_PID $SEAWALL_TWIN_PORT $SEAWALL_TWIN_SOCKET" >> "#;
    let (mut pair, mut server) = Pair::follow(&format!("{say}{}", note.path().display()));
    pair.await_ready();
    assert_eq!(pair.process("primary") as u32, server.id());
    let mut load = Load::new(&mut pair.redis());
    let mut said = Vec::new();
    for round in 0..2 {
        pair.await_ready();
        load.begin(&pair.socket());
        assert!(load.goes_on());
        pair.kill_primary();
        load.end();
        load.check(&mut pair.redis(), &format!("round {round}"));
        said.push(format!("{} 0 {}", pair.process("primary"), pair.socket().display()));
        wait_for("the command", || {
            std::fs::read_to_string(note.path()).is_ok_and(|text| text.lines().eq(&said))
        });
    }
    server.wait().expect("it was killed");
    assert!(pair.stop(), "{}", pair.said());
}

// Holds: K10
#[test]
fn a_twin_whose_disk_is_full_does_not_take_over_and_the_next_one_does() {
    if !is_installed() || !common::is_root() {
        return;
    }
    common::mounts::have_a_namespace();
    let mut pair = Pair::with_small_state("32m");
    pair.await_ready();
    pair.fill_state();
    let mut redis = pair.redis();
    let value = "x".repeat(1 << 20);
    for n in 0..8 {
        redis.call(&["SET", &format!("k{n}"), &value]).expect("the server's disk is not full");
    }
    wait_for("a twin that cannot write", || pair.status()["ready"] == false);
    pair.kill_primary();
    assert_eq!(pair.status()["takeovers"], 0, "{}", pair.said());
    assert_eq!(pair.redis().ask("DBSIZE").expect("an answer").number(), 8);
    pair.empty_state();
    pair.await_ready();
    pair.redis().ask("SET last 1").expect("set");
    pair.kill_primary();
    assert_eq!(pair.status()["takeovers"], 1, "{}", pair.said());
    assert_eq!(pair.redis().ask("DBSIZE").expect("an answer").number(), 9);
    assert!(pair.stop(), "{}", pair.said());
    pair.unmount_state();
}

#[test]
fn a_port_with_tls_is_taken_over() {
    if !is_installed() || !has_tls() {
        return;
    }
    let dir = tempfile::tempdir().expect("a directory");
    let path = |name: &str| dir.path().join(name).to_str().expect("text").to_owned();
    let (authority, leaf) = (path("ca"), path("ca/keeper-127.0.0.1"));
    for words in [vec!["ca", &authority], vec!["keeper", &authority, "127.0.0.1"]] {
        let made = Command::new(common::SEAWALL).args(["keeper", "cert"]).args(words).output();
        assert!(made.expect("it runs").status.success());
    }
    let [certificate, key, trusted] = ["tls.crt", "tls.key", "ca.crt"].map(|name| format!("{leaf}/{name}"));
    let port = free_port();
    let port = port.as_str();
    let more = ["--tls-port", port, "--tls-cert-file", &certificate, "--tls-key-file", &key];
    let more = [
        &more[..],
        &["--tls-ca-cert-file", &trusted, "--tls-auth-clients", "no", "--tls-replication", "yes"],
    ];
    let mut pair = Pair::start(&[], &more.concat());
    pair.await_ready();
    let ask = |words: &[&str]| {
        let by = ["-h", "127.0.0.1", "-p", port, "--tls", "--cacert", &trusted];
        let asked = Command::new("redis-cli").args(by).args(words).output().expect("redis-cli");
        String::from_utf8_lossy(&asked.stdout).trim().to_owned()
    };
    assert_eq!(ask(&["SET", "k", "1"]), "OK");
    pair.kill_primary();
    wait_for("the port", || ask(&["PING"]) == "PONG");
    assert_eq!(ask(&["GET", "k"]), "1");
    assert_eq!(ask(&["CONFIG", "GET", "tls-replication"]), "tls-replication\nyes");
    assert!(pair.stop(), "{}", pair.said());
}

fn has_tls() -> bool {
    let help = Command::new("redis-cli").arg("--help").output();
    let has = help
        .is_ok_and(|help| String::from_utf8_lossy(&[help.stdout, help.stderr].concat()).contains("--cacert"));
    if !has {
        eprintln!("skipped: redis-cli was built without TLS");
    }
    has
}

fn free_port() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").and_then(|one| one.local_addr());
    listener.expect("a port").port().to_string()
}

#[test]
fn what_cannot_have_a_twin_is_refused_before_anything_is_started() {
    let dir = tempfile::tempdir().expect("a directory");
    let state = dir.path().join("state");
    let state = state.to_str().expect("text");
    let ran = Command::new(common::SEAWALL)
        .args(["twin", "--state", state, "--", "redis-server", "--port", "0"])
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.code() == Some(1) && said.contains("appendonly yes"), "{said}");
    assert!(!dir.path().join("state").exists());
}
