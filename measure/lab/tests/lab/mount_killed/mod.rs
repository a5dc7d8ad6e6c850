//! Databases on the mount, killed at full load, they and each part of Seawall's: no acknowledged commit is missing,
//! and their own checkers are content.
//!
//! The databases are bare programs on a directory; which ones, and how each is checked: the modules below.

mod etcd;
mod mariadb;
mod postgres;
mod sqlite;
mod stores;

use std::path::{Path, PathBuf};

use crate::common::{self, Place, assert_complete};
use seawall_lab::lab::Lab;
use seawall_lab::mount::{Mount, place};
use seawall_lab::process;
use seawall_lab::side::{Preset, Side};
use seawall_load::ledger::Verdict;

/// A kind of database.
trait Database: Sized {
    const PRESET: Preset;
    /// Commits before and after something is killed.
    const SOME: usize;
    /// What the bare database says of a guard.
    const REFUSED: &str;
    /// One at work, and its load.
    type Load<'a>
    where
        Self: 'a;

    /// Makes an empty one on the mount.
    fn install(lab: &Lab) -> Self;
    /// Its directory's name.
    fn name(&self) -> String;
    /// Starts it on the mount, and its load.
    fn start<'a>(&'a self, lab: &'a Lab, data: &'a Path, ledger: &Path) -> Self::Load<'a>;
    /// Waits until this many more commits were acknowledged.
    fn wait(load: &Self::Load<'_>, more: usize);
    /// Kills it and these processes in the same instant.
    fn kill(load: Self::Load<'_>, others: &[u32]);
    /// The ledger, and its own checkers. An error if it does not start.
    fn check(&self, lab: &Lab, side: Side, data: &Path, ledger: &Path) -> anyhow::Result<Verdict>;
}

/// A database on a mount.
struct Scene<'p, D> {
    place: &'p Place,
    mount: Mount<'p>,
    database: D,
    data: PathBuf,
}

impl<'p, D: Database> Scene<'p, D> {
    fn new(place: &'p Place) -> Self {
        let mount = Mount::start(&place.lab, D::PRESET).expect("mounted");
        let database = D::install(&place.lab);
        let data = self::place(&place.lab).join(database.name());
        Self { place, mount, database, data }
    }

    fn under_load(&self) -> D::Load<'_> {
        let load = self.database.start(&self.place.lab, &self.data, &self.place.ledger());
        D::wait(&load, D::SOME);
        load
    }

    fn check(&self, side: Side) -> anyhow::Result<Verdict> {
        let behind = self.mount.behind().join(self.database.name());
        let data = if side == Side::Mount { &self.data } else { &behind };
        self.database.check(&self.place.lab, side, data, &self.place.ledger())
    }

    #[track_caller]
    fn is_complete(&self, side: Side) {
        assert_complete(&self.check(side).expect("a verdict"));
    }
}

fn the_database_is_killed<D: Database>() {
    the_database_is_killed_at::<D>(&Place::new());
}

fn the_database_is_killed_at<D: Database>(place: &Place) {
    let scene = Scene::<D>::new(place);
    D::kill(scene.under_load(), &[]);
    scene.is_complete(Side::Mount);
    place.claim_one_more();
    assert_eq!(scene.check(Side::Mount).expect("a verdict").missing, 1, "the check can fail");
    scene.mount.end().expect("unmounted in order");
}

/// The database meets ENOTCONN everywhere and cannot go on; the next mount serves what was acknowledged.
fn the_mounts_process_is_killed<D: Database>() {
    let place = Place::new();
    let mut scene = Scene::<D>::new(&place);
    let load = scene.under_load();
    process::signal(scene.mount.server().expect("it serves"), libc::SIGKILL);
    drop(load);
    scene.mount.again().expect("mounted again");
    scene.is_complete(Side::Mount);
    let behind = scene.mount.behind().join(scene.database.name());
    let database = scene.database;
    scene.mount.end().expect("unmounted in order");
    // The files alone hold everything.
    let verdict = database.check(&place.lab, Side::Fs, &behind, &place.ledger());
    assert_complete(&verdict.expect("a verdict"));
}

fn the_daemon_is_killed_then_the_database<D: Database>() {
    the_daemon_is_killed_then_the_database_at::<D>(&Place::new());
}

fn the_daemon_is_killed_then_the_database_at<D: Database>(place: &Place) {
    let scene = Scene::<D>::new(place);
    let load = scene.under_load();
    let first = scene.mount.daemon().expect("a daemon");
    process::signal(first, libc::SIGKILL);
    D::wait(&load, D::SOME / 4);
    common::wait_for_another_daemon(scene.mount.pool(), first);
    D::wait(&load, D::SOME);
    D::kill(load, &[]);
    scene.is_complete(Side::Mount);
}

fn everything_is_killed_at_once_then_replayed<D: Database>() {
    let place = Place::new();
    let scene = Scene::<D>::new(&place);
    let load = scene.under_load();
    D::kill(load, &scene.mount.processes().expect("they run"));
    let refused = format!("{:#}", scene.check(Side::Fs).expect_err("the bare database is refused"));
    assert!(refused.contains(D::REFUSED), "{refused}");
    common::recover_with_replay(scene.mount.pool());
    // From here on without Seawall: the files alone hold everything.
    scene.is_complete(Side::Fs);
}
