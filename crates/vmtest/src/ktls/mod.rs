//! The kernel encrypts what goes to keepers: a guest whose kernel has TLS, with three keepers on its loopback.
//!
//! ```text
//! boot: commits ─ the daemon stands still ─ connections made anew ─ a keeper lost and back ─ power cut
//! boot: the log comes back from the keepers ─ every acknowledged commit is there
//! ```
//!
//! What must be seen of it: `seawall status` says that the kernel encrypts, the kernel's own counters say so, commits go
//! on while the daemon stands still, and none is lost.

mod machine;
mod seen;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use crate::machine::Parts;
use crate::tool;
use machine::{Boot, Machine};
use seen::Seen;

/// Modules that the kernel needs for it: TLS, and its ciphers.
pub const MODULES: [&str; 6] = ["tls", "gcm", "ctr", "ghash_generic", "aesni_intel", "chacha20poly1305"];
/// No step takes this long, emulated on a busy machine.
const PATIENCE: Duration = Duration::from_secs(500);
/// A boot that takes longer is stuck before it came to anything.
const BOOT_PATIENCE: Duration = Duration::from_secs(120);

/// Runs it. True if everything was seen that must be. `tests`: programs that are run in the guest before.
///
/// # Errors
/// If it cannot be carried out.
pub fn run(parts: &Parts, tests: &[PathBuf], out: &Path) -> Result<bool> {
    let dir = out.canonicalize()?.join("vm").join("ktls");
    let _ = std::fs::remove_dir_all(&dir);
    tool::directory(&dir)?;
    machine::disk(&dir)?;
    let mut first = boot(&Boot { parts, dir: &dir, phase: "run", ledger: "", tests })?;
    first.wait(PATIENCE, |lines| lines.iter().any(|line| line.word == "done"))?;
    let (lines, complaints) = (first.lines()?, first.complaints()?);
    first.cut();
    let ledger = first.ledger()?;
    let mut second = boot(&Boot { parts, dir: &dir, phase: "after", ledger: &ledger, tests: &[] })?;
    second.wait(PATIENCE, |lines| lines.iter().any(|line| line.word == "done"))?;
    let complaints = [complaints, second.complaints()?].concat();
    let seen = Seen::of(&lines, &second.lines()?, complaints)?;
    let json = out.join("ktls.json");
    std::fs::write(&json, serde_json::to_string_pretty(&seen)?).context("writing the result")?;
    seen.print();
    println!("{}", json.display());
    Ok(seen.missing().is_empty())
}

/// A machine whose session runs. Emulators have days on which a boot is stuck; then it is tried again.
fn boot(boot: &Boot<'_>) -> Result<Machine> {
    let mut machine = Machine::start(boot)?;
    let is_up = |lines: &[crate::guest::Line]| lines.iter().any(|line| line.word == "up");
    if let Err(error) = machine.wait(BOOT_PATIENCE, is_up) {
        println!("a boot was stuck and is tried again: {error:#}");
        machine.cut();
        machine = Machine::start(boot)?;
        machine.wait(BOOT_PATIENCE, is_up)?;
    }
    Ok(machine)
}
