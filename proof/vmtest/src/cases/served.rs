//! `seawall disk` beside a guest, and what the guest asks of its host: to kill it, or to make the disk larger.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::guest::Line;
use crate::qemu::ends_with_us;
use crate::tool;

const PATIENCE: Duration = Duration::from_secs(60);
const LOG_SIZE: &str = "64M";

/// A process that serves the image.
pub struct Served {
    seawall: PathBuf,
    dir: PathBuf,
    is_read_only: bool,
    process: Child,
    /// How many of the guest's wishes were heard.
    obeyed: usize,
}

impl Served {
    /// Starts it, and waits until QEMU can connect.
    ///
    /// # Errors
    /// If it does not get there.
    pub fn start(seawall: &Path, dir: &Path, is_read_only: bool) -> Result<Self> {
        let process = spawn(seawall, dir, is_read_only)?;
        let (seawall, dir) = (seawall.to_owned(), dir.to_owned());
        let mut served = Self { seawall, dir, is_read_only, process, obeyed: 0 };
        served.listens()?;
        Ok(served)
    }

    /// Where QEMU connects.
    pub fn socket(&self) -> PathBuf {
        socket(&self.dir)
    }

    /// Does what the guest has asked for since, and sees that it runs.
    ///
    /// # Errors
    /// If it does not.
    pub fn obey(&mut self, lines: &[Line]) -> Result<()> {
        let asked: Vec<_> = lines.iter().filter(|line| line.word == "ask").skip(self.obeyed).collect();
        for line in asked {
            self.obeyed += 1;
            match line.subject.as_str() {
                "kill" => self.kill_and_start()?,
                "grow" => self.grow(&line.rest)?,
                _ => bail!("the guest asks for something unknown: {}", line.text()),
            }
        }
        let ended = self.process.try_wait()?;
        ensure!(ended.is_none(), "seawall disk ended: {}", self.said());
        Ok(())
    }

    fn kill_and_start(&mut self) -> Result<()> {
        self.process.kill().context("cannot kill seawall disk")?;
        self.process.wait()?;
        self.process = spawn(&self.seawall, &self.dir, self.is_read_only)?;
        Ok(())
    }

    fn grow(&self, bytes: &str) -> Result<()> {
        let mut resize = Command::new(&self.seawall);
        resize.arg("disk").arg(image(&self.dir)).arg("--socket").arg(self.socket()).args(["--resize", bytes]);
        tool::run(&mut resize).map(drop)
    }

    fn listens(&mut self) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        while !self.socket().exists() {
            let ended = self.process.try_wait()?;
            ensure!(
                ended.is_none() && Instant::now() < end,
                "seawall disk did not get ready: {}",
                self.said()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Ends it in order: everything is in the image then, and its daemon ends as well.
    ///
    /// # Errors
    /// If it does not.
    pub fn end(mut self) -> Result<()> {
        self.terminate();
        let end = Instant::now() + PATIENCE;
        loop {
            match self.process.try_wait()? {
                Some(status) if status.success() => return Ok(()),
                Some(status) => bail!("seawall disk ended with {status}: {}", self.said()),
                None => ensure!(Instant::now() < end, "seawall disk does not end: {}", self.said()),
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn terminate(&self) {
        // SAFETY: a system call on plain numbers; the process is our child and not waited for yet.
        unsafe { libc::kill(self.process.id() as i32, libc::SIGTERM) };
    }

    fn said(&self) -> String {
        std::fs::read_to_string(log(&self.dir)).unwrap_or_default()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            self.terminate();
            let _ = self.process.wait();
        }
    }
}

fn image(dir: &Path) -> PathBuf {
    dir.join("images/disk.img")
}

fn socket(dir: &Path) -> PathBuf {
    dir.join("disk.socket")
}

fn log(dir: &Path) -> PathBuf {
    dir.join("seawall-disk.log")
}

fn spawn(seawall: &Path, dir: &Path, is_read_only: bool) -> Result<Child> {
    let said = std::fs::File::options().create(true).append(true).open(log(dir))?;
    let mut disk = Command::new(seawall);
    disk.arg("disk").arg(image(dir)).arg("--socket").arg(socket(dir)).args(["--quiet", "--queues", "2"]);
    match is_read_only {
        true => disk.arg("--read-only"),
        false => {
            disk.args(["--no-boot", "--emulated", "--size", LOG_SIZE, "--pool"]).arg(dir.join("log.pool"))
        }
    };
    disk.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
    ends_with_us(&mut disk, libc::SIGTERM);
    disk.spawn().with_context(|| format!("cannot start {}", seawall.display()))
}
