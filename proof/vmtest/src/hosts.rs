//! A chain on three machines, whose memory has the log: the one with the database is cut, and the next one takes
//! the log over, with the volume.
//!
//! In: a [`Setup`], a [`Plan`]. Out: a [`Chain`]. On each machine is a keeper, and the database goes round:
//!
//! ```text
//! 1: prepare, load, CUT
//! 2:                    takeover, check, load, CUT
//! 1:                    boots again, its keeper is brought up to date
//! 3:                                               takeover, …
//! ```
//!
//! The one that is cut loses its memory, a keeper's copy in it too, what its disk had not flushed, and what the
//! volume had not. It is cut when all keepers count: two of them confirm a commit, so one may be lost with it. Every
//! other time the network fails first: then its own keeper is the only one to hear of commits, which is too few.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::boot::{Boot, DISK_BYTES, Data, image, ledgers};
use crate::chain::{Chain, Moment, Plan, Round, Seen, Setup};
use crate::machine::{Machine, PATIENCE};
use crate::network::{Network, PORTS};
use crate::report;
use crate::socket;
use fastrand::Rng;
use seawall_faulty_disk::nbd::Disk;

/// Its ledger is the only one.
const DATABASE: &str = "postgres";
/// Bytes of a host's own disk: what a keeper remembers.
const OWN_BYTES: u64 = 256 << 20;
/// How long a flush takes, of a host's own disk and of the volume: what is acknowledged is in no hurry to be there.
const OWN_FLUSH: Duration = Duration::from_millis(10);
const VOLUME_FLUSH: Duration = Duration::from_millis(100);

/// The longest time from the network's failure to the power's.
const APART_MS: u64 = 3000;

/// Runs a chain.
///
/// # Errors
/// If the test cannot be carried out.
pub fn run(setup: Setup, plan: &Plan<'_>, random: &mut Rng) -> Result<Chain> {
    let mut hosts = Hosts::new(setup, plan).context("cannot switch the hosts on")?;
    let rounds = plan.rounds(&setup, |number| hosts.round(number, random))?;
    let (finish, finished) = hosts.finish(random).context("the last takeover failed")?;
    report::say_finish(&setup, &finish, finished);
    Ok(Chain { setup, rounds, finish, finished })
}

/// The machines.
struct Hosts<'a> {
    setup: Setup,
    plan: &'a Plan<'a>,
    network: Network,
    /// By their ports; those that are on.
    machines: [Option<Machine>; PORTS],
    /// The one with the volume, or the next one to get it.
    active: usize,
    /// What was acknowledged on the machines that were cut.
    ledger: String,
    /// When the last one was cut.
    cut: Option<Instant>,
    boots: u64,
}

impl<'a> Hosts<'a> {
    /// New ones, whose keepers are up.
    fn new(setup: Setup, plan: &'a Plan<'a>) -> Result<Self> {
        let (network, machines) = (Network::default(), Default::default());
        let mut hosts =
            Self { setup, plan, network, machines, active: 0, ledger: String::new(), cut: None, boots: 0 };
        image(&hosts.volume(), DISK_BYTES)?;
        for host in 0..PORTS {
            image(&hosts.own_disk(host), OWN_BYTES)?;
            hosts.machines[host] = Some(hosts.switch_on(host, "prepare")?);
        }
        for host in 0..PORTS {
            hosts.await_up(host, "prepare")?;
        }
        Ok(hosts)
    }

    /// The database on one of them, under load, and that one's end.
    fn round(&mut self, number: u64, random: &mut Rng) -> Result<Round> {
        let begin = Instant::now();
        let keep = random.u8(..5) * 20;
        let after_ms = random.u64(..self.plan.window.as_millis() as u64 + 1);
        let apart_ms = random.u64(..2) * (1 + random.u64(..APART_MS));
        self.move_volume(if number == 0 { "prepare" } else { "takeover" })?;
        let takeover_ms = self.await_start()?;
        self.bring_back()?;
        let machine = self.active()?;
        machine.wait(PATIENCE, |machine| Ok(machine.has_failed()? || may_be_cut(machine)?))?;
        std::thread::sleep(Duration::from_millis(after_ms));
        if apart_ms > 0 {
            self.network.unplug(self.active);
            std::thread::sleep(Duration::from_millis(apart_ms));
        }
        let boot = self.seen(takeover_ms)?;
        self.active()?.stop();
        self.cut = Some(Instant::now());
        let machine = self.machines[self.active].take().context("the machine is not there")?;
        let ledger = machine.ledger(DATABASE)?;
        let disk = machine.cut(keep, random)?;
        self.ledger += &ledger;
        self.active = (self.active + 1) % PORTS;
        let acknowledged = [ledger.lines().count() as u64, 0];
        let seconds = begin.elapsed().as_secs_f64();
        Ok(Round { moment: Moment::Load, after_ms, apart_ms, keep, disk, acknowledged, boot, seconds })
    }

