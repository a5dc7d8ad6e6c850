//! An unmodified PostgreSQL under pgbench, three keepers, and another host, each with a network of its own: anything is killed,
//! stopped or partitioned, and what was acknowledged is kept outside.

use std::process::Child;
use std::time::Duration;

use crate::common::database::Database;
use crate::common::disk::LoopDevice;
use crate::common::hosts::Host;
use crate::common::pair::Scene;
use crate::common::pgbench::{Acknowledged, Clients, Ledger};
use crate::common::{lot, rounds, wait_at_most, wait_for};

/// A commit that too few keepers confirm fails after half a minute, if nobody says before that another host has the log.
const PATIENCE: Duration = Duration::from_secs(60);

/// What happens to anybody while the database serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trouble {
    KeeperKilled,
    KeeperStopped,
    KeeperUnplugged,
    TwoKeepersKilled,
    DaemonKilled,
    DaemonStopped,
    BackendKilled,
    BackendStopped,
    PostmasterKilled,
    HostUnplugged,
}

impl Trouble {
    const ALL: [Self; 10] = [
        Self::KeeperUnplugged,
        Self::BackendKilled,
        Self::KeeperStopped,
        Self::DaemonKilled,
        Self::TwoKeepersKilled,
        Self::PostmasterKilled,
        Self::KeeperKilled,
        Self::BackendStopped,
        Self::HostUnplugged,
        Self::DaemonStopped,
    ];
}

/// How the database's host is lost then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Loss {
    /// Every process, and its memory.
    Power,
    /// Nothing gets out of it or into it.
    Partition,
    /// Every process is stopped, and goes on when another host has the log.
    Pause,
}

impl Loss {
    const ALL: [Self; 3] = [Self::Partition, Self::Power, Self::Pause];
}

/// A server, and its clients.
struct Serving {
    server: Child,
    clients: Clients,
}

/// The database, somewhere.
struct Campaign {
    scene: Scene,
    database: Database,
    ledger: Ledger,
    /// It is on the second host.
    is_on_b: bool,
    serving: Serving,
    /// A keeper that is lost, and how.
    lost: Option<(usize, Trouble)>,
    /// Records that were only in the log when its host was lost.
    in_log: u64,
    /// The longest time that a former host's clients waited until they heard of it.
    heard_after: Duration,
}

impl Campaign {
    /// `None`, and a word about it, where it cannot be had.
    fn new() -> Option<Self> {
        let scene = Scene::without_log()?;
        let keepers: Vec<&str> = scene.keepers.iter().map(|keeper| keeper.address.as_str()).collect();
        let shared = scene.place.data.path().to_owned();
        let database = Database::new(&shared, &keepers)?;
        database.attach(&scene.a);
        database.install(&scene.a);
        let server = database.start(&scene.a);
        let mut ledger = Ledger::new(shared.join("ledger"), &database, &scene.a);
        let serving = Serving { server, clients: ledger.begin(&database, &scene.a) };
        Some(Self {
            scene,
            database,
            ledger,
            is_on_b: false,
            serving,
            lost: None,
            in_log: 0,
            heard_after: Duration::ZERO,
        })
    }

    /// Where the database is.
    fn host(&self) -> &Host {
        if self.is_on_b { &self.scene.b } else { &self.scene.a }
    }

    fn former_host(&self) -> &Host {
        if self.is_on_b { &self.scene.a } else { &self.scene.b }
    }

    fn goes_on(&self) {
        self.serving.clients.go_on(&self.database, self.host());
    }

    fn status(&self) -> serde_json::Value {
        self.database.status(self.host())
    }

    fn keeper_counts(&self, keeper: usize) {
        wait_for("a keeper to count", || self.status()["kept"]["keepers"][keeper]["role"] == "counts");
    }

    fn daemon(&self) -> Option<u64> {
        self.status()["daemon_pid"].as_u64()
    }

    /// One round.
    fn round(&mut self, trouble: Trouble, loss: Loss, drawn: impl Fn(u64) -> u64) {
        self.goes_on();
        self.meets(trouble, drawn(3) as usize);
        self.goes_on();
        std::thread::sleep(Duration::from_millis(drawn(300)));
        let disk = self.loses_its_host(loss);
        let said = self.database.take_over(self.host());
        assert_eq!(said.code, Some(0), "{}{}", said.out, said.err);
        self.in_log += said.json()["takeover"]["recovery"]["live"].as_u64().expect("a number");
        assert!(self.in_log > 0, "nothing was in the log");
        let serving = self.serve();
        let former = std::mem::replace(&mut self.serving, serving);
        self.comes_back(former, disk, loss);
        self.database.check(self.host());
        self.heals();
        self.goes_on();
    }

    /// The database is started where it is now.
    fn serve(&mut self) -> Serving {
        let server = self.database.start(self.host());
        Serving { server, clients: self.begin_clients() }
    }

    fn begin_clients(&mut self) -> Clients {
        let host = if self.is_on_b { &self.scene.b } else { &self.scene.a };
        self.ledger.begin(&self.database, host)
    }

