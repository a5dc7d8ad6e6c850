//! Two hosts with one database's data, and three keepers.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::process::Stdio;

use super::hosts::{Host, Network};
use super::keepers::Keeper;
use super::{Place, Said, Writer};

/// Two hosts with a database's data, and three keepers.
pub struct Scene {
    pub place: Place,
    pub a: Host,
    pub b: Host,
    pub keepers: Vec<Keeper>,
    /// The hosts that keepers are on.
    pub on: Vec<Host>,
    pub network: Network,
}

impl Scene {
    pub fn new(acks: usize) -> Option<Self> {
        Self::in_mode(acks, "protection")
    }

    pub fn in_mode(acks: usize, mode: &str) -> Option<Self> {
        let scene = Self::without_log()?;
        let (pool, acks) = (scene.pool("a"), acks.to_string());
        let mut init = vec!["init", &pool, "--size", "16M", "--acks", &acks, "--mode", mode];
        scene.keepers.iter().for_each(|keeper| init.extend(["--keeper", &keeper.address]));
        scene.a.seawall(&init).succeeds();
        Some(scene)
    }

    /// The keepers keep none yet.
    pub fn without_log() -> Option<Self> {
        let mut network = Network::new()?;
        let (a, b) = (network.host("db-a"), network.host("db-b"));
        let on: Vec<Host> = (1..=3).map(|i| network.host(&format!("keeper-{i}"))).collect();
        let keepers: Vec<Keeper> = on.iter().map(|host| Keeper::on(host, &[])).collect();
        let place = Place::bare();
        Some(Self { place, a, b, keepers, on, network })
    }

    /// A pool's file: on a disk of each host's own, under the same path.
    pub fn pool(&self, _host: &str) -> String {
        "/run/db.log".into()
    }

    pub fn data(&self) -> String {
        self.place.data.path().display().to_string()
    }

    /// The database, on a host.
    pub fn writer(&self, host: &Host, pool: &str) -> Writer {
        let (pool, data) = (self.pool(pool), self.data());
        let run = ["run", "--pool", &pool, "--preset", "sqlite", "--data", ".", "--"];
        let mut command = host.seawall_command(&data, &[&run[..], &Writer::PROGRAM].concat());
        command.stdin(Stdio::piped());
        Writer::start_by(&self.place, command)
    }

    pub fn takeover(&self, host: &Host, name: &str, more: &[&str]) -> Said {
        let (pool, data) = (self.pool(name), self.data());
        let keeper = self.keepers[1].address.clone();
        host.seawall(&[&["takeover", &pool, "--keeper", &keeper, "--data", &data], more].concat())
    }

    /// The data's disk loses what it had not been given when the host was lost: all but the first block. False, and
    /// nothing is lost, if it had been given some of that by then.
    pub fn lose_page_cache(&self, blocks: usize) -> bool {
        let (any, data) = (self.place.file("none").display().to_string(), self.data());
        let keepers = self.keepers.iter().flat_map(|keeper| ["--keeper", &keeper.address]);
        let look = ["takeover", &any, "--data", &data, "--dry-run", "--json"];
        let seen = self.b.seawall(&look.into_iter().chain(keepers).collect::<Vec<_>>());
        let seen: serde_json::Value = serde_json::from_str(&seen.out).expect("JSON");
        // A write is a record; that of the first block was made durable with its file.
        let is_all_there = seen["found"]["live"].as_u64().is_some_and(|live| live + 1 >= blocks as u64);
        if is_all_there {
            let file = fs::File::options().write(true).open(self.place.file("x-wal")).expect("the file");
            file.write_all_at(&vec![0; (blocks - 1) * 4096], 4096).expect("rolled back");
        }
        is_all_there
    }
}

/// A former writer's bytes may not count, and whoever waits for them must hear so.
pub fn gets_an_error(mut writer: Writer) -> Said {
    let stdin = writer.run.stdin.as_mut().expect("piped");
    // It may be gone already.
    let _ = std::io::Write::write_all(stdin, &[0xee; 4096]);
    writer.finish()
}
