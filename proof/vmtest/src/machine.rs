//! One boot of a virtual machine: QEMU with a root disk, a disk for its data, and more.
//!
//! In: images and what the guest shall do. Out: a running process, the files its ports write to, and, when it
//! is over, what that did to its disks. The power is cut by SIGKILL.

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Child;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::boot::{Boot, Data};
use crate::guest::{self, Line};
use crate::monitor::Monitor;
use crate::{qemu, socket};
use fastrand::Rng;
use seawall_faulty_disk::cache::Cut;
use seawall_faulty_disk::nbd::Disk;

/// No step takes this long, emulated on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(400);

/// A boot that takes longer is stuck before it came to the disks. Emulators have such days.
const BOOT_PATIENCE: Duration = Duration::from_secs(90);
const ATTEMPTS: u32 = 3;

/// A running machine.
pub struct Machine {
    qemu: Child,
    /// In the order they were plugged in.
    disks: Vec<Disk>,
    base: PathBuf,
    door: UnixListener,
    orders: Option<UnixStream>,
}

impl Machine {
    /// Switches it on.
    ///
    /// # Errors
    /// If an image or QEMU is missing.
    pub fn start(boot: &Boot<'_>) -> Result<Self> {
        let base = boot.dir.join(&boot.name);
        let initrd = base.with_extension("initrd");
        let first = std::fs::read(boot.parts.initrd()).context("cannot read the first root file system")?;
        std::fs::write(&initrd, [&first[..], &boot.over].concat())?;
        let disk = match &boot.data {
            Data::Lossy { image, flush_time } => {
                Some(Disk::start(socket::listen("disk")?, image, *flush_time)?)
            }
            Data::File { .. } | Data::Served { .. } => None,
        };
        let (door, orders) = socket::listen("orders")?;
        let mut qemu = qemu::command(boot, &base, &initrd, disk.as_ref().map_or("", Disk::socket), &orders)?;
        let qemu = qemu.spawn().context("cannot start QEMU")?;
        Ok(Self { qemu, disks: disk.into_iter().collect(), base, door, orders: None })
    }

    /// Waits until its session says that this is up. One that is stuck is switched off, and `again` starts another.
    ///
    /// # Errors
    /// If none comes up.
    pub fn up(mut self, what: &str, mut again: impl FnMut() -> Result<Self>) -> Result<Self> {
        for _ in 1..ATTEMPTS {
            match self.wait(BOOT_PATIENCE, |machine| machine.has("up", what)) {
                Ok(()) => return self.forget_start(),
                Err(e) => eprintln!("a boot got stuck, trying again: {e:#}"),
            }
            drop(self);
            self = again()?;
        }
        self.wait(BOOT_PATIENCE, |machine| machine.has("up", what))?;
        self.forget_start()
    }

    /// It has read its first root file system, which was a file of its own.
    fn forget_start(self) -> Result<Self> {
        std::fs::remove_file(self.port("initrd"))?;
        Ok(self)
    }

    /// An error if a step has failed, or the machine has ended.
    ///
    /// # Errors
    /// With the end of the guest's console.
    pub fn must_run(&mut self) -> Result<()> {
        let ended = self.qemu.try_wait()?;
        if ended.is_some() || !self.failures()?.is_empty() {
            bail!("the machine ended or failed\n{}", self.last_words());
        }
        Ok(())
    }

    /// Plugs a disk into the slot that one of several has.
    ///
    /// # Errors
    /// What QEMU said.
    pub fn plug(&mut self, disk: Disk) -> Result<()> {
        let mut device = qemu::disk_device("volume");
        device["bus"] = qemu::SLOT.into();
        let mut monitor = Monitor::open(&mut self.qemu)?;
        monitor.ask("blockdev-add", &qemu::disk_node("volume", disk.socket()))?;
        monitor.ask("device_add", &device)?;
        self.disks.push(disk);
        Ok(())
    }

    /// Gives the session of one of several its orders: whole lines.
    ///
    /// # Errors
    /// If it is gone.
    pub fn order(&mut self, lines: &str) -> Result<()> {
        let orders = match &mut self.orders {
            Some(orders) => orders,
            none => none.insert(self.door.accept().context("cannot accept the connection for orders")?.0),
        };
        orders.write_all(lines.as_bytes()).context("cannot give orders to the guest")
    }

    /// True if the guest told this.
    ///
    /// # Errors
    /// As [`lines`](Self::lines).
    pub fn has(&self, word: &str, subject: &str) -> Result<bool> {
        Ok(self.lines()?.iter().any(|line| line.word == word && line.subject == subject))
    }

    /// True if a step failed.
    ///
    /// # Errors
    /// As [`lines`](Self::lines).
    pub fn has_failed(&self) -> Result<bool> {
        Ok(self.lines()?.iter().any(|line| line.word == "failed"))
    }

