//! A machine from the outside: booted, listened to, and its power cut.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use nix::sys::wait::waitpid;
use nix::unistd::Pid;

use crate::boot::{Boot, Said};
use crate::outside::BASE;
use fastrand::Rng;
use seawall_faulty_disk::{Cut, Disk, Loss};

/// From the end of a machine's maker to the end of its last process: SIGKILL needs a moment to arrive. The
/// disk answers nothing meanwhile, so waiting longer changes nothing but the time.
const KILL_TIME: Duration = Duration::from_millis(40);

/// A machine that runs; its power is cut when this is dropped.
pub struct Machine {
    maker: Child,
    said: Receiver<String>,
}

impl Machine {
    /// Power on.
    ///
    /// # Errors
    /// If no process can be started.
    pub fn start(boot: &Boot) -> Result<Self> {
        let log = OpenOptions::new().create(true).append(true).open(Path::new(BASE).join("log/machine"))?;
        let mut maker = Command::new("/proc/self/exe")
            .arg("machine")
            .arg(serde_json::to_string(boot)?)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("cannot start a machine")?;
        let stdout = maker.stdout.take().context("the machine has no output")?;
        let (sender, said) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Machine { maker, said })
    }

    /// Waits for the next thing it says.
    ///
    /// # Errors
    /// If it says nothing in time, or ends.
    pub fn listen(&self, limit: Duration) -> Result<Said> {
        match self.said.recv_timeout(limit) {
            Ok(line) => serde_json::from_str(&line).with_context(|| format!("the machine said {line:?}")),
            Err(RecvTimeoutError::Timeout) => bail!("the machine said nothing for {} s", limit.as_secs()),
            Err(RecvTimeoutError::Disconnected) => bail!("the machine ended without a word"),
        }
    }

    /// Whether it said anything since; `None` if it did not.
    pub fn heard(&self) -> Option<Said> {
        serde_json::from_str(&self.said.try_recv().ok()?).ok()
    }

    /// The power fails: first the disk, then every process at once. Afterwards the disk can be used again.
    ///
    /// # Errors
    /// If something survives that.
    pub fn cut(mut self, disk: &Disk, loss: Loss, rng: &mut Rng) -> Result<Cut> {
        let first = self.first_process();
        let cut = disk.cut(loss, rng);
        self.maker.kill().context("cannot cut a machine's power")?;
        sleep(KILL_TIME);
        // The last process to go unmounts the disk, and does not go before the disk has answered.
        disk.off();
        self.maker.wait()?;
        if let Some(first) = first {
            // Ours now. It ends when every other process has: one that lingers would hold the log's medium.
            let _ = waitpid(first, None);
        }
        disk.reboot()?;
        Ok(cut)
    }

    /// The machine's first process, if it is there yet.
    fn first_process(&self) -> Option<Pid> {
        let maker = self.maker.id();
        let children = std::fs::read_to_string(format!("/proc/{maker}/task/{maker}/children")).ok()?;
        children.split_whitespace().next()?.parse().ok().map(Pid::from_raw)
    }

    /// Waits for its orderly shutdown.
    ///
    /// # Errors
    /// If it was not one.
    pub fn shut_down(mut self, disk: &Disk) -> Result<()> {
        let status = self.maker.wait()?;
        ensure!(status.success(), "the machine ended with {status}");
        disk.wait_closed()
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.maker.kill();
        let _ = self.maker.wait();
    }
}
