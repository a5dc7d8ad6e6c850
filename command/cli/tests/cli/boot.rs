//! What is recovered when the machine starts: the registry of pools, and `seawall recover --all`.

use crate::common;
use std::fs;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::keepers::Keeper;
use crate::common::mirrors::lose_memory;
use crate::common::{Place, Said, Writer, is_root, kill_everything};
use serde_json::Value;

const REGISTRY: &str = "SEAWALL_BOOT_REGISTRY";

/// A registry of its own, as the package makes it.
struct Machine {
    registry: tempfile::TempDir,
}

impl Machine {
    fn new() -> Self {
        let registry = tempfile::tempdir_in("/var/tmp").expect("a directory");
        fs::set_permissions(registry.path(), PermissionsExt::from_mode(0o1777)).expect("opened to all");
        Self { registry }
    }

    /// A database on a disk of this machine.
    fn place(&self) -> Place {
        let mut place = Place::bare();
        place.pool = place.data.path().join("seawall.log");
        place.seawall(&["init", "--block", place.pool(), "--size", "16M"]).succeeds();
        place
    }

    fn writer(&self, place: &Place) -> Writer {
        let mut run = place.run_command(&Writer::PROGRAM);
        run.env(REGISTRY, self.registry.path());
        Writer::start_by(place, run)
    }

    fn seawall(&self, place: &Place, words: &[&str]) -> Said {
        let mut command = place.command(words);
        command.env(REGISTRY, self.registry.path()).stdin(Stdio::null());
        command.output().expect("seawall starts").into()
    }

    fn pools(&self) -> Vec<PathBuf> {
        let links = fs::read_dir(self.registry.path()).expect("the registry").flatten();
        let mut all: Vec<_> = links.map(|link| fs::read_link(link.path()).expect("a link")).collect();
        all.sort();
        all
    }

    fn register(&self, name: &str, pool: &Path) -> PathBuf {
        let link = self.registry.path().join(name);
        symlink(pool, &link).expect("a link");
        link
    }
}

/// The restart, but for the boot id: what is in RAM is gone.
fn restart(place: &Place) {
    place.in_memory().into_iter().for_each(|path| fs::remove_file(path).expect("removed"));
}

// Holds: K7
#[test]
fn what_a_crash_left_is_recovered_at_the_start_of_the_machine_and_one_that_fails_keeps_none_from_it() {
    let machine = Machine::new();
    let (crashed, closed, damaged) = (machine.place(), machine.place(), machine.place());
    let mut writers = [&crashed, &closed].map(|place| machine.writer(place));
    writers.iter_mut().for_each(|writer| writer.write(10));
    let mut both = [crashed.pool.clone(), closed.pool.clone()];
    both.sort();
    assert_eq!(machine.pools(), both, "before the log holds anything");
    let [first, second] = writers;
    second.finish().succeeds();
    kill_everything(&crashed, first);
    restart(&crashed);
    assert!(crashed.guard().exists());
    assert_eq!(machine.pools(), std::slice::from_ref(&crashed.pool), "one that is closed in order has gone");
    fs::write(&damaged.pool, "no pool at all").expect("written");
    let gone = damaged.file("gone.pool");
    machine.register("damaged", &damaged.pool);
    machine.register("gone", &gone);

    let said = machine.seawall(&crashed, &["recover", "--all"]);
    said.fails(1, &["2 pools were not recovered"]);
    let line = |pool: &Path| {
        let is_of = |line: &&str| line.starts_with(&format!("{} (", pool.display()));
        said.out.lines().find(is_of).unwrap_or_else(|| panic!("{}: {}", pool.display(), said.out)).to_owned()
    };
    assert!(line(&crashed.pool).ends_with("guards down"), "{}", said.out);
    assert!(line(&damaged.pool).contains("NOT RECOVERED"), "{}", said.out);
    assert!(line(&gone).contains("it is not there"), "{}", said.out);
    assert!(line(&gone).contains("recover --forget"), "{}", said.out);
    assert!(!crashed.guard().exists());
    assert_eq!(Writer::found(&crashed), 10);

    let mut left = [damaged.pool.clone(), gone.clone()];
    left.sort();
    assert_eq!(machine.pools(), left, "nothing that is done is done again");
    for pool in left {
        machine.seawall(&closed, &["recover", "--forget", &pool.display().to_string()]).succeeds();
    }
    assert_eq!(machine.seawall(&closed, &["recover", "--all", "--json"]).json(), Value::Array(Vec::new()));
}

/// There is no network yet when the machine's logs are recovered.
#[test]
fn a_log_that_other_hosts_keep_waits_for_its_service() {
    let (machine, keeper) = (Machine::new(), Keeper::start(&[]));
    let mut place = Place::bare();
    place.pool = place.data.path().join("seawall.log");
    place.seawall(&["init", place.pool(), "--size", "16M", "--keeper", &keeper.address]).succeeds();
    let mut writer = machine.writer(&place);
    writer.write(10);
    kill_everything(&place, writer);
    lose_memory(&place, "x-wal");
    let said = machine.seawall(&place, &["recover", "--all"]);
    said.succeeds();
    assert!(said.out.contains("other hosts keep it"), "{}", said.out);
    assert!(place.guard().exists());
    assert_eq!(machine.pools(), std::slice::from_ref(&place.pool), "it is not done");
    machine.seawall(&place, &["recover", "--replay", "--pool", place.pool()]).succeeds();
    assert_eq!(Writer::found(&place), 10);
}

