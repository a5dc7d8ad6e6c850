//! Keepers by TLS, as their administrator meets them: certificates made, a log made and run on, renewed under it, and each
//! thing that can be wrong reported where it is.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::keepers::Keeper;
use crate::common::{Place, SEAWALL, Said, Writer, kill_everything, wait_for};

fn with_tls(files: &Path) -> Keeper {
    Keeper::start(&["--tls", files.to_str().expect("a path")])
}

fn seawall(arguments: &[&str]) -> Said {
    Command::new(SEAWALL).args(arguments).output().expect("it runs").into()
}

/// Asserts that a command that succeeded printed these.
#[track_caller]
fn prints(said: &Said, words: &[&str]) {
    said.succeeds();
    for word in words {
        assert!(said.out.contains(word), "{word:?} is not in {:?}", said.out);
    }
}

/// A CA, a keeper's files, an owner's.
struct Authority(tempfile::TempDir);

impl Authority {
    fn new() -> Self {
        let made = Self(tempfile::tempdir().expect("a directory"));
        prints(&made.cert(&["ca"], &[]), &["keep it only here", "cert keeper", "cert owner"]);
        prints(&made.cert(&["keeper"], &["127.0.0.1", "localhost"]), &["--tls DIRECTORY"]);
        prints(&made.cert(&["owner"], &["db1"]), &["take its logs over", "--tls DIRECTORY"]);
        made
    }

