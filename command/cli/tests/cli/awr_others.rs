//! Snapshots and samples of a real MariaDB and a real Redis.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{SEAWALL, Said, is_root};
use serde_json::Value;

/// A server on a socket of its own, ended with the test.
struct Server {
    directory: tempfile::TempDir,
    child: Child,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/")
}

#[track_caller]
fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(90);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

impl Server {
    fn mariadb(options: &[&str]) -> Self {
        let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
        if is_root() {
            let user = nix::unistd::User::from_name("mysql").ok().flatten().expect("the distribution's user");
            let ids = (Some(user.uid.as_raw()), Some(user.gid.as_raw()));
            std::os::unix::fs::chown(directory.path(), ids.0, ids.1).expect("given");
        }
        let data = format!("--datadir={}", directory.path().join("d").display());
        let user: &[&str] = if is_root() { &["--user=mysql"] } else { &[] };
        let mut install = Command::new("mariadb-install-db");
        install.args(["--no-defaults", "--auth-root-authentication-method=normal", &data]).args(user);
        assert!(quiet(&mut install).status().expect("mariadb-install-db").success());
        let socket = directory.path().join("mysqld.sock");
        let mut server = Command::new("mariadbd");
        server
            .args(["--no-defaults", "--skip-networking", "--innodb-buffer-pool-size=32M", &data])
            .args(user);
        server.arg(format!("--socket={}", socket.display())).args(options);
        let this = Self { child: quiet(&mut server).spawn().expect("mariadbd"), directory };
        wait_until("MariaDB does not start", || this.sql("SELECT 1"));
        this
    }

    fn redis() -> Self {
        let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let socket = directory.path().join("redis.sock");
        let mut server = Command::new("redis-server");
        server
            .args(["--port", "0", "--save", "", "--dir"])
            .arg(directory.path())
            .arg("--unixsocket")
            .arg(&socket);
        let this = Self { child: quiet(&mut server).spawn().expect("redis-server"), directory };
        wait_until("Redis does not start", || socket.exists());
        this
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn client(&self, sql: &str) -> Command {
        let mut client = Command::new("mariadb");
        client.args(["--no-defaults", "--user=root"]).arg("--socket").arg(self.path("mysqld.sock"));
        client.args(["--execute", sql]);
        quiet(&mut client);
        client
    }

    fn sql(&self, sql: &str) -> bool {
        self.client(sql).status().expect("mariadb").success()
    }

    /// `seawall` with a repository of the test's, and no option files of the user's.
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(SEAWALL);
        command.args(arguments).arg("--repo").arg(self.path("snapshots.db")).stdin(Stdio::null());
        command.env("HOME", self.directory.path());
        command
    }

    fn seawall(&self, arguments: &[&str]) -> Said {
        self.command(arguments).output().expect("seawall starts").into()
    }

    fn report(&self) -> Value {
        self.seawall(&["report", "first", "last", "--json"]).json()["period"].clone()
    }
}

fn address(kind: &str, socket: &Path) -> String {
    format!("{kind}:{}", socket.display())
}

fn names<'a>(rows: &'a Value, key: &str) -> Vec<&'a str> {
    rows.as_array().expect("rows").iter().filter_map(|row| row[key].as_str()).collect()
}

#[test]
fn sessions_of_mariadb_are_sampled_and_a_row_lock_is_called_one() {
    let server = Server::mariadb(&["--performance-schema=ON"]);
    assert!(server.sql(
        "CREATE DATABASE x; CREATE TABLE x.t (i int PRIMARY KEY) ENGINE=InnoDB; INSERT INTO x.t VALUES (1)"
    ));
    let mut holder = server.client("BEGIN; UPDATE x.t SET i = 2; DO SLEEP(60)").spawn().expect("a session");
    wait_until("the row is not locked", || {
        !server.sql("SET STATEMENT innodb_lock_wait_timeout = 0 FOR UPDATE x.t SET i = 1")
    });
    let mut waiter = server.client("UPDATE x.t SET i = 3").spawn().expect("a session");
    let database = address("mariadb", &server.path("mysqld.sock"));
    let snap = ["snap", "--no-seawall", "--every", "2s", "--for", "5s", "--db", &database];
    server.seawall(&snap).succeeds();
    let period = server.report();
    [&mut holder, &mut waiter].into_iter().for_each(|child| drop((child.kill(), child.wait())));
    assert_eq!(period["target"]["product"], "MariaDB");
    assert!(
        names(&period["events"], "name").contains(&"enq: TX - row lock contention"),
        "{}",
        period["events"]
    );
    assert!(period["samples"].as_u64().is_some_and(|n| n >= 3), "{}", period["samples"]);
    assert!(period["db_time_s"].as_f64().is_some(), "performance_schema times statements");
    assert!(period["db_cpu_s"].as_f64().is_some(), "it runs on this machine");
}

#[test]
fn without_performance_schema_the_report_says_how_to_turn_it_on_and_a_restart_is_survived() {
    let mut server = Server::mariadb(&["--performance-schema=OFF"]);
    let database = address("mariadb", &server.path("mysqld.sock"));
    let mut recording = server.command(&["snap", "--no-seawall", "--every", "1s", "--db", &database]);
    let recording = recording.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("starts");
    let count = |server: &Server| {
        let listed = server.seawall(&["snaps", "--json"]);
        serde_json::from_str::<Value>(&listed.out).ok().and_then(|v| v.as_array().map(Vec::len)).unwrap_or(0)
    };
    wait_until("no snapshots", || count(&server) >= 3);
    let _ = server.child.kill();
    let _ = server.child.wait();
    let before = count(&server);
    wait_until("no snapshots of the machine", || count(&server) >= before + 2);
    let pid = nix::unistd::Pid::from_raw(recording.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("asked to end");
    let said = Said::from(recording.wait_with_output().expect("ended"));
    said.fails(1, &["could not be reached at the end", "recorded before is kept"]);
    let warnings = server.report()["warnings"].to_string();
    assert!(warnings.contains("performance_schema=ON") && warnings.contains("userstat"), "{warnings}");
    assert!(
        warnings.contains("did not answer") || warnings.contains("cannot reach the database"),
        "{warnings}"
    );
}

#[test]
fn redis_is_sampled_from_outside_and_its_commands_are_counted() {
    let server = Server::redis();
    let socket = server.path("redis.sock");
    let mut load = Command::new("redis-benchmark");
    load.arg("-s").arg(&socket).args(["-t", "set", "-n", "100000000", "-c", "8", "-P", "32"]);
    let mut load = quiet(&mut load).spawn().expect("redis-benchmark");
    let database = address("redis", &socket);
    let snapped =
        server.seawall(&["snap", "--no-seawall", "--every", "2s", "--for", "6s", "--db", &database]);
    let _ = load.kill();
    let _ = load.wait();
    snapped.succeeds();
    let period = server.report();
    assert!(names(&period["events"], "name").contains(&"DB CPU"), "{}", period["events"]);
    assert!(names(&period["statements"], "text").contains(&"set"), "{}", period["statements"]);
    assert_eq!(period["db_time_is_sampled"], true);
}
