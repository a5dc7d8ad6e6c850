//! The machine: what keeps a commit waiting that is neither the database's nor the disk's.
//!
//! A commit that waits for another process (the mount's) or for a device is woken on a processor that fell idle
//! meanwhile. Under a hypervisor an idle processor is given back at once, and to get it again takes longer than the answer
//! (`haltpoll`, <https://docs.kernel.org/virt/guest-halt-polling.html>). On persistent memory under `run` nothing waits.

use std::fs;
use std::path::Path;

use seawall_awr::Idle;
use seawall_media::Medium;

use super::advice::Setting;

/// Whoever set so much has thought about it.
const ENOUGH_NS: u64 = 50_000;

const HALT_POLL: Setting = Setting {
    name: "guest_halt_poll_ns",
    value: "200000",
    why: "in /sys/module/haltpoll/parameters (haltpoll.guest_halt_poll_ns on the kernel's command line). \
          This virtual machine gives an idle processor back at once, and a session that waits for a commit \
          waits until the machine has the processor again: longer than for the answer itself. With this \
          setting an idle processor first looks for work for up to 200 µs. To the hypervisor it is busy \
          during that time",
};
const FUSE_URING: Setting = Setting {
    name: "enable_uring",
    value: "Y",
    why: "in /sys/module/fuse/parameters (options fuse enable_uring=1 in /etc/modprobe.d): requests to the \
          mount come by io_uring, on the processor where they were made. It applies to mounts that root \
          makes from then on. Many clients gain; a single one may be faster without it where idle processors \
          poll: measure with `seawall-lab bench --only mount`, with it and without it",
};

/// The advice for this machine.
pub fn advise(medium: Option<Medium>, on_mount: bool) -> Vec<Setting> {
    advise_at(Path::new("/sys"), medium, on_mount)
}

/// `sys`: where the kernel has its settings.
fn advise_at(sys: &Path, medium: Option<Medium>, on_mount: bool) -> Vec<Setting> {
    let halts = || Idle::at(sys).halt_poll_ns.is_some_and(|ns| ns < ENOUGH_NS);
    let uring = || fs::read_to_string(sys.join("module/fuse/parameters/enable_uring"));
    let uring_is_off = || uring().is_ok_and(|is| is.trim() == "N");

    let waits = on_mount || medium == Some(Medium::Block);
    let mut settings = Vec::new();
    settings.extend((waits && halts()).then_some(HALT_POLL));
    settings.extend((on_mount && uring_is_off()).then_some(FUSE_URING));
    settings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(governor: &str, polls: &str, uring: &str) -> tempfile::TempDir {
        let sys = tempfile::tempdir().expect("a directory");
        for (path, text) in [
            ("devices/system/cpu/cpuidle/current_governor_ro", governor),
            ("module/haltpoll/parameters/guest_halt_poll_ns", polls),
            ("module/fuse/parameters/enable_uring", uring),
        ] {
            let path = sys.path().join(path);
            fs::create_dir_all(path.parent().expect("it has one")).expect("made");
            fs::write(path, format!("{text}\n")).expect("written");
        }
        sys
    }

    fn names(sys: &Path, medium: Option<Medium>, on_mount: bool) -> Vec<&'static str> {
        advise_at(sys, medium, on_mount).iter().map(|setting| setting.name).collect()
    }

    #[test]
    fn only_what_is_off_and_only_where_a_commit_waits() {
        let guest = machine("haltpoll", "0", "N");
        assert_eq!(names(guest.path(), None, true), ["guest_halt_poll_ns", "enable_uring"]);
        assert_eq!(names(guest.path(), Some(Medium::Block), false), ["guest_halt_poll_ns"]);
        for nobody_waits in [None, Some(Medium::Pmem), Some(Medium::Emulated)] {
            assert!(names(guest.path(), nobody_waits, false).is_empty());
        }
        for (governor, polls) in [("haltpoll", "200000"), ("menu", "0"), ("haltpoll", "?")] {
            let fine = machine(governor, polls, "Y");
            assert!(names(fine.path(), Some(Medium::Block), true).is_empty(), "{governor} {polls}");
        }
        assert!(names(Path::new("/nowhere"), Some(Medium::Block), true).is_empty());
    }
}
