//! Tables in the block cache: which files they are is asked of the server, and a rewrite is followed.

use crate::common;
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::common::front::BLOCK;
use crate::common::scene::Scene;
use crate::common::server::Server;
use crate::common::{SEAWALL, Said, is_root, wait_for};

/// The system identifier of the PostgreSQL that somebody stands for.
const SYSTEM: u64 = 7_312_000_000_000_000_001;

const CACHE: [&str; 2] = ["--cache", "64M"];

/// What there is of PostgreSQL.
impl Scene {
    /// The directory is one of PostgreSQL's, in which a server runs, with files of one block in `base`.
    fn postgres(files: &[&str]) -> Self {
        let mut scene = Self::serving(&CACHE);
        for dir in ["pg_wal", "base", "global"] {
            fs::create_dir(scene.file(dir)).expect("made");
        }
        for name in files {
            fs::write(scene.file("base").join(name), vec![1; BLOCK]).expect("written");
        }
        fs::write(scene.file("global/pg_control"), SYSTEM.to_ne_bytes()).expect("written");
        let running = format!("812\n{}\n1700000000\n5433\n/run/pg\n", scene.data.display());
        fs::write(scene.file("postmaster.pid"), running).expect("written");
        scene.add("postgres", "pg_wal");
        scene
    }

    /// A process that follows tables, and writes what is wrong into a file.
    fn follow(&self, psql: &str, more: &[&str]) -> Following {
        let errors = File::create(self.file("follow.err")).expect("made");
        let mut command = Command::new(SEAWALL);
        command
            .args(["cache", "refresh", "--follow", "--psql", psql, "--pool", self.place.pool()])
            .args(more);
        Following(command.stdin(Stdio::null()).stderr(errors).spawn().expect("seawall starts"))
    }

    /// A program that answers as psql does to whoever asks for the files of a table: this shell script says them.
    fn psql(&self, answer: &str) -> String {
        self.psql_of(&format!("{SYSTEM}|5433|{}", self.data.display()), answer)
    }

    /// The same, which asks a server that says this of itself.
    fn psql_of(&self, server: &str, answer: &str) -> String {
        let program = self.place.ram("psql");
        let text = format!(
            "#!/bin/sh\ncat > {program}.sql; printf '%s ' \"$@\" > {program}.words\necho '{server}'\n{answer}\n"
        );
        // At once: somebody may be about to start it.
        let new = self.place.ram("psql.new");
        common::program(&new, text);
        fs::rename(&new, &program).expect("renamed");
        program
    }
}

/// Ends with the test, whatever becomes of it.
struct Following(Child);

