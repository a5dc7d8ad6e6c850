//! The kernel encrypts what goes to keepers: a guest whose kernel has TLS, with three keepers on its loopback.
//!
//! ```text
//! boot: commits ─ the daemon is stopped ─ connections made anew ─ a keeper lost and back ─ power cut
//! boot: the log comes back from the keepers ─ every acknowledged commit is there
//! ```
//!
//! What must be seen of it: `seawall status` says that the kernel encrypts, the kernel's own counters say so, commits go
//! on while the daemon is stopped, and none is lost.

mod seen;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::boot::{Boot, Data, image};
use crate::cpio::Archive;
use crate::machine::Machine;
use crate::parts::Parts;
use crate::{report, tool};
use fastrand::Rng;
use seen::Seen;

const INIT: &[u8] = include_bytes!("../../guest/ktls-init");
const SESSION: &[u8] = include_bytes!("../../guest/ktls");
/// No step takes this long, emulated on a busy machine.
const PATIENCE: Duration = Duration::from_secs(500);
/// Bytes of the disk that keepers, log and database are on.
const DISK_BYTES: u64 = 512 << 20;
/// What its kernel had written to the disk is there after the power cut, flushed or not.
const ALL: u8 = 100;
/// The load's, as a port.
const LEDGER: &str = "ledger";
/// What the kernel is not to say.
const COMPLAINTS: [&str; 5] = ["Oops", "BUG:", "WARNING:", "EXT4-fs error", "Kernel panic"];

/// Runs it. True if everything was seen that must be. `tests`: programs that are run in the guest before.
///
/// # Errors
/// If it cannot be carried out.
pub fn run(parts: &Parts, tests: &[PathBuf], out: &Path, random: &mut Rng) -> Result<bool> {
    let dir = out.canonicalize()?.join("vm").join("ktls");
    tool::empty_directory(&dir)?;
    image(&dir.join("disk.img"), DISK_BYTES)?;
    let mut first = session(parts, &dir, "run", archive("", tests)?)?;
    let (lines, complaints) = (first.lines()?, first.complaints(&COMPLAINTS)?);
    first.stop();
    let ledger = first.ledger(LEDGER)?;
    first.cut(ALL, random)?;
    let second = session(parts, &dir, "after", archive(&ledger, &[])?)?;
    let complaints = [complaints, second.complaints(&COMPLAINTS)?].concat();
    let seen = Seen::of(&lines, &second.lines()?, complaints)?;
    report::give(&seen, &out.join("ktls.json"))
}

/// A machine whose session has done all of this phase.
fn session(parts: &Parts, dir: &Path, phase: &'static str, over: Vec<u8>) -> Result<Machine> {
    let mut boots = 0;
    let mut switch_on = || {
        boots += 1;
        let disk = Data::Lossy { image: dir.join("disk.img"), flush_time: Duration::ZERO };
        Machine::start(&Boot {
            options: vec![("phase", phase)],
            ports: &[LEDGER],
            over: over.clone(),
            ..Boot::of(parts, dir, format!("{phase}-{boots}"), disk)
        })
    };
    let mut machine = switch_on()?.up("session", switch_on)?;
    machine.wait(PATIENCE, |machine| Ok(machine.has_failed()? || machine.has("done", phase)?))?;
    ensure!(!machine.has_failed()?, "{}", machine.failures()?.join("\n"));
    Ok(machine)
}

/// Another init, the session, and what goes with it.
fn archive(ledger: &str, tests: &[PathBuf]) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    archive.file("init", INIT);
    archive.directory("ktls");
    archive.directory("ktls/tests");
    archive.file("ktls/session", SESSION);
    archive.file("ktls/ledger", ledger.as_bytes());
    for program in tests {
        let name = program.file_name().with_context(|| format!("{} has no name", program.display()))?;
        let content = std::fs::read(program).with_context(|| program.display().to_string())?;
        archive.file(&format!("ktls/tests/{}", name.to_string_lossy()), &content);
    }
    Ok(archive.finish())
}
