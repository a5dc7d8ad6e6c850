//! A directory of any program's (preset `any`) has no guard that the program meets: nobody knows what it reads first. Then
//! the log is to be recovered before the program can start, or whoever starts it says that they see to that.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use seawall_daemon::{AddRoot, boot};
use seawall_media::Medium;
use seawall_wire::shm::Preset;

use crate::pool;

const UNIT: &str = "seawall-recover.service";
/// Where systemd finds units, the administrator's first.
const UNITS: [&str; 4] =
    ["etc/systemd/system", "usr/local/lib/systemd/system", "usr/lib/systemd/system", "lib/systemd/system"];

/// Refuses a directory without a guard, unless the log is recovered when the machine starts or that is `accepted`.
///
/// # Errors
/// If neither is so: what to do.
pub fn check(pool: &Path, roots: &[AddRoot], boots: bool, accepted: bool) -> Result<()> {
    let Some(root) = roots.iter().find(|root| root.preset == Preset::Any.name()) else { return Ok(()) };
    let keeps_nothing = |medium| medium == Medium::Emulated;
    let (medium, _) = pool::medium(pool)?;
    // Keepers are asked when the network is up, which is long after the start.
    let is_recovered = boots && medium != Medium::Replicated && recovers_at_boot(Path::new("/"));
    if accepted || is_recovered || keeps_nothing(medium) {
        return Ok(());
    }
    bail!(
        "nothing would keep a program from old files in {} after a power cut: Seawall does not know what it reads first. \
         Install the package, whose {UNIT} recovers logs when this machine starts, before any service; or say --unguarded, \
         and after a crash start nothing there before `seawall recover --pool {}`",
        root.path.display(),
        pool.display()
    )
}

/// True if this machine recovers the registered pools before it starts anything.
fn recovers_at_boot(root: &Path) -> bool {
    root.join("run/systemd/system").is_dir() && boot::registry().is_dir() && is_part_of_a_start(root)
}

/// True if the unit is wanted, and not masked.
fn is_part_of_a_start(root: &Path) -> bool {
    let at = |directory: &str, name: &str| root.join(directory).join(name);
    let unit: Option<PathBuf> =
        UNITS.iter().map(|directory| at(directory, UNIT)).find(|unit| unit.symlink_metadata().is_ok());
    let is_masked = |unit: &PathBuf| {
        unit.read_link().is_ok_and(|to| to == Path::new("/dev/null"))
            || unit.metadata().is_ok_and(|text| text.len() == 0)
    };
    let wanted = format!("basic.target.wants/{UNIT}");
    let is_wanted = UNITS.iter().any(|directory| at(directory, &wanted).symlink_metadata().is_ok());
    is_wanted && unit.is_some_and(|unit| !is_masked(&unit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_unit_that_is_masked_or_not_wanted_recovers_nothing() {
        let machine = tempfile::tempdir().expect("a directory");
        let at = |name: &str| machine.path().join(name);
        assert!(!is_part_of_a_start(machine.path()), "not installed");
        fs::create_dir_all(at("usr/lib/systemd/system/basic.target.wants")).expect("made");
        fs::create_dir_all(at("etc/systemd/system")).expect("made");
        fs::write(at("usr/lib/systemd/system").join(UNIT), "[Unit]\n").expect("written");
        assert!(!is_part_of_a_start(machine.path()), "nobody wants it");
        symlink(format!("../{UNIT}"), at("usr/lib/systemd/system/basic.target.wants").join(UNIT))
            .expect("linked");
        assert!(is_part_of_a_start(machine.path()));
        symlink("/dev/null", at("etc/systemd/system").join(UNIT)).expect("masked");
        assert!(!is_part_of_a_start(machine.path()), "masked");
    }
}
