//! Units of systemd.

use std::path::{Path, PathBuf};

use seawall_doctor::Root;

use crate::plan::{Act, Step};

const UNITS: &str = "/etc/systemd/system";

/// systemd runs.
pub fn runs(root: &Root) -> bool {
    root.has("/run/systemd/system")
}

/// Where a unit is.
pub fn path(name: &str) -> PathBuf {
    Path::new(UNITS).join(name)
}

/// systemd reads its units again.
pub fn reload() -> Act {
    Act::run(["systemctl", "daemon-reload"])
}

/// A unit that is started with the machine from now on.
pub fn enabled(title: &str, name: &str, text: &str) -> Step {
    let [enable, disable] = ["enable", "disable"].map(|verb| Act::run(["systemctl", verb, name]));
    Step::file(title, path(name), text).around([reload(), enable], [disable], [reload()])
}
