//! `seawall attach` and `detach` on the files of an image: no systemd runs, so that anybody can run this.
//! `systemd-analyze verify`, where it is installed, shows what systemd makes of the drop-ins.

use crate::common;
use std::fs;
use std::process::Command;

use crate::common::Said;
use crate::common::image::{DROP_IN, ENVIRONMENT, FOLLOWER, Image, POSTGRES, UNIT};
use crate::common::keepers::Keeper;
use seawall_daemon::guard::{Among, Claim};
use seawall_wire::shm::Preset;
use serde_json::Value;

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
    image.zone("mnt/a.pool.cache");
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
        image.zone("mnt/a.pool.d/cache");
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
    let claim = Claim { uuid: 7, pool: "/mnt/a.pool".into() };
    let label = image.at("srv/pg/backup_label");
    seawall_daemon::guard::raise(Preset::Postgres, &label, &claim, Among::Nobody).expect("raised");
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
    for wanted in [
        "Wants=seawall-pace-",
        "--data /srv/pg --recovery 1s\n",
        "service check --pool /mnt/a.pool --preset postgres --data /srv/pg --recovery 1s --settings /etc/",
        "service stop --pool /mnt/a.pool --back-soon",
    ] {
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
