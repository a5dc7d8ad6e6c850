//! The guest's machine: a root disk, a disk for data, and two ports. Its power is cut by SIGKILL: what its kernel had not
//! written to the disk is lost.

use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::cpio::Archive;
use crate::guest::{self, Line};
use crate::machine::Parts;
use crate::tool;

const INIT: &[u8] = include_bytes!("../../guest/ktls-init");
const SESSION: &[u8] = include_bytes!("../../guest/ktls");
/// Bytes of the data disk.
const DISK_BYTES: u64 = 512 << 20;

/// One boot.
pub struct Boot<'a> {
    /// What all boots share.
    pub parts: &'a Parts,
    /// Directory for its files.
    pub dir: &'a Path,
    /// What the session is to do.
    pub phase: &'a str,
    /// What was acknowledged before.
    pub ledger: &'a str,
    /// Programs with tests.
    pub tests: &'a [PathBuf],
}

/// A running machine.
pub struct Machine {
    qemu: Child,
    base: PathBuf,
}

/// An empty data disk.
///
/// # Errors
/// If it cannot be written.
pub fn disk(dir: &Path) -> Result<()> {
    let path = dir.join("disk.img");
    let file = File::create(&path).with_context(|| path.display().to_string())?;
    Ok(file.set_len(DISK_BYTES)?)
}

impl Machine {
    /// Switches it on.
    ///
    /// # Errors
    /// If an image, a program or QEMU is missing.
    pub fn start(boot: &Boot<'_>) -> Result<Self> {
        let base = boot.dir.join(boot.phase);
        for port in ["results", "ledger"] {
            // A boot that was stuck may have written there.
            let _ = std::fs::remove_file(base.with_extension(port));
        }
        let initrd = base.with_extension("initrd");
        std::fs::write(&initrd, [&boot.parts.initrd[..], &archive(boot)?].concat())?;
        let qemu = qemu(boot, &base, &initrd)?.spawn().context("starting QEMU")?;
        Ok(Self { qemu, base })
    }

    /// What the guest has told so far.
    ///
    /// # Errors
    /// If the port's file cannot be read.
    pub fn lines(&self) -> Result<Vec<Line>> {
        guest::read(&self.base.with_extension("results"))
    }

    /// What the load has acknowledged in this boot.
    ///
    /// # Errors
    /// If the port's file cannot be read.
    pub fn ledger(&self) -> Result<String> {
        guest::whole_lines(&self.base.with_extension("ledger"))
    }

    /// Waits until `until` holds; a step that failed, an end of the machine or of `patience` before that is an error.
    ///
    /// # Errors
    /// With the end of the guest's console.
    pub fn wait(&mut self, patience: Duration, until: impl Fn(&[Line]) -> bool) -> Result<()> {
        let end = Instant::now() + patience;
        loop {
            let lines = self.lines()?;
            if let Some(failed) = lines.iter().find(|line| line.word == "failed") {
                bail!("{}\n{}", failed.text(), self.last_words());
            }
            if until(&lines) {
                return Ok(());
            }
            if let Some(status) = self.qemu.try_wait()? {
                bail!("the machine ended ({status})\n{}", self.last_words());
            }
            if Instant::now() > end {
                bail!("nothing happened in {} s\n{}", patience.as_secs(), self.last_words());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// The power fails, now.
    pub fn cut(&mut self) {
        // It may have ended by itself; either way it is gone afterwards.
        let _ = self.qemu.kill();
        let _ = self.qemu.wait();
    }

    fn console(&self) -> String {
        let console = std::fs::read(self.base.with_extension("console")).unwrap_or_default();
        String::from_utf8_lossy(&console).into_owned()
    }

    fn last_words(&self) -> String {
        let (text, lines) = (self.console(), self.lines().unwrap_or_default());
        let last: Vec<_> = text.lines().rev().take(15).collect();
        let last: Vec<_> = last.into_iter().rev().collect();
        let step = lines.last().map(Line::text).unwrap_or_default();
        format!("last told: {step}\nconsole ({}):\n{}", self.base.display(), last.join("\n"))
    }

    /// What the kernel complained of.
    ///
    /// # Errors
    /// None yet.
    pub fn complaints(&self) -> Result<Vec<String>> {
        let bad = ["Oops", "BUG:", "WARNING:", "EXT4-fs error", "Kernel panic"];
        let is_bad = |line: &&str| bad.iter().any(|word| line.contains(word));
        Ok(self.console().lines().filter(is_bad).map(str::to_owned).collect())
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        self.cut();
    }
}

/// What is laid over the first root file system: another init, the session, and what goes with it.
fn archive(boot: &Boot<'_>) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    archive.file("init", INIT);
    archive.directory("ktls");
    archive.directory("ktls/tests");
    archive.file("ktls/session", SESSION);
    archive.file("ktls/ledger", boot.ledger.as_bytes());
    for program in boot.tests {
        let name = program.file_name().with_context(|| format!("{} has no name", program.display()))?;
        let content = std::fs::read(program).with_context(|| program.display().to_string())?;
        archive.file(&format!("ktls/tests/{}", name.to_string_lossy()), &content);
    }
    Ok(archive.finish())
}

fn qemu(boot: &Boot<'_>, base: &Path, initrd: &Path) -> Result<Command> {
    let mut qemu = Command::new(tool::need("qemu-system-x86_64", "qemu-system-x86")?);
    let port = |name: &str| base.with_extension(name).display().to_string();
    // As for the other machine: see there.
    qemu.args([
        "-machine",
        "q35",
        "-accel",
        "tcg,thread=multi",
        "-cpu",
        "max,-cx16",
        "-smp",
        "2",
        "-m",
        "1G",
    ]);
    qemu.args(["-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]);
    qemu.arg("-kernel").arg(&boot.parts.vmlinuz).arg("-initrd").arg(initrd);
    let quiet = "console=ttyS0 panic=-1 quiet no_timer_check clocksource=acpi_pm";
    qemu.args(["-append", &format!("{quiet} seawall.phase={}", boot.phase)]);
    qemu.args(["-serial", &format!("file:{}", port("console"))]);
    let (root, data) = (boot.parts.rootfs.display(), boot.dir.join("disk.img"));
    qemu.args(["-drive", &format!("if=none,id=root,format=raw,readonly=on,file={root}")]);
    qemu.args(["-device", "virtio-blk-pci,drive=root,addr=0x4"]);
    qemu.args(["-drive", &format!("if=none,id=data,format=raw,file={}", data.display())]);
    qemu.args(["-device", "virtio-blk-pci,drive=data,addr=0x5", "-device", "virtio-serial-pci,addr=0x6"]);
    for name in ["results", "ledger"] {
        qemu.args(["-chardev", &format!("file,id={name},path={}", port(name))]);
        qemu.args(["-device", &format!("virtserialport,chardev={name},name={name}")]);
    }
    qemu.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(base.with_extension("qemu"))?);
    // SAFETY: the closure makes one system call on plain numbers, which is allowed between fork and exec.
    unsafe { qemu.pre_exec(ends_with_us) };
    Ok(qemu)
}

/// QEMU ends when we do.
fn ends_with_us() -> std::io::Result<()> {
    // SAFETY: a system call on plain numbers.
    let failed = unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) < 0 };
    if failed { Err(std::io::Error::last_os_error()) } else { Ok(()) }
}