    fn cert(&self, what: &[&str], more: &[&str]) -> Said {
        seawall(&[&["keeper", "cert"], what, &[self.path("").to_str().expect("a path")], more].concat())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn keeper(&self) -> PathBuf {
        self.path("keeper-127.0.0.1")
    }

    fn owner(&self) -> String {
        self.path("owner-db1").display().to_string()
    }
}

fn kept(keepers: &[Keeper], files: &str) -> Place {
    let mut place = Place::bare();
    place.pool = place.data.path().join("seawall.log");
    let pool = place.pool().to_owned();
    let mut arguments = vec!["init", &pool, "--size", "16M", "--tls", files];
    keepers.iter().for_each(|keeper| arguments.extend(["--keeper", &keeper.address]));
    prints(&place.seawall(&arguments), &["medium: replicated"]);
    place
}

#[test]
fn a_log_is_made_written_and_brought_back_by_tls_and_certificates_are_renewed_under_it() {
    let ca = Authority::new();
    let mut keepers = [with_tls(&ca.keeper()), with_tls(&ca.keeper())];
    let place = kept(&keepers, &ca.owner());
    let mut writer = Writer::start(&place);
    writer.write(10);
    let kept = |place: &Place| place.status()["kept"].clone();
    assert_eq!(kept(&place)["transport"], "TLS 1.3");
    let encrypts = if Path::new("/proc/net/tls_stat").exists() { "kernel" } else { "daemon" };
    assert_eq!(kept(&place)["encrypts"], encrypts);
    let said = place.seawall(&["status", "--pool", place.pool()]);
    prints(&said, &[&format!("TLS 1.3 in the {encrypts}")]);
    // Keepers come back with new certificates, and are met with new ones.
    prints(&ca.cert(&["keeper"], &["127.0.0.1", "--renew"]), &["without a restart"]);
    ca.cert(&["owner"], &["db1", "--renew"]).succeeds();
    for (i, keeper) in keepers.iter_mut().enumerate() {
        keeper.kill();
        keeper.again();
        wait_for("it to count", || kept(&place)["keepers"][i]["role"] == "counts");
        writer.write(5);
    }
    let status = |more: &[&str]| seawall(&[&["keeper", "status", &keepers[0].address], more].concat());
    prints(&status(&["--tls", &ca.owner()]), &["of owner db1"]);
    prints(&status(&["--tls", ca.keeper().to_str().expect("a path")]), &["of owner db1"]);
    status(&[]).fails(1, &["speaks TLS only", "--tls"]);
    // Without this host's memory the keepers bring all of it back.
    kill_everything(&place, writer);
    place.in_memory().iter().for_each(|path| fs::remove_file(path).expect("removed"));
    let report = place.seawall(&["recover", "--replay", "--json", "--pool", place.pool()]).json();
    assert_eq!(report["replayed"], true);
    assert_eq!(Writer::found(&place), 20);
    place.run(&["true"]).succeeds();
}

/// As those are whose keys the kernel has, in so many records more; here whoever encrypts.
#[test]
fn connections_are_made_anew_while_commits_go_on() {
    let ca = Authority::new();
    let keepers = [with_tls(&ca.keeper()), with_tls(&ca.keeper())];
    let place = kept(&keepers, &ca.owner());
    let mut run = place.run_command(&Writer::PROGRAM);
    run.env("SEAWALL_TEST_RENEW_AFTER", "10");
    let mut writer = Writer::start_by(&place, run);
    let mut written = 0;
    let link = |keeper: usize| place.status()["kept"]["keepers"][keeper].clone();
    while (0..2).any(|keeper| link(keeper)["renewals"].as_u64() < Some(3)) {
        assert!(written < 230, "{} {}", link(0), link(1));
        writer.write(5);
        written += 5;
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    assert_eq!([link(0)["reconnects"].as_u64(), link(1)["reconnects"].as_u64()], [Some(0); 2]);
    // A certificate that is over renews nothing: what there is goes on.
    let files = ca.path("owner-db1/tls.crt");
    let good = fs::read(&files).expect("read");
    fs::write(&files, "none").expect("written");
    writer.write(5);
    fs::write(&files, good).expect("written");
    writer.write(5);
    kill_everything(&place, writer);
    place.in_memory().iter().for_each(|path| fs::remove_file(path).expect("removed"));
    place.seawall(&["recover", "--replay", "--pool", place.pool()]).succeeds();
    assert_eq!(Writer::found(&place), written as usize + 10);
}

// Holds: R21
#[test]
fn a_keeper_that_is_not_believed_is_down_until_it_is_and_says_why() {
    let ca = Authority::new();
    let mut keepers = [with_tls(&ca.keeper()), with_tls(&ca.keeper()), with_tls(&ca.keeper())];
    let place = kept(&keepers, &ca.owner());
    let mut writer = Writer::start(&place);
    writer.write(2);
    // Of another CA meanwhile.
    let other = Authority::new();
    let (mine, others) = (ca.path("owner-db1/tls.crt"), other.path("owner-db1/tls.crt"));
    let (good, key) = (fs::read(&mine).expect("read"), fs::read(ca.path("owner-db1/tls.key")).expect("read"));
    fs::copy(others, &mine).expect("copied");
    fs::copy(other.path("owner-db1/tls.key"), ca.path("owner-db1/tls.key")).expect("copied");
    keepers[0].kill();
    writer.write(2);
    keepers[0].again();
    let link = || place.status()["kept"]["keepers"][0].clone();
    wait_for("the daemon to hear of it", || {
        link()["trouble"].as_str().is_some_and(|text| text.contains("does not trust the CA"))
    });
    keepers[0].says("was not signed by the CA that this host trusts");
    writer.write(2);
    fs::write(&mine, good).expect("written");
    fs::write(ca.path("owner-db1/tls.key"), key).expect("written");
    wait_for("it to count", || link()["role"] == "counts");
    writer.write(2);
    writer.finish().succeeds();
}

#[test]
fn what_is_wrong_is_said_with_what_to_do() {
    let ca = Authority::new();
    let (keeper, clear) = (with_tls(&ca.keeper()), Keeper::start(&[]));
    let mut place = Place::bare();
    place.pool = place.data.path().join("seawall.log");
    let pool = place.pool().to_owned();
    let owner = ca.owner();
    let init = |address: &str, more: &[&str]| {
        place.seawall(&[&["init", &pool, "--size", "16M", "--keeper", address], more].concat())
    };
    init(&keeper.address, &[]).fails(1, &["speaks TLS only", "--tls"]);
    keeper.says("speaks clear text, and this keeper speaks TLS only");
    init(&clear.address, &["--tls", &owner]).fails(1, &["does not speak TLS", "started without --tls"]);
    clear.says("speaks TLS, and this keeper was started without --tls");
    init(&keeper.address, &["--tls", &owner, "--clear-text"]).fails(2, &["cannot be used with"]);
    init(&keeper.address, &["--tls", "/nowhere"]).fails(1, &["/nowhere/ca.crt", "seawall keeper cert"]);
    let keepers = ca.keeper().display().to_string();
    init(&keeper.address, &["--tls", &keepers]).fails(1, &["a keeper's, and a keeper owns no log"]);
    let other = Authority::new();
    init(&keeper.address, &["--tls", &other.owner()]).fails(1, &["was not signed by the CA"]);
    assert!(!place.pool.exists());
    place.seawall(&["init", &pool, "--size", "16M", "--emulated", "--tls", &owner]).fails(1, &["--keeper"]);
    // Another owner's.
    init(&keeper.address, &["--tls", &owner]).succeeds();
    ca.cert(&["owner"], &["db2"]).succeeds();
    let text = fs::read_to_string(&pool).expect("read");
    fs::write(&pool, text.replace("owner-db1", "owner-db2")).expect("written");
    place.seawall(&["inspect", &pool]).fails(1, &["owner db1", "owner db2"]);
    keeper.says("owner db1, and the request comes from owner db2");
    // Where certificates are made.
    ca.cert(&["ca"], &[]).fails(1, &["already exists", "--renew"]);
    ca.cert(&["owner"], &["db1"]).fails(1, &["already exists", "--renew", "nothing was changed"]);
    ca.cert(&["owner"], &["db7", "--renew"]).fails(1, &["does not exist", "without --renew"]);
    ca.cert(&["owner"], &["a/b"]).fails(1, &["not a name for an owner"]);
    ca.cert(&["keeper"], &["k1:7700"]).fails(1, &["without the port"]);
    ca.cert(&["keeper"], &[]).fails(2, &["<NAMES>"]);
    ca.cert(&["owner"], &["db8", "--days", "9000"]).fails(1, &["the CA's certificate ends on", "--days"]);
    ca.cert(&["owner"], &["db8", "--days", "0"]).fails(2, &["--days"]);
    seawall(&["keeper", "cert", "owner", "/nowhere", "db1"])
        .fails(1, &["there is no CA", "keeper cert ca /nowhere"]);
    prints(&seawall(&["keeper", "cert", "show", &owner]), &["owner db1", "valid from 20"]);
    // A keeper that could serve nobody does not start.
    let directory = tempfile::tempdir().expect("a directory");
    let at = directory.path().to_str().expect("a path");
    seawall(&["keeper", "serve", at, "--listen", "127.0.0.1:0", "--tls", "/nowhere"])
        .fails(1, &["/nowhere/ca.crt"]);
    seawall(&["keeper", "serve", at, "--listen", "0.0.0.0:0"])
        .fails(1, &["neither loopback", "--tls", "--clear-text"]);
}
