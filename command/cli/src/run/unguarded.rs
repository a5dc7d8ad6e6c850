//! A directory of any program's (preset `any`) has no guard that the program meets: nobody knows what it reads first. Then
//! the log is to be recovered before the program can start, or whoever starts it says that they see to that.

use std::path::Path;

use anyhow::{Result, bail};
use seawall_daemon::{AddRoot, boot};
use seawall_media::Medium;
use seawall_wire::shm::Preset;

use crate::attach::machine::{Machine, UNIT_DIRS};
use crate::attach::unit::Unit;
use crate::pool;

const UNIT: &str = "seawall-recover.service";

/// Refuses a directory without a guard, unless the log is recovered when the machine starts or that is `accepted`.
///
/// # Errors
/// If neither is so: what to do.
pub fn check(pool: &Path, roots: &[AddRoot], boots: bool, accepted: bool) -> Result<()> {
    let Some(root) = roots.iter().find(|root| root.preset == Preset::Any.name()) else { return Ok(()) };
    let (medium, _) = pool::medium(pool)?;
    // Keepers are asked when the network is up, which is long after the start.
    let is_recovered = boots && medium != Medium::Replicated && recovers_at_boot(&Machine::new(None));
    if accepted || is_recovered || medium == Medium::Emulated {
        return Ok(());
    }
    bail!(
        "after a power cut nothing would keep a program from reading old files in {}: Seawall does not know \
         which file it reads first. Install the package, whose {UNIT} recovers logs when this machine \
         starts, before any service; or say --unguarded, and after a crash start nothing there before \
         `seawall recover --pool {}`",
        root.path.display(),
        pool.display()
    )
}

/// True if this machine recovers the registered pools before it starts anything.
fn recovers_at_boot(machine: &Machine) -> bool {
    machine.at("/run/systemd/system").is_dir() && boot::registry().is_dir() && is_part_of_a_start(machine)
}

/// True if the unit is wanted, and not masked.
fn is_part_of_a_start(machine: &Machine) -> bool {
    let wanted = |dir: &&str| machine.at(dir).join("basic.target.wants").join(UNIT);
    let is_wanted = UNIT_DIRS.iter().any(|dir| wanted(dir).symlink_metadata().is_ok());
    is_wanted && Unit::find(machine, UNIT).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_unit_that_is_masked_or_not_wanted_recovers_nothing() {
        let root = tempfile::tempdir().expect("a directory");
        let machine = Machine::new(Some(root.path()));
        let at = |name: &str| root.path().join(name);
        assert!(!is_part_of_a_start(&machine), "not installed");
        fs::create_dir_all(at("usr/lib/systemd/system/basic.target.wants")).expect("made");
        fs::create_dir_all(at("etc/systemd/system")).expect("made");
        fs::write(at("usr/lib/systemd/system").join(UNIT), "[Unit]\n").expect("written");
        assert!(!is_part_of_a_start(&machine), "nobody wants it");
        symlink(format!("../{UNIT}"), at("usr/lib/systemd/system/basic.target.wants").join(UNIT))
            .expect("linked");
        assert!(is_part_of_a_start(&machine));
        symlink("/dev/null", at("etc/systemd/system").join(UNIT)).expect("masked");
        assert!(!is_part_of_a_start(&machine), "masked");
    }
}
