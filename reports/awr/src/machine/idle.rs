//! What an idle processor does: it has to wake whoever waits.

use std::fs::read_to_string;
use std::path::Path;

/// Under the governor `haltpoll` an idle processor of a virtual machine is given back to the host, at once or after it
/// looked for work for a while (<https://docs.kernel.org/virt/guest-halt-polling.html>).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Idle {
    /// The governor of the kernel's idle states; empty where there is none.
    pub governor: String,
    /// For how many nanoseconds it looks for work, where that is the governor.
    pub halt_poll_ns: Option<u64>,
}

impl Idle {
    /// This machine's.
    pub fn find() -> Self {
        Self::at(Path::new("/sys"))
    }

    /// The same with another place for what the kernel has in /sys.
    pub fn at(sys: &Path) -> Self {
        let read = |path: &str| read_to_string(sys.join(path)).ok().map(|text| text.trim().to_owned());
        let governor = ["current_governor_ro", "current_governor"];
        let governor = governor.iter().find_map(|name| read(&format!("devices/system/cpu/cpuidle/{name}")));
        let governor = governor.unwrap_or_default();
        let polls = || read("module/haltpoll/parameters/guest_halt_poll_ns")?.parse().ok();
        let halt_poll_ns = if governor == "haltpoll" { polls() } else { None };
        Self { governor, halt_poll_ns }
    }
}

impl std::fmt::Display for Idle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.halt_poll_ns {
            Some(ns) => write!(f, "{}, {ns} ns before a halt", self.governor),
            None => f.write_str(&self.governor),
        }
    }
}
