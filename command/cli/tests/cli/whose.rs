//! Which pool is meant where several users' are in use.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::Command;

use crate::common::{Place, SEAWALL, Said, has, is_root};

const NOBODY: u32 = 65534;

/// Root's view of a machine on which others run databases: one of its own process ids, since other tests run daemons too.
const SCRIPT: &str = r#"
set -e
S=$1 OTHERS=$2 OWN=$3 POOLS=$4
until_served() { for i in $(seq 200); do $S status --pool $1 --json 2>/dev/null | grep -q '"daemon_pid": [0-9]' && return; sleep 0.05; done; exit 9; }
$S run --quiet --user nobody --emulated --size 16M --pool $POOLS/others.pool --preset sqlite --data $OTHERS -- sleep 60 &
until_served $POOLS/others.pool
$S status --json > one.json
$S drain > drained
$S top -n 1 > top
$S run --quiet --emulated --size 16M --pool $POOLS/own.pool --preset sqlite --data $OWN -- sleep 60 &
own=$!
until_served $POOLS/own.pool
$S status > list
$S status --json > list.json
$S drain 2> drain.err && exit 7
$S stop 2> stop.err && exit 7
$S top -n 1 2> top.err && exit 7
setpriv --reuid 65534 --regid 65534 --clear-groups $S status --json > nobodys.json
$S status $OTHERS --json > directory.json
$S status $POOLS/own.pool --json > pool.json
$S drain $OWN > drained
kill $own; wait $own || true
$S status --json > rest.json
$S status $OWN 2> gone.err && exit 7
$S stop
true
"#;

#[test]
fn root_sees_every_daemon_of_the_machine_and_names_one_by_what_it_serves() {
    if !is_root() || !has("unshare") || !has("setpriv") {
        return;
    }
    let place = Place::bare();
    let pools = place.pool.parent().expect("a directory").to_owned();
    for (dir, owner) in [(place.file("others"), NOBODY), (place.file("own"), 0), (pools.clone(), NOBODY)] {
        fs::create_dir_all(&dir).expect("made");
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o755)).expect("opened");
        chown(&dir, Some(owner), Some(owner)).expect("given away");
    }
    fs::set_permissions(place.data.path(), fs::Permissions::from_mode(0o755)).expect("opened");
    let mut script = Command::new("unshare");
    script.args(["--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", SCRIPT, "sh", SEAWALL]);
    script.args([place.file("others"), place.file("own"), pools]).current_dir(place.data.path());
    let said = Said::from(script.env_remove("LD_PRELOAD").output().expect("runs"));
    said.succeeds();
    let text = |name: &str| fs::read_to_string(place.file(name)).unwrap_or_default();
    let pool = |name: &str| {
        let json: serde_json::Value = serde_json::from_str(&text(name)).expect("JSON");
        let path = json["pool"].as_str().unwrap_or_default().to_owned();
        path.rsplit('/').next().map(str::to_owned).unwrap_or_default()
    };
    assert_eq!(pool("one.json"), "others.pool", "the one that runs is meant, whosever it is");
    assert!(text("top").contains("emulated"), "{}", text("top"));
    for (name, lines) in [("list", 1), ("drain.err", 1), ("stop.err", 1), ("top.err", 1)] {
        for (pool, who, dir) in [("others.pool", "nobody", "/others"), ("own.pool", "root", "/own")] {
            let text = text(name);
            let found = text.lines().filter(|l| l.contains(pool) && l.contains(who) && l.contains(dir));
            assert_eq!(found.count(), lines, "{name}: {text}");
        }
    }
    let list: serde_json::Value = serde_json::from_str(&text("list.json")).expect("JSON");
    assert_eq!(list["daemons"].as_array().map(Vec::len), Some(2), "{list}");
    assert_eq!(pool("nobodys.json"), "others.pool", "others see their own");
    assert_eq!(pool("directory.json"), "others.pool");
    assert_eq!(pool("pool.json"), "own.pool");
    assert_eq!(pool("rest.json"), "others.pool");
    assert!(text("gone.err").contains("no daemon serves"), "{}", text("gone.err"));
}

/// Where a distribution puts its databases only root may make a file.
#[test]
fn root_makes_the_log_beside_data_whose_user_may_not() {
    if !is_root() {
        return;
    }
    let place = Place::bare();
    fs::set_permissions(place.data.path(), fs::Permissions::from_mode(0o755)).expect("opened");
    fs::create_dir(place.file("theirs")).expect("made");
    chown(place.file("theirs"), Some(NOBODY), Some(NOBODY)).expect("given away");
    let mut run = Command::new(SEAWALL);
    run.args([
        "run",
        "--user",
        "nobody",
        "--no-boot",
        "--size",
        "16M",
        "--preset",
        "sqlite",
        "--data",
        "theirs",
    ]);
    let said = Said::from(
        run.args(["--", "id", "-u"])
            .current_dir(place.data.path())
            .env_remove("LD_PRELOAD")
            .output()
            .expect("runs"),
    );
    said.succeeds().says(&["theirs.seawall", "survives power loss"]);
    assert_eq!(said.out.trim(), NOBODY.to_string(), "and it runs as that user, for good");
    let log = fs::metadata(place.file("theirs.seawall")).expect("a log");
    assert_eq!((log.uid(), log.permissions().mode() & 0o777), (NOBODY, 0o600));
}
