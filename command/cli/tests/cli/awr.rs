//! Snapshots and reports of a real PostgreSQL, and what happens when it is not there.

use crate::common;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{Said, is_root};

/// A directory of the user that databases run as, with a repository in it.
struct Place {
    directory: tempfile::TempDir,
    bin: PathBuf,
    server: Option<Child>,
}

/// uid and gid of the distribution's user: PostgreSQL refuses root.
fn postgres_user() -> Option<(u32, u32)> {
    let user = nix::unistd::User::from_name("postgres").ok()??;
    is_root().then_some((user.uid.as_raw(), user.gid.as_raw()))
}

fn as_user(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(program);
    if let Some((uid, gid)) = postgres_user() {
        command.uid(uid).gid(gid);
    }
    command.stdin(Stdio::null()).current_dir("/");
    command
}

impl Place {
    /// An empty directory.
    fn bare() -> Self {
        let directory = tempfile::tempdir_in("/var/tmp").expect("a directory");
        if let Some((uid, gid)) = postgres_user() {
            std::os::unix::fs::chown(directory.path(), Some(uid), Some(gid)).expect("given");
        }
        let versions = fs::read_dir("/usr/lib/postgresql").expect("PostgreSQL is installed");
        let newest = versions.flatten().map(|e| e.path()).max().expect("a version");
        Self { directory, bin: newest.join("bin"), server: None }
    }

    /// With a server.
    fn with_server() -> Self {
        let mut place = Self::bare();
        let made = as_user(place.bin.join("initdb"))
            .args(["--no-sync", "--auth=trust", "-U", "postgres", "-D"])
            .arg(place.path("data"))
            .output()
            .expect("initdb");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        place.start();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn start(&mut self) {
        let setting = |name: &str, value: &Path| format!("{name}={}", value.display());
        let mut server = as_user(self.bin.join("postgres"));
        server.arg("-D").arg(self.path("data")).args(["-c", "listen_addresses=", "-c", "fsync=off"]);
        // Nothing of it is left in /dev/shm when it is killed.
        server.args(["-c", "dynamic_shared_memory_type=mmap", "-c"]);
        server.arg(setting("unix_socket_directories", self.directory.path()));
        server.stdout(Stdio::null()).stderr(Stdio::null());
        self.server = Some(server.spawn().expect("a server"));
        let end = Instant::now() + Duration::from_secs(60);
        while self.sql("SELECT 1").is_none() {
            assert!(Instant::now() < end, "PostgreSQL does not start");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// At once, as after a crash.
    fn kill(&mut self) {
        let Some(mut server) = self.server.take() else { return };
        let pid = nix::unistd::Pid::from_raw(server.id() as i32);
        // An immediate shutdown: the postmaster ends its children, too.
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGQUIT);
        let _ = server.wait();
    }

    fn sql(&self, sql: &str) -> Option<String> {
        let mut psql = as_user(self.bin.join("psql"));
        psql.args(["-X", "-q", "-A", "-t", "-U", "postgres", "-d", "postgres", "-h"])
            .arg(self.directory.path());
        let said = psql.args(["-c", sql]).output().expect("psql");
        said.status.success().then(|| String::from_utf8_lossy(&said.stdout).trim().to_owned())
    }

    fn database(&self) -> String {
        format!("host={} user=postgres", self.directory.path().display())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(common::SEAWALL);
        command.args(arguments).arg("--repo").arg(self.path("r/snapshots.db")).stdin(Stdio::null());
        command
    }

    fn seawall(&self, arguments: &[&str]) -> Said {
        self.command(arguments).output().expect("seawall starts").into()
    }

    fn snap(&self) -> Said {
        self.seawall(&["snap", "--no-seawall", "--db", &self.database()])
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.kill();
    }
}

#[test]
fn what_happened_between_two_snapshots_is_reported() {
    let place = Place::with_server();
    place.sql("CREATE TABLE t (x int)").expect("made");
    place.snap().succeeds();
    for _ in 0..5 {
        place.sql("INSERT INTO t SELECT generate_series(1, 1000)").expect("inserted");
    }
    // Sessions report what they counted when they end, at the latest.
    let end = Instant::now() + Duration::from_secs(30);
    while place.sql("SELECT n_tup_ins >= 5000 FROM pg_stat_user_tables WHERE relname = 't'").as_deref()
        != Some("t")
    {
        assert!(Instant::now() < end, "the statistics do not arrive");
    }
    place.snap().succeeds();
    let report = place.seawall(&["report", "first", "last", "--json"]).json();
    let period = &report["period"];
    let changed = period["load"]
        .as_array()
        .expect("rows")
        .iter()
        .find(|row| row["name"] == "Rows changed")
        .expect("a row");
    assert!(changed["total"].as_f64().expect("a figure") >= 5000.0, "{changed}");
    assert_eq!(period["settings"]["fsync"], "off");
    assert!(period["elapsed_s"].as_f64().expect("a time") > 0.0);
    let text = place.seawall(&["report", "1", "2"]);
    let order = ["Findings", "Load Profile", "Instance Efficiency", "Host CPU", "Settings"];
    let at: Vec<_> = order.iter().map(|title| text.out.find(&format!("\n{title}")).expect(title)).collect();
    assert!(at.is_sorted(), "{}", text.out);
    let html = place.path("r/report.html");
    place.seawall(&["report", "1", "2", "--html", &html.display().to_string()]).succeeds();
    let page = fs::read_to_string(html).expect("the page");
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("@media print"));
    assert!(
        !page.contains("http://") && !page.contains("https://") && !page.contains("<script"),
        "no network"
    );
}

#[test]
fn a_restart_is_named_and_nothing_is_negative() {
    let mut place = Place::with_server();
    for _ in 0..20 {
        place.sql("CREATE TABLE IF NOT EXISTS t AS SELECT 1").expect("made");
    }
    place.snap().succeeds();
    place.kill();
    place.start();
    place.snap().succeeds();
    let report = place.seawall(&["report", "1", "2", "--json"]).json();
    let warnings = report["period"]["warnings"].to_string();
    assert!(warnings.contains("began again") && warnings.contains("pg_stat_database"), "{warnings}");
    for row in report["period"]["load"].as_array().expect("rows") {
        assert!(row["total"].as_f64().expect("a figure") >= 0.0, "{row}");
    }
}

#[test]
fn a_database_that_vanishes_while_it_is_recorded_leaves_what_was_recorded() {
    let mut place = Place::with_server();
    let database = place.database();
    let mut recording =
        place.command(&["snap", "--no-seawall", "--every", "1s", "--json", "--db", &database]);
    let child = recording.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starts");
    let count = |place: &Place| place.seawall(&["snaps", "--json"]).json().as_array().map_or(0, Vec::len);
    let wait_for = |place: &Place, wanted: usize| {
        let end = Instant::now() + Duration::from_secs(60);
        while !place.path("r/snapshots.db").exists() || count(place) < wanted {
            assert!(Instant::now() < end, "no {wanted} snapshots");
            std::thread::sleep(Duration::from_millis(100));
        }
    };
    wait_for(&place, 2);
    place.kill();
    let before = count(&place);
    wait_for(&place, before + 2);
    let pid = nix::unistd::Pid::from_raw(child.id() as i32);
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).expect("interrupted");
    let said = Said::from(child.wait_with_output().expect("ends"));
    said.fails(1, &["could not be reached at the end", "recorded before is kept"]);
    assert!(said.out.contains("cannot reach the database"), "{}", said.out);
    let report = place.seawall(&["report", "first", "last"]);
    report.succeeds();
    assert!(report.out.contains("cannot reach the database"), "{}", report.out);
}