impl Following {
    /// Waits until it has slept some times more, and has looked whether there is a daemon between them.
    fn looks(&self) {
        let sleeps = || {
            let text = fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
            line.expect("a process").trim().parse::<u64>().expect("a number")
        };
        let before = sleeps();
        wait_for("it to look", || sleeps() > before + 3);
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The directory is PostgreSQL's, and somebody answers as psql does.
// Holds: internals/CACHE#policies-and-prewarming
#[test]
fn a_table_is_its_files_and_a_rewrite_is_followed_when_asked_for() {
    let scene = Scene::postgres(&[]);
    fs::create_dir(scene.file("base/5")).expect("made");
    for name in ["100", "100.1", "100_fsm", "101", "1000", "200"] {
        fs::write(scene.file("base/5").join(name), vec![1; 4 * BLOCK]).expect("written");
    }
    let base = scene.file("base/5");
    let psql = scene.psql(&format!("echo {0}/100; echo {0}/101", base.display()));
    scene.cache(&["keep", "d'b.s.t", "--psql", &format!("{psql} --port=7")]).succeeds();
    let words = fs::read_to_string(format!("{psql}.words")).expect("called");
    assert!(
        words.starts_with("--port=7 ") && words.contains(r"-d dbname='d\'b' -v schema=s -v name=t"),
        "{words}"
    );
    let policy = scene.policy(&base.join("100"));
    assert_eq!((&policy["policy"], &policy["table"]), (&json!("keep"), &json!("d'b.s.t")));
    let mut front = scene.front();
    for name in ["100.1", "100_fsm", "1000"] {
        assert_eq!(front.enter(&base.join(name)), "Ok");
    }
    let files = |name| scene.policy(&base.join(name))["files"].clone();
    assert_eq!((files("100"), files("101")), (json!(2), json!(0)), "segments and forks, and nothing else");
    // VACUUM FULL: other files.
    for name in ["100", "100.1", "100_fsm"] {
        fs::remove_file(base.join(name)).expect("removed");
    }
    let said = scene.cache(&["list"]);
    assert!(said.out.contains("100 (gone)") && said.out.contains("seawall cache refresh"), "{}", said.out);
    scene.psql(&format!("echo {0}/200; echo {0}/101", base.display()));
    scene.cache(&["refresh", "--psql", &psql]).succeeds();
    assert_eq!(scene.policy(&base.join("100")), Value::Null);
    assert_eq!(scene.policy(&base.join("200"))["table"], "d'b.s.t");
    // Dropped.
    scene.psql("");
    scene.cache(&["refresh", "--psql", &psql]).succeeds().says(&["d'b.s.t does not exist any more"]);
    assert_eq!(scene.cache(&["list", "--json"]).json()["policies"], json!([]));
    scene.cache(&["keep", "d.s.t", "--psql", &psql]).fails(1, &["no table or index s.t", "database d"]);
    scene.psql("echo 'no such role' >&2; exit 2");
    scene
        .cache(&["keep", "d.s.t", "--psql", &psql])
        .fails(1, &["no such role", "PGHOST", "pg_control_system"]);
    scene
        .cache(&["keep", "d.s.t", "--psql", "/nowhere/psql"])
        .fails(1, &["/nowhere/psql", "install", "--psql"]);
    front.end();
}

/// Also behind sudo, which passes no variables on; unless somebody says which one it is to be.
// Holds: internals/CACHE#policies-and-prewarming
#[test]
fn psql_asks_the_server_of_the_directory() {
    let scene = Scene::postgres(&["100"]);
    let psql = scene.psql("echo base/100");
    let keep = |words: &str, variable: &str| {
        let pool = ["--pool", scene.place.pool(), "--psql", &format!("{psql}{words}")];
        let mut keep = scene.place.command(&[&["cache", "keep", "d.s.t"], &pool[..]].concat());
        for name in ["PGHOST", "PGHOSTADDR", "PGPORT", "PGSERVICE"] {
            keep.env_remove(name);
        }
        if !variable.is_empty() {
            keep.env(variable, "5433");
        }
        Said::from(keep.output().expect("seawall starts")).succeeds();
        fs::read_to_string(format!("{psql}.words")).expect("called").contains("host='/run/pg' port='5433'")
    };
    assert!(keep("", ""));
    assert!(keep(" -U postgres", ""));
    for words in [" -p 5433", " -h /run/pg", " --port=5433", " --host /run/pg"] {
        assert!(!keep(words, ""), "{words}");
    }
    assert!(!keep("", "PGPORT") && !keep("", "PGHOST"));
}

/// The database's user, as which a DBA would have called it: root is no role. Not if another user or psql is named.
#[test]
fn root_asks_as_the_directorys_owner() {
    if !is_root() {
        eprintln!("skipped: it is about root");
        return;
    }
    let scene = Scene::postgres(&["100"]);
    std::os::unix::fs::chown(&scene.data, Some(65534), Some(65534)).expect("changed");
    let programs = tempfile::tempdir_in("/var/tmp").expect("a directory");
    fs::set_permissions(programs.path(), fs::Permissions::from_mode(0o755)).expect("changed");
    let psql = programs.path().join("psql");
    common::program(&psql, "#!/bin/sh\necho \"asked by $(id -u):$(id -g):$(id -G) in $(pwd)\" >&2; exit 2\n");
    let asked = |words: &[&str], user: Option<&str>| {
        let mut keep =
            scene.place.command(&[&["cache", "keep", "d.s.t", "--pool", scene.place.pool()], words].concat());
        keep.env("PATH", format!("{}:/usr/bin:/bin", programs.path().display())).env_remove("PGUSER");
        keep.envs(user.map(|user| ("PGUSER", user)));
        Said::from(keep.output().expect("seawall starts"))
    };
    asked(&[], None).fails(1, &["asked by 65534:65534:65534 in /\n"]);
    asked(&[], Some("me")).fails(1, &["asked by 0:0:"]);
    asked(&["--psql", &psql.to_string_lossy()], None).fails(1, &["asked by 0:0:"]);
}

/// That server has no such table, or one with other files: neither is believed, and the earlier policy stays.
// Holds: internals/CACHE#policies-and-prewarming
#[test]
fn the_server_of_another_directory_is_not_believed() {
    let scene = Scene::postgres(&["100", "200"]);
    let base = scene.file("base");
    let answer = |name: &str| format!("echo base/{name}");
    let psql = scene.psql(&answer("100"));
    scene.cache(&["keep", "d.s.t", "--psql", &psql]).succeeds();
    let own = scene.data.display().to_string();
    let reach = format!("\"{psql} -h /run/pg -p 5433\"");
    for (server, told) in [
        (format!("{SYSTEM}|5432|/srv/other"), "(directory /srv/other, port 5432"),
        (format!("{SYSTEM}|5433|/srv/copy"), "/srv/copy"),
        (format!("17|5433|{own}"), "system identifier 17)"),
        (format!("{SYSTEM}|5432|"), "unknown to its role"),
    ] {
        for answer in ["", &answer("200")] {
            scene.psql_of(&server, answer);
            scene
                .cache(&["refresh", "--psql", &psql])
                .fails(1, &["d.s.t", "another server", told, &own, &reach]);
            scene.cache(&["keep", "d.s.t2", "--psql", &psql]).fails(1, &["d.s.t2", "another server", told]);
        }
    }
    scene.psql_of("base/200", "");
    scene.cache(&["refresh", "--psql", &psql]).fails(1, &["\"base/200\"", "does --psql call psql?"]);
    assert_eq!(scene.policy(&base.join("100"))["table"], "d.s.t");
    // A role that sees less of its server.
    scene.psql_of(&format!("{SYSTEM}|5433|"), &answer("200"));
    scene.cache(&["refresh", "--psql", &psql]).succeeds();
    assert_eq!(scene.policy(&base.join("200"))["table"], "d.s.t");
    // The process that follows reports it, and goes on.
    scene.psql_of("17|5432|/srv/other", &answer("100"));
    let _follow = scene.follow(&psql, &["--wait"]);
    let told = || fs::read_to_string(scene.file("follow.err")).expect("text");
    wait_for("an error", || told().contains("(directory /srv/other"));
    assert_eq!(scene.policy(&base.join("200"))["table"], "d.s.t");
    scene.psql(&answer("100"));
    wait_for("the right server", || scene.policy(&base.join("100"))["table"] == "d.s.t");
    fs::remove_file(scene.file("postmaster.pid")).expect("removed");
    scene
        .cache(&["refresh", "--psql", &psql])
        .fails(1, &["another server", &format!("No server runs in {own}")]);
}

/// A rewrite empties the old files first, and removes them later; the follower reports an error, and goes on.
// Holds: internals/CACHE#policies-and-prewarming
#[test]
fn a_rewrite_is_followed_without_being_asked() {
    let mut scene = Scene::postgres(&["100", "200", "300"]);
    let base = scene.file("base");
    let psql = scene.psql(&format!("echo {}/100", base.display()));
    scene.cache(&["keep", "d.s.t", "--psql", &psql]).succeeds();
    let mut follow = scene.follow(&psql, &[]);
    let is_kept = |name: &str| scene.policy(&base.join(name))["table"] == "d.s.t";
    scene.psql(&format!("echo {}/200", base.display()));
    fs::write(base.join("100"), "").expect("emptied");
    wait_for("the table's other file", || is_kept("200") && !is_kept("100"));
    scene.psql("echo 'no such role' >&2; exit 2");
    fs::remove_file(base.join("200")).expect("removed");
    wait_for("an error", || {
        fs::read_to_string(scene.file("follow.err")).expect("text").contains("no such role")
    });
    assert!(is_kept("200"), "the error changes nothing");
    scene.psql(&format!("echo {}/300", base.display()));
    wait_for("the table's third file", || is_kept("300"));
    scene.stop();
    wait_for("the end", || follow.0.try_wait().expect("a child").is_some());
    assert!(follow.0.wait().expect("it ended").success());
}

/// As the unit of a service does: it may come before the daemon and before the server, and outlives a daemon. It
/// reports a fault once, however often it tries, and without a table it asks nobody anything.
// Holds: internals/CACHE#policies-and-prewarming
#[test]
fn one_who_waits_follows_from_whenever_there_is_something_to_follow() {
    let mut scene = Scene::postgres(&["100", "200", "300"]);
    let base = scene.file("base");
    let is_kept = |scene: &Scene, name: &str| scene.policy(&base.join(name))["table"] == "d.s.t";
    let answer = |name: &str| format!("echo {}/{name}", base.display());
    let psql = scene.psql(&answer("100"));
    scene.cache(&["refresh", "--psql", &psql]).succeeds();
    assert!(!Path::new(&format!("{psql}.words")).exists(), "there is no table to ask for");
    scene.cache(&["keep", "d.s.t", "--psql", &psql]).succeeds();
    scene.stop();

    // Nothing is there yet.
    let mut follow = scene.follow(&psql, &["--wait"]);
    let told = |scene: &Scene, what: &str| {
        fs::read_to_string(scene.file("follow.err")).expect("text").matches(what).count()
    };
    wait_for("it to say so", || told(&scene, "no daemon serves") == 1);
    follow.looks();
    // The server comes after the daemon.
    scene.psql("echo t >> $0.tries; echo 'the database system is starting up' >&2; exit 2");
    scene.start(&CACHE);
    let tries = format!("{psql}.tries");
    wait_for("it to try again", || fs::read_to_string(&tries).is_ok_and(|tries| tries.lines().count() > 1));
    assert_eq!(told(&scene, "starting up"), 1, "it is reported once");
    scene.psql(&answer("200"));
    wait_for("the table's other file", || is_kept(&scene, "200") && !is_kept(&scene, "100"));
    scene.stop();
    follow.looks();
    assert!(follow.0.try_wait().expect("a child").is_none(), "it outlives the daemon");
    scene.start(&CACHE);
    scene.psql(&answer("300"));
    fs::write(base.join("200"), "").expect("emptied");
    wait_for("the table's third file", || is_kept(&scene, "300"));
    assert!(follow.0.try_wait().expect("a child").is_none(), "it goes on");
}

/// A real server: all that belongs to a table, by the names that the table has, before and after it is written anew.
// Holds: internals/CACHE#policies-and-prewarming
#[test]
fn postgresql_says_which_files_a_table_has() {
    let Some(server) = Server::start() else {
        eprintln!("skipped: no PostgreSQL");
        return;
    };
    let run = |sql: &str| server.sql(sql).expect("it goes well");
    run("CREATE TABLE \"The orders\" (id int PRIMARY KEY, note text) PARTITION BY RANGE (id)");
    run("CREATE TABLE part PARTITION OF \"The orders\" FOR VALUES FROM (0) TO (10)");
    run("CREATE INDEX ON part (note)");
    run("CREATE VIEW seen AS SELECT 1");
    let mut scene = Scene::serving(&CACHE);
    scene.data = server.data();
    scene.add("postgres", "pg_wal");
    let psql = server.psql();
    let kept = || {
        let listed = scene.cache(&["list", "--json"]).json();
        let policies = listed["policies"].as_array().expect("policies").clone();
        let paths = policies.iter().map(|policy| policy["path"].as_str().expect("a path").to_owned());
        paths.collect::<std::collections::BTreeSet<_>>()
    };
    // The partition, its two indexes, its TOAST table, and the index of that.
    let files = || {
        let said = run("SELECT pg_relation_filepath(oid) FROM pg_class WHERE oid IN (SELECT 'part'::regclass
            UNION SELECT indexrelid FROM pg_index WHERE indrelid = 'part'::regclass
            UNION SELECT reltoastrelid FROM pg_class WHERE relname = 'part'
            UNION SELECT indexrelid FROM pg_index JOIN pg_class c ON indrelid = c.reltoastrelid WHERE c.relname = 'part')");
        assert_eq!(said.len(), 5, "{said:?}");
        said.iter().map(|path| server.data().join(path).display().to_string()).collect()
    };
    scene.cache(&["keep", "postgres.public.The orders", "--psql", &psql]).succeeds();
    let before = files();
    assert_eq!(kept(), before);
    run("VACUUM FULL part");
    scene.cache(&["refresh", "--psql", &psql]).succeeds();
    assert_eq!(kept(), files());
    assert_ne!(kept(), before);
    run("INSERT INTO part SELECT i, repeat('x', 100) FROM generate_series(0, 9) i");
    let follow = scene.follow(&psql, &[]);
    for rewrite in ["VACUUM FULL part", "CLUSTER part USING part_pkey", "REINDEX TABLE part", "TRUNCATE part"]
    {
        run(rewrite);
        wait_for(rewrite, || kept() == files());
    }
    drop(follow);
    for name in ["seen", "the orders", "nothing"] {
        let name = format!("postgres.public.{name}");
        scene
            .cache(&["keep", &name, "--psql", &psql])
            .fails(1, &["no table or index", "no files of its own"]);
    }
    scene.cache(&["keep", "nowhere.public.part", "--psql", &psql]).fails(1, &["\"nowhere\" does not exist"]);
    // Without a word about where it listens.
    let plain = psql.split(" -h ").next().expect("words");
    scene.cache(&["refresh", "--psql", plain]).succeeds();
    assert_eq!(kept(), files());
    // By a role that may not see the server's directory.
    run("CREATE ROLE somebody LOGIN");
    let psql = psql.replace("-U postgres", "-U somebody");
    scene.cache(&["refresh", "--psql", &psql]).succeeds();
    assert_eq!(kept(), files());
    run("CREATE SCHEMA closed");
    run("CREATE TABLE closed.t (id int)");
    scene
        .cache(&["keep", "postgres.closed.t", "--psql", &psql])
        .fails(1, &["permission denied for schema closed", "sudo -u postgres psql"]);
    // Another server, which has such a table too.
    let other = Server::start().expect("as before");
    other.sql("CREATE TABLE \"The orders\" (id int)").expect("it goes well");
    let at = other.data().display().to_string();
    scene.cache(&["refresh", "--psql", &other.psql()]).fails(1, &["another server", &at, "-p 5432\""]);
    assert_eq!(kept(), files());
}

/// The rewrite ends after the server was asked and before anybody looks at the files that it named.
#[test]
fn regression_a_rewrite_while_the_server_answers_is_followed() {
    let scene = Scene::postgres(&["100", "200"]);
    let base = scene.file("base");
    let psql = scene.psql(&format!("echo {}/100", base.display()));
    scene.cache(&["keep", "d.s.t", "--psql", &psql]).succeeds();
    let first = "if [ -s $base/100 ]; then echo $base/100; : > $base/100; else echo $base/200; fi";
    scene.psql(&first.replace("$base", &base.display().to_string()));
    let _follow = scene.follow(&psql, &[]);
    wait_for("the table's other file", || scene.policy(&base.join("200"))["table"] == "d.s.t");
}

#[test]
fn a_table_of_mariadb_is_its_tablespaces() {
    let mut scene = Scene::serving(&CACHE);
    fs::create_dir(scene.file("shop")).expect("made");
    for name in ["t.ibd", "p#P#p0.ibd", "p#P#p1.ibd", "tt.ibd"] {
        fs::write(scene.file("shop").join(name), vec![1; 4 * BLOCK]).expect("written");
    }
    scene.add("mariadb", "");
    scene.cache(&["none", "shop.t", "shop.p"]).succeeds();
    let policy = |name| scene.policy(&scene.file("shop").join(name))["policy"].clone();
    assert_eq!(
        [policy("t.ibd"), policy("p#P#p0.ibd"), policy("p#P#p1.ibd")],
        ["none", "none", "none"].map(Value::from)
    );
    assert_eq!(policy("tt.ibd"), Value::Null);
    scene.cache(&["keep", "shop.x"]).fails(1, &["shop/x.ibd", "innodb_file_per_table"]);
    scene.cache(&["keep", "nowhere.t"]).fails(1, &["nowhere/t.ibd"]);
}
