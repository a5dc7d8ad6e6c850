//! One boot of the virtual machine: QEMU with a persistent memory, a root disk and a data disk.
//!
//! In: images and what the guest shall do. Out: a running process, the files its ports write to, and, when it
//! is over, what that did to the data disk. The power is cut by SIGKILL. QEMU never outlives this process.

use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cpio::Archive;
use crate::disk::{Cut, Disk};
use crate::guest::{self, Line};
use crate::random::Random;
use crate::tool;

/// Bytes of the persistent memory. Without its label area (2 MiB) a multiple of 16 MiB, or no namespace can
/// be made.
pub const PMEM_BYTES: u64 = 514 << 20;
/// Bytes of the data disk.
pub const DISK_BYTES: u64 = 768 << 20;

/// The data disk's sectors, as [`crate::disk`] keeps them.
const SECTORS: &str = "logical_block_size=4096,physical_block_size=4096";

/// What all boots share.
pub struct Parts {
    /// The kernel.
    pub vmlinuz: PathBuf,
    /// The first root file system.
    pub initrd: Vec<u8>,
    /// Image of the root file system.
    pub rootfs: PathBuf,
}

/// What one chain of boots keeps, and one boot's name.
pub struct Boot<'a> {
    /// The parts.
    pub parts: &'a Parts,
    /// Directory of the chain: `pmem.img`, `disk.img`, and the files of each boot.
    pub dir: &'a Path,
    /// The processor, as QEMU calls it.
    pub cpu: &'a str,
    /// Name of this boot's files.
    pub name: String,
    /// Options for the guest's session.
    pub options: Vec<(&'static str, String)>,
    /// Ledgers of earlier boots, for the guest to compare with.
    pub ledgers: [(&'static str, String); 2],
    /// How long a flush of the data disk takes.
    pub flush_time: Duration,
}

/// A running machine.
pub struct Machine {
    qemu: Child,
    disk: Option<Disk>,
    base: PathBuf,
}

impl Machine {
    /// Switches it on.
    ///
    /// # Errors
    /// If an image or QEMU is missing.
    pub fn start(boot: &Boot<'_>) -> Result<Self> {
        let base = boot.dir.join(&boot.name);
        let initrd = base.with_extension("initrd");
        std::fs::write(&initrd, [&boot.parts.initrd[..], &archive(boot)].concat())?;
        let (disk, socket) = Disk::start(&boot.dir.join("disk.img"), boot.flush_time)?;
        let qemu = qemu(boot, &base, &initrd, socket)?.spawn().context("starting QEMU")?;
        Ok(Self { qemu, disk: Some(disk), base })
    }

    /// What the guest has told so far.
    ///
    /// # Errors
    /// If the port's file cannot be read.
    pub fn lines(&self) -> Result<Vec<Line>> {
        guest::read(&self.port("results"))
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

    /// Waits until it has switched itself off.
    ///
    /// # Errors
    /// If it does not.
    pub fn wait_off(&mut self, patience: Duration) -> Result<()> {
        let end = Instant::now() + patience;
        while self.qemu.try_wait()?.is_none() {
            if Instant::now() > end {
                bail!("the machine is still on after {} s\n{}", patience.as_secs(), self.last_words());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// The power fails, now. `keep` of 100 sectors that were not flushed survive.
    ///
    /// # Errors
    /// If the disk cannot be written.
    pub fn cut(mut self, keep: u64, random: &mut Random) -> Result<Cut> {
        self.stop();
        let disk = self.disk.take().context("the disk")?;
        disk.cut(keep, random)
    }

    /// Stops the machine as a power cut does. The disk waits for [`cut`](Self::cut).
    pub fn stop(&mut self) {
        // After an orderly end this comes too late to be noticed, as it should.
        if let (Some(disk), Ok(None)) = (&self.disk, self.qemu.try_wait()) {
            disk.power_off();
        }
        // It may have ended by itself; either way it is gone afterwards.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }

    /// What the kernel or the session had to complain of.
    fn last_words(&self) -> String {
        let console = std::fs::read(self.port("console")).unwrap_or_default();
        let text = String::from_utf8_lossy(&console);
        let failed = self.lines().unwrap_or_default();
        let told: Vec<_> = failed.iter().filter(|line| line.word == "failed").map(Line::text).collect();
        let last: Vec<_> = text.lines().rev().take(15).collect();
        let last: Vec<_> = last.into_iter().rev().collect();
        format!("{}\nconsole ({}):\n{}", told.join("\n"), self.port("console").display(), last.join("\n"))
    }

    /// An oops or a file system's complaint on the console.
    ///
    /// # Errors
    /// If the console cannot be read.
    pub fn complaints(&self) -> Result<Vec<String>> {
        let console = std::fs::read(self.port("console")).context("the console")?;
        let text = String::from_utf8_lossy(&console).into_owned();
        let bad = ["Oops", "BUG:", "EXT4-fs error", "XFS: Assertion", "Metadata corruption", "Kernel panic"];
        Ok(text
            .lines()
            .filter(|line| bad.iter().any(|word| line.contains(word)))
            .map(str::to_owned)
            .collect())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.stop();
    }
}

fn archive(boot: &Boot<'_>) -> Vec<u8> {
    let mut archive = Archive::default();
    archive.directory("ledger");
    for (database, text) in &boot.ledgers {
        archive.file(&format!("ledger/{database}"), text.as_bytes());
    }
    archive.finish()
}

fn qemu(boot: &Boot<'_>, base: &Path, initrd: &Path, disk: UnixStream) -> Result<Command> {
    let mut qemu = Command::new(tool::need("qemu-system-x86_64", "qemu-system-x86")?);
    let options: Vec<_> =
        boot.options.iter().map(|(name, value)| format!("seawall.{name}={value}")).collect();
    let port = |name: &str| base.with_extension(name).display().to_string();
    // cx16 off: this QEMU's page tables and later kernels disagree with it on.
    let cpu = format!("{},-cx16", boot.cpu);
    qemu.args(["-machine", "q35,nvdimm=on", "-accel", "tcg,thread=multi", "-cpu", &cpu, "-smp", "2"]);
    qemu.args([
        "-m",
        "1G,slots=2,maxmem=4G",
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-no-reboot",
    ]);
    qemu.arg("-kernel").arg(&boot.parts.vmlinuz).arg("-initrd").arg(initrd);
    // A busy host spoils the guest's measurement of its TSC, and its clock then runs ahead: the next boot comes
    // before what the last one wrote, which recovery refuses (assumption 6 of the failure model).
    let clock = "clocksource=acpi_pm";
    let kernel = format!("console=ttyS0 panic=-1 quiet no_timer_check {clock} {}", options.join(" "));
    qemu.args(["-append", &kernel]);
    qemu.args(["-serial", &format!("file:{}", port("console"))]);
    let pmem = boot.dir.join("pmem.img");
    qemu.args([
        "-object",
        &format!(
            "memory-backend-file,id=pm,share=on,mem-path={},size={PMEM_BYTES},align=2M,pmem=off",
            pmem.display()
        ),
    ]);
    qemu.args(["-device", "nvdimm,id=nv,memdev=pm,label-size=2M"]);
    let root = boot.parts.rootfs.display();
    qemu.args(["-drive", &format!("if=none,id=root,format=raw,readonly=on,file={root}")]);
    qemu.args(["-device", "virtio-blk-pci,drive=root,addr=0x4"]);
    let disk = OwnedFd::from(disk);
    qemu.args([
        "-blockdev",
        &format!("driver=nbd,node-name=data,server.type=fd,server.str={}", disk.as_raw_fd()),
    ]);
    qemu.args([
        "-device",
        &format!("virtio-blk-pci,drive=data,addr=0x5,{SECTORS}"),
        "-device",
        "virtio-serial-pci,addr=0x6",
    ]);
    for name in ["results", "postgres", "sqlite"] {
        qemu.args(["-chardev", &format!("file,id={name},path={}", port(name))]);
        qemu.args(["-device", &format!("virtserialport,chardev={name},name={name}")]);
    }
    qemu.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(base.with_extension("qemu"))?);
    inherit(&mut qemu, disk);
    Ok(qemu)
}

/// QEMU gets the descriptor, and ends when we do.
fn inherit(qemu: &mut Command, disk: OwnedFd) {
    let enter = move || {
        // SAFETY: both are system calls on plain numbers, allowed between fork and exec; `disk` is open, for
        // this closure owns it.
        let failed = unsafe {
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0
                || libc::fcntl(disk.as_raw_fd(), libc::F_SETFD, 0) < 0
        };
        if failed { Err(std::io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: the closure makes system calls only and touches no memory that other threads may hold locked.
    unsafe { qemu.pre_exec(enter) };
}
