//! The SLOB method and the TPROC-C-like mix on servers under Seawall that are killed: nothing acknowledged is
//! missing, no row is torn, and the consistency conditions hold. What is planted is found.

use std::path::PathBuf;

use crate::common::Place;
use seawall_lab::crash::{Generator, GeneratorLoad, Reached};
use seawall_lab::lab::Lab;
use seawall_lab::mariadb::{Server, install};
use seawall_lab::pg::Cluster;
use seawall_lab::side::Side;
use seawall_load::{slob, tprocc};

/// Acknowledged operations before a kill.
const SOME: usize = 200;

fn ledgers(lab: &Lab) -> [(Generator, PathBuf); 2] {
    [(Generator::Slob, lab.work.log("slob")), (Generator::Tprocc, lab.work.log("tprocc"))]
}

/// Both generators, loaded and at work.
fn under_load(lab: &Lab, server: &impl Reached) -> Vec<GeneratorLoad> {
    for (generator, ledger) in ledgers(lab) {
        generator.set_up(lab, server, &ledger).expect("loaded");
    }
    let start = |(generator, ledger): (Generator, PathBuf)| generator.start(lab, server, &ledger);
    let loads: Vec<_> = ledgers(lab).into_iter().map(|load| start(load).expect("started")).collect();
    loads.iter().for_each(|load| load.wait_for_lines(SOME).expect("acknowledged"));
    loads
}

fn end(loads: Vec<GeneratorLoad>) {
    loads.into_iter().for_each(|load| load.end().expect("it lost its connections"));
}

fn slob_report(lab: &Lab, server: &impl Reached) -> slob::CheckReport {
    Generator::Slob.check(lab, server, &lab.work.log("slob")).expect("a verdict")
}

fn tprocc_report(lab: &Lab, server: &impl Reached) -> tprocc::CheckReport {
    Generator::Tprocc.check(lab, server, &lab.work.log("tprocc")).expect("a verdict")
}

#[track_caller]
fn assert_complete(lab: &Lab, server: &impl Reached) {
    let slob = slob_report(lab, server);
    assert!(slob.is_clean() && slob.acknowledged > 0, "{slob:#?}");
    assert!(slob.unacknowledged <= 4, "one update under way a session: {slob:#?}");
    let tprocc = tprocc_report(lab, server);
    assert!(tprocc.is_clean() && tprocc.acknowledged > 0, "{tprocc:#?}");
}

/// As a lost write leaves it, and half a transaction.
fn assert_planted_is_found(lab: &Lab, server: &impl Reached, sql: impl Fn(&str)) {
    sql("UPDATE seawall_slob1.data SET updates = updates - 1 WHERE custid = 500");
    let slob = slob_report(lab, server);
    assert!(slob.problems == 1 && slob.examples[0].contains("row 500"), "{slob:#?}");
    sql(
        "DELETE FROM seawall_tprocc.order_line WHERE ol_w_id = 1 AND ol_d_id = 3 AND ol_o_id = 7 AND ol_number = 1",
    );
    let broken = |report: &tprocc::CheckReport| -> Vec<u32> {
        report.conditions.iter().filter(|condition| condition.broken > 0).map(|c| c.number).collect()
    };
    assert_eq!(broken(&tprocc_report(lab, server)), [4, 6]);
    sql(
        "DELETE FROM seawall_tprocc.history WHERE h_id = (SELECT m FROM (SELECT max(h_id) AS m FROM seawall_tprocc.history) AS x)",
    );
    let report = tprocc_report(lab, server);
    assert_eq!((broken(&report), report.missing <= 1), (vec![4, 6, 8, 9, 10], true));
}

#[test]
fn postgres_killed() {
    let place = Place::new();
    let (bin, data) = place.postgres();
    let start = |side| Cluster::start(&place.lab, &bin, side, &data).expect("PostgreSQL starts");
    let cluster = start(Side::Seawall);
    let loads = under_load(&place.lab, &cluster);
    cluster.kill().expect("killed");
    end(loads);
    let cluster = start(Side::Seawall);
    assert_complete(&place.lab, &cluster);
    assert_planted_is_found(&place.lab, &cluster, |sql| cluster.sql(sql).expect("planted"));
    cluster.stop().expect("an orderly end");
}

#[test]
fn postgres_and_seawall_killed_at_once_then_replayed() {
    let place = Place::new();
    let (bin, data) = place.postgres();
    let start = |side| Cluster::start(&place.lab, &bin, side, &data).expect("PostgreSQL starts");
    let cluster = start(Side::Seawall);
    let loads = under_load(&place.lab, &cluster);
    cluster.kill_with(&[place.daemon()]).expect("killed");
    end(loads);
    place.recover_with_replay();
    // From here on without Seawall: the files alone hold everything.
    let cluster = start(Side::Fs);
    assert_complete(&place.lab, &cluster);
    cluster.stop().expect("an orderly end");
}

#[test]
fn mariadb_killed() {
    let place = Place::new();
    let data = place.lab.work.data("mariadb");
    install(&place.lab, &data).expect("MariaDB, which `make deps` installs");
    let start = |side| Server::start(&place.lab, side, &data).expect("MariaDB starts");
    let server = start(Side::Seawall);
    let loads = under_load(&place.lab, &server);
    server.kill().expect("killed");
    end(loads);
    let server = start(Side::Seawall);
    assert_complete(&place.lab, &server);
    assert_planted_is_found(&place.lab, &server, |sql| server.sql(sql).expect("planted"));
    server.stop().expect("an orderly end");
}