    /// The last takeover: the database is stopped in order, and what is left is looked at. The others are cut.
    fn finish(&mut self, random: &mut Rng) -> Result<(Seen, bool)> {
        self.move_volume("finish")?;
        let takeover_ms = self.await_start()?;
        let machine = self.active()?;
        machine.wait_off(PATIENCE)?;
        let finished = machine.has("done", "finish")?;
        let seen = self.seen(takeover_ms)?;
        for machine in self.machines.iter_mut().filter_map(Option::take) {
            machine.cut(0, random)?;
        }
        Ok((seen, finished))
    }

    /// What the machine with the volume tells, and what went wrong on the others.
    fn seen(&self, takeover_ms: Option<u64>) -> Result<Seen> {
        let active = self.machines[self.active].as_ref().context("the active machine is not there")?;
        let mut seen = Seen { takeover_ms, ..Seen::of(active)? };
        for (_, other) in self.machines.iter().enumerate().filter(|(host, _)| *host != self.active) {
            seen.failures.extend(other.as_ref().map_or(Ok(Vec::new()), Machine::failures)?);
        }
        Ok(seen)
    }

    /// Plugs the volume into the machine whose turn it is, and says what is to be done with it.
    fn move_volume(&mut self, order: &str) -> Result<()> {
        let volume = Disk::start(socket::listen("disk")?, &self.volume(), VOLUME_FLUSH)?;
        let ledger: String = self.ledger.lines().map(|line| format!("ledger {line}\n")).collect();
        let machine = self.active()?;
        machine.plug(volume)?;
        machine.order(&format!("{ledger}{order}\n"))
    }

    /// Waits until the database has started: how long after the cut, if that was by a takeover.
    fn await_start(&mut self) -> Result<Option<u64>> {
        let since = self.cut;
        let machine = self.active()?;
        machine.wait(PATIENCE, |machine| Ok(machine.has_failed()? || machine.has("started", DATABASE)?))?;
        if machine.has_failed()? {
            return Ok(None);
        }
        machine.check_cache()?;
        let has_taken_over = machine.has("takeover", DATABASE)?;
        let since = since.filter(|_| has_taken_over);
        Ok(since.map(|cut| cut.elapsed().as_millis() as u64))
    }

    /// The machine that was cut is switched on again.
    fn bring_back(&mut self) -> Result<()> {
        let lost = (0..PORTS).find(|host| self.machines[*host].is_none());
        lost.map_or(Ok(()), |host| {
            self.machines[host] = Some(self.switch_on(host, "run")?);
            self.await_up(host, "run")
        })
    }

    fn switch_on(&mut self, host: usize, phase: &str) -> Result<Machine> {
        self.boots += 1;
        let number = (host + 1).to_string();
        let Setup { side, log, data, cpu, .. } = self.setup;
        let how = [("phase", phase), ("side", side.name()), ("log", log.name())];
        let disk = Data::Lossy { image: self.own_disk(host), flush_time: OWN_FLUSH };
        Machine::start(&Boot {
            cpu,
            options: [&how[..], &[("data", data), ("host", &number)]].concat(),
            ports: &[DATABASE],
            over: ledgers([]),
            network: Some((host, self.network.plug(host)?)),
            ..Boot::of(self.plan.parts, &self.plan.dir, format!("{:03}-host-{number}", self.boots), disk)
        })
    }

    fn await_up(&mut self, host: usize, phase: &str) -> Result<()> {
        let machine = self.machines[host].take().context("the machine is not there")?;
        self.machines[host] = Some(machine.up("keeper", || self.switch_on(host, phase))?);
        Ok(())
    }

    fn active(&mut self) -> Result<&mut Machine> {
        self.machines[self.active].as_mut().context("the active machine is not there")
    }

    fn volume(&self) -> PathBuf {
        self.plan.dir.join("volume.img")
    }

    fn own_disk(&self, host: usize) -> PathBuf {
        self.plan.dir.join(format!("host-{}.img", host + 1))
    }
}

/// It has acknowledged something, and the keepers that were lost before have all of it.
fn may_be_cut(machine: &Machine) -> Result<bool> {
    Ok(!machine.ledger(DATABASE)?.is_empty() && machine.has("kept", "everywhere")?)
}