#[test]
fn a_pool_that_is_served_is_left_alone_and_one_in_ram_or_without_boot_is_not_registered() {
    let machine = Machine::new();
    let place = machine.place();
    let mut writer = machine.writer(&place);
    writer.write(3);
    let daemon = place.daemon();
    let all = machine.seawall(&place, &["recover", "--all", "--json"]).json();
    assert_eq!(all[0]["recovery"]["served"], true, "{all}");
    assert_eq!(place.daemon(), daemon);
    writer.write(3);
    writer.finish().succeeds();
    assert_eq!(machine.pools(), [""; 0].map(PathBuf::from));

    let in_ram = Place::new();
    let mut writer = machine.writer(&in_ram);
    writer.write(1);
    assert_eq!(machine.pools(), [""; 0].map(PathBuf::from), "it is gone when the machine starts again");
    writer.finish().succeeds();

    let list = format!("ls {}", machine.registry.path().display());
    let run = |more: &[&str]| {
        let run = ["run", "--pool", place.pool(), "--preset", "sqlite", "--data", "."];
        let words = [&run[..], more, &["--", "sh", "-c", list.as_str()]].concat();
        machine.seawall(&place, &words).succeeds().out.clone()
    };
    assert_ne!(run(&[]), "");
    assert_eq!(run(&["--no-boot"]), "");
}

/// A link in a directory that everybody may write speaks for the pools of whoever made it.
#[test]
fn each_is_recovered_as_its_owner_and_only_if_that_one_registered_it() {
    if !is_root() {
        return;
    }
    let machine = Machine::new();
    let nobody =
        nix::unistd::User::from_name("nobody").expect("a list of users").expect("nobody").uid.as_raw();
    let (roots, theirs) = (machine.place(), machine.place());
    for path in [&theirs.pool, &theirs.data.path().to_owned()] {
        lchown(path, Some(nobody), None).expect("given");
    }
    let wrong = machine.register("a", &roots.pool);
    let right = machine.register("b", &theirs.pool);
    for link in [&wrong, &right] {
        lchown(link, Some(nobody), None).expect("given");
    }
    let said = machine.seawall(&roots, &["recover", "--all"]);
    said.fails(1, &["1 pools were not recovered"]);
    assert!(said.out.contains("belongs to root, and nobody registered it"), "{}", said.out);
    assert!(
        said.out.contains(&format!("{} (nobody): nothing was live", theirs.pool.display())),
        "{}",
        said.out
    );
    assert!(wrong.is_symlink() && !right.is_symlink());
}

const UNIT: &str = include_str!("../../../../packaging/systemd/seawall-recover.service");

// Holds: K7
#[test]
fn the_unit_comes_after_the_disks_and_before_every_service() {
    let has = |key: &str, word: &str| {
        let lines = UNIT.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        lines.flat_map(str::split_whitespace).any(|found| found == word)
    };
    // Services are after basic.target by default; this one would be too.
    assert!(
        has("DefaultDependencies", "no") && has("Before", "basic.target") && has("After", "local-fs.target")
    );
    assert!(has("Before", "postgresql.service") && has("Before", "mariadb.service"));
    assert!(has("Type", "oneshot") && has("RemainAfterExit", "yes"));
    assert!(has("ConditionDirectoryNotEmpty", seawall_daemon::boot::REGISTRY), "quick when nothing is live");
    let tmpfiles = include_str!("../../../../packaging/systemd/seawall.tmpfiles");
    assert!(tmpfiles.contains(&format!("d {} 1777 root root -\n", seawall_daemon::boot::REGISTRY)));
    for unit in ["seawalld@.service", "seawall-mount@.service"] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/systemd").join(unit);
        let text = fs::read_to_string(path).expect("a unit");
        let after = text.lines().filter_map(|line| line.strip_prefix("After="));
        assert!(
            after.flat_map(str::split_whitespace).any(|word| word == "seawall-recover.service"),
            "{unit}"
        );
    }
}

#[test]
fn systemd_understands_the_unit() {
    if !common::has("systemd-analyze") {
        return;
    }
    let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
    let unit = dir.path().join("seawall-recover.service");
    fs::write(&unit, UNIT.replace("@BINDIR@/seawall", "/bin/true")).expect("written");
    let said = Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&unit).output();
    let said = Said::from(said.expect("systemd-analyze starts"));
    for wrong in ["seawall-recover", "Unknown", "ignoring", "cycle"] {
        assert!(!said.err.contains(wrong), "{}", said.err);
    }
}