    /// What the guest has told so far.
    ///
    /// # Errors
    /// If the port's file cannot be read.
    pub fn lines(&self) -> Result<Vec<Line>> {
        guest::read(&self.port("results"))
    }

    /// A guest that takes its data's disk for one without a cache would not flush it.
    ///
    /// # Errors
    /// If it does.
    pub fn check_cache(&self) -> Result<()> {
        let is_told = self.lines()?.iter().any(|line| line.text() == "cache disk write back");
        is_told
            .then_some(())
            .context("the guest takes the disk for one without a cache: it would not flush it")
    }

    /// What the guest has acknowledged so far in this boot, as text.
    ///
    /// # Errors
    /// If the port's file cannot be read.
    pub fn ledger(&self, database: &str) -> Result<String> {
        guest::whole_lines(&self.port(database))
    }

    fn port(&self, name: &str) -> PathBuf {
        self.base.with_extension(name)
    }

    /// Waits until `until` holds; an end of the machine, or of `patience`, before that is an error.
    ///
    /// # Errors
    /// With the end of the guest's console.
    pub fn wait(&mut self, patience: Duration, mut until: impl FnMut(&Self) -> Result<bool>) -> Result<()> {
        let end = Instant::now() + patience;
        while !until(self)? {
            let why = match self.qemu.try_wait()? {
                Some(status) if until(self)? => return status.success().then_some(()).context("QEMU failed"),
                Some(status) => format!("the machine ended ({status})"),
                None if Instant::now() > end => format!("nothing happened in {} s", patience.as_secs()),
                None => {
                    std::thread::sleep(Duration::from_millis(20));
                    continue;
                }
            };
            bail!("{why}\n{}", self.last_words());
        }
        Ok(())
    }

    /// True if it has switched itself off.
    ///
    /// # Errors
    /// Of the kernel.
    pub fn is_off(&mut self) -> Result<bool> {
        Ok(self.qemu.try_wait()?.is_some())
    }

    /// Waits until it has switched itself off.
    ///
    /// # Errors
    /// If it does not.
    pub fn wait_off(&mut self, patience: Duration) -> Result<()> {
        let end = Instant::now() + patience;
        while !self.is_off()? {
            if Instant::now() > end {
                bail!("the machine is still on after {} s\n{}", patience.as_secs(), self.last_words());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// The power fails, now. `keep` of 100 sectors that were not flushed survive. What its disks lost together.
    ///
    /// # Errors
    /// If a disk cannot be written.
    pub fn cut(mut self, keep: u8, random: &mut Rng) -> Result<Cut> {
        self.stop();
        let disks = std::mem::take(&mut self.disks);
        disks.into_iter().try_fold(Cut::default(), |sum, disk| Ok(sum + disk.cut(keep, random)?))
    }

    /// Stops the machine as a power cut does. Its disks wait for [`cut`](Self::cut).
    pub fn stop(&mut self) {
        // After an orderly end this comes too late to be noticed, as it should.
        if let Ok(None) = self.qemu.try_wait() {
            self.disks.iter().for_each(Disk::power_off);
        }
        // It may have ended by itself; either way it is gone afterwards.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }

    /// What QEMU, the kernel or the session had to complain of.
    fn last_words(&self) -> String {
        let [qemu, console] =
            ["qemu", "console"].map(|name| std::fs::read(self.port(name)).unwrap_or_default());
        let (qemu, text) = (String::from_utf8_lossy(&qemu), String::from_utf8_lossy(&console));
        let failed = self.lines().unwrap_or_default();
        let told: Vec<_> = failed.iter().filter(|line| line.word == "failed").map(Line::text).collect();
        let last: Vec<_> = text.lines().rev().take(15).collect();
        let last: Vec<_> = last.into_iter().rev().collect();
        let (told, last) = (told.join("\n"), last.join("\n"));
        format!("{qemu}{told}\nconsole ({}):\n{last}", self.port("console").display())
    }

    /// What went wrong: steps that failed, an oops or a file system's complaint on the console.
    ///
    /// # Errors
    /// If the console cannot be read.
    pub fn failures(&self) -> Result<Vec<String>> {
        let bad = ["Oops", "BUG:", "EXT4-fs error", "XFS: Assertion", "Metadata corruption", "Kernel panic"];
        let lines = self.lines()?;
        let failed = lines.iter().filter(|line| line.word == "failed").map(Line::text);
        Ok(failed.chain(self.complaints(&bad)?).collect())
    }

    /// Lines of the console that have one of these words.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn complaints(&self, words: &[&str]) -> Result<Vec<String>> {
        let console = std::fs::read(self.port("console")).context("cannot read the console")?;
        let text = String::from_utf8_lossy(&console);
        let is_one = |line: &&str| words.iter().any(|word| line.contains(word));
        Ok(text.lines().filter(is_one).map(str::to_owned).collect())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.stop();
    }
}