    /// Something happens, and the database goes on.
    fn meets(&mut self, trouble: Trouble, keeper: usize) {
        match trouble {
            Trouble::KeeperKilled => self.scene.keepers[keeper].kill(),
            Trouble::KeeperStopped => self.scene.keepers[keeper].signal("STOP"),
            Trouble::KeeperUnplugged => self.scene.on[keeper].unplug(),
            Trouble::TwoKeepersKilled => self.two_are_killed(keeper),
            Trouble::DaemonKilled => {
                let daemon = self.daemon();
                self.host().signal(daemon.expect("it runs"), "KILL");
                wait_for("another daemon", || self.daemon().is_some_and(|pid| Some(pid) != daemon));
            }
            Trouble::DaemonStopped => self.host().signal(self.daemon().expect("it runs"), "STOP"),
            Trouble::BackendKilled => {
                self.host().signal(self.database.backend(self.host()), "KILL");
                self.other_clients();
            }
            Trouble::BackendStopped => self.a_backend_is_stopped(),
            Trouble::PostmasterKilled => self.starts_anew(),
            Trouble::HostUnplugged => {
                self.host().unplug();
                std::thread::sleep(Duration::from_millis(1500));
                self.host().plug();
            }
        }
        self.lost = match trouble {
            Trouble::KeeperKilled | Trouble::KeeperStopped | Trouble::KeeperUnplugged => {
                Some((keeper, trouble))
            }
            Trouble::TwoKeepersKilled => Some(((keeper + 1) % 3, trouble)),
            _ => None,
        };
    }

    /// One after the other: the second one stays away.
    fn two_are_killed(&mut self, keeper: usize) {
        self.scene.keepers[keeper].kill();
        self.goes_on();
        self.scene.keepers[keeper].again_on(Some(&self.scene.on[keeper]));
        self.keeper_counts(keeper);
        self.goes_on();
        self.scene.keepers[(keeper + 1) % 3].kill();
    }

    /// PostgreSQL restarts all of its processes when one was killed.
    fn other_clients(&mut self) {
        wait_for("clients to hear of it", || self.serving.clients.have_ended());
        wait_for("PostgreSQL", || self.database.sql(self.host(), "SELECT 1").is_some());
        self.serving.clients = self.begin_clients();
    }

    /// It may have a lock of PostgreSQL's meanwhile, so nobody need go on before it does.
    fn a_backend_is_stopped(&self) {
        let backend = self.database.backend(self.host());
        self.host().signal(backend, "STOP");
        std::thread::sleep(Duration::from_millis(500));
        self.host().signal(backend, "CONT");
    }

    fn starts_anew(&mut self) {
        self.host().signal(self.database.postmaster(self.host()), "KILL");
        self.serving.server.wait().expect("seawall run ends");
        wait_for("its processes to end", || !self.host().runs("postgres"));
        self.serving.server = self.database.start(self.host());
        self.other_clients();
    }

    /// From now on the database is on the other host, with what was flushed. The disk that the former one keeps.
    fn loses_its_host(&mut self, loss: Loss) -> LoopDevice {
        if loss == Loss::Partition {
            self.host().unplug();
        }
        // Nothing is flushed while the disk is copied.
        self.host().pause();
        let disk = self.database.is_taken_away();
        match loss {
            Loss::Power => self.host().forget(),
            Loss::Partition => self.host().resume(),
            Loss::Pause => {}
        }
        self.is_on_b = !self.is_on_b;
        self.database.attach(self.host());
        disk
    }

    /// The former host comes back: whoever waits there gets an error, and nothing more is acknowledged. A client that
    /// got a late acknowledgement has its row, as all others do.
    fn comes_back(&mut self, mut former: Serving, disk: LoopDevice, loss: Loss) {
        let host = self.former_host();
        match loss {
            Loss::Power => {}
            Loss::Partition => host.plug(),
            Loss::Pause => host.resume(),
        }
        let tell = || self.database.last_words(host);
        let took = wait_at_most(PATIENCE, "the former host's clients", || former.clients.have_ended(), tell);
        let late = self.database.sql(host, "INSERT INTO ledger VALUES (0, 0, 1)");
        assert_eq!(late, None, "the former host acknowledges: {}", self.database.last_words(host));
        host.forget();
        former.server.wait().expect("reaped");
        self.database.detach(host, disk);
        self.heard_after = self.heard_after.max(took);
    }

    /// The keeper that was lost is there again, for the next round.
    fn heals(&mut self) {
        let Some((keeper, trouble)) = self.lost.take() else { return };
        match trouble {
            Trouble::KeeperStopped => self.scene.keepers[keeper].signal("CONT"),
            Trouble::KeeperUnplugged => self.scene.on[keeper].plug(),
            _ => self.scene.keepers[keeper].again_on(Some(&self.scene.on[keeper])),
        }
        self.keeper_counts(keeper);
    }
}

/// The campaign: SEAWALL_PROCESSES_ROUNDS says how many, SEAWALL_PROCESSES_FIRST with which one it begins.
// Holds: admin/KEEPERS#what-it-survives, admin/KEEPERS#what-is-tested
#[test]
fn postgresql_loses_no_commit_whatever_is_killed_stopped_or_partitioned() {
    let Some(mut campaign) = Campaign::new() else { return };
    let rounds = rounds("SEAWALL_PROCESSES_ROUNDS");
    let mut told = Acknowledged::default();
    let first = std::env::var("SEAWALL_PROCESSES_FIRST").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    for round in first..first + rounds {
        // The first rounds are the same each time: a partition of a keeper and of the host, then a backend and the power.
        let draw = |of: u64, choices: u64| if round < 2 { round } else { lot(round, of, choices) };
        let trouble = Trouble::ALL[draw(1, Trouble::ALL.len() as u64) as usize];
        let loss = Loss::ALL[draw(2, Loss::ALL.len() as u64) as usize];
        println!("round {round}: {trouble:?}, then the host: {loss:?}");
        campaign.round(trouble, loss, |choices| lot(round, choices, choices));
        told = campaign.ledger.check(&campaign.database, campaign.host(), &campaign.serving.clients);
    }
    println!(
        "{rounds} takeovers, {} rows and {} transfers acknowledged, none lost; {} records came from the keepers alone; former \
         hosts' clients heard of it after at most {:.1?}",
        told.rows, told.transfers, campaign.in_log, campaign.heard_after
    );
}