#[test]
fn without_a_database_the_machine_is_recorded() {
    let place = Place::bare();
    for _ in 0..2 {
        place.seawall(&["snap", "--no-seawall", "--label", "before"]).succeeds();
    }
    let report = place.seawall(&["report", "1", "2"]);
    report.succeeds();
    assert!(report.out.contains("the machine alone") && report.out.contains("“before”"), "{}", report.out);
}

#[test]
fn wrong_questions_are_answered_with_what_to_do() {
    let place = Place::bare();
    place.seawall(&["report", "1", "2"]).fails(1, &["there is no repository", "seawall snap", "--repo"]);
    place
        .seawall(&["snap", "--db", "host=/nowhere user=x"])
        .fails(1, &["cannot connect to PostgreSQL", "user=…"]);
    place.seawall(&["snap", "--db", "oracle://x"]).fails(2, &["names no database", "mariadb:"]);
    place.seawall(&["snap", "--no-seawall"]).succeeds();
    place.seawall(&["report", "1", "7"]).fails(1, &["no snapshot 7", "there are 1 to 1"]);
    place.seawall(&["report", "1", "1"]).fails(1, &["two different snapshots"]);
    place.seawall(&["report", "good"]).fails(1, &["no baseline", "seawall snaps baseline"]);
    place.seawall(&["compare", "1", "1", "1"]).fails(1, &["four snapshots", "two baselines"]);
    place.seawall(&["snap", "--every", "soon"]).fails(2, &["not a duration", "60s"]);
    place.seawall(&["snap", "--pool", "/nowhere/x.pool"]).fails(1, &["/nowhere/x.pool"]);
}

#[test]
fn snapshots_of_two_databases_are_no_period() {
    let place = Place::with_server();
    place.snap().succeeds();
    place.seawall(&["snap", "--no-seawall"]).succeeds();
    place.seawall(&["report", "1", "2"]).fails(1, &["different databases", "seawall snaps"]);
}

#[test]
fn a_period_has_a_name_and_can_be_carried_elsewhere() {
    let place = Place::bare();
    (0..3).for_each(|_| drop(place.seawall(&["snap", "--no-seawall"])));
    place.seawall(&["snaps", "baseline", "good", "1", "3"]).succeeds();
    let export = place.path("r/export.jsonl").display().to_string();
    place.seawall(&["snaps", "export", "-o", &export]).succeeds();
    let there = place.path("r/there.db").display().to_string();
    let elsewhere = |arguments: &[&str]| {
        let mut command = Command::new(common::SEAWALL);
        Said::from(command.args(arguments).args(["--repo", &there]).output().expect("seawall starts"))
    };
    elsewhere(&["snaps", "import", &export]).succeeds();
    elsewhere(&["report", "good"]).succeeds();
    elsewhere(&["compare", "good", "good"]).succeeds();
    elsewhere(&["compare", "1", "2", "2", "3", "--json"]).json();
}
