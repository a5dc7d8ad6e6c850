//! Writes to a layout's disks by others are refused (the source's write filter).
//!
//! The kernel claims the members of an array, so that nobody mounts them or makes a file system on them; but it lets
//! anybody with root open them and write (`dd of=/dev/sdb`). A disk that is marked read-only once it is a member refuses
//! that (EPERM), discards too, while md and btrfs go on writing: the kernel asks the mark only of programs. It warns once
//! in its log, "Trying to write to read-only block-device".
//!
//! The mark is forgotten at a restart and by a disk that comes anew, so a unit sets it after each start, and each change
//! does. An array that is assembled of marked disks would be read-only itself: the mark comes after, and goes before.

use std::path::Path;

use super::notes::{Member, Notes, Set};
use crate::disk;
use crate::error::Error;
use crate::host::Host;
use crate::plan::{Act, Plan, Step};
use crate::unit;

/// The mark on these disks. Taking the layout back removes it from the disks that are in it by then.
pub(super) fn step(members: &[Member]) -> Step {
    let marks = members.iter().map(|member| marked("--setro", &member.device)).collect();
    Step::new("writes to these disks by others are refused", Act::All(marks))
}

pub(super) fn marked(how: &str, device: &Path) -> Act {
    Act::run(["blockdev", how, &device.to_string_lossy()])
}

/// The unit that marks them after each start, where systemd runs.
pub(super) fn unit(host: &dyn Host, plan: &mut Plan) {
    if !unit::runs(host.root()) {
        return;
    }
    let name = format!("seawall-layout-{}.service", plan.name);
    let text = format!(
        "[Unit]\nDescription=Writes to the disks of {0} by others are refused (seawall layout guard)\nAfter=local-fs.target\n\n\
         [Service]\nType=oneshot\nRemainAfterExit=yes\nExecStart=/usr/bin/seawall layout guard {0}\n\n\
         [Install]\nWantedBy=multi-user.target\n",
        plan.name
    );
    plan.steps.push(unit::enabled("the same after each start", &name, &text));
}

/// Marks the disks of a layout, or takes the marks away. Gives the names of the disks.
///
/// # Errors
/// What blockdev said.
pub fn guard(host: &dyn Host, recorded: &Plan, on: bool) -> Result<Vec<String>, Error> {
    let mut done = Vec::new();
    for set in &Notes::of(recorded)?.sets {
        for name in present(host, set) {
            let how = if on { "--setro" } else { "--setrw" };
            marked(how, &Path::new("/dev").join(&name)).carry_out(host)?;
            done.push(name);
        }
    }
    Ok(done)
}

/// Its disks by the names that they have now. A disk in use is held by what it is a member of.
fn present(host: &dyn Host, set: &Set) -> Vec<String> {
    let root = host.root();
    let in_btrfs = root.names(format!("/sys/fs/btrfs/{}/devices", set.uuid));
    let is_held = |name: &String| {
        in_btrfs.contains(name) || !root.names(format!("/sys/block/{name}/holders")).is_empty()
    };
    let is_member = |name: &String| {
        let identity = disk::identity(host, name);
        set.members.iter().any(|member| member.identity == identity)
    };
    root.names("/sys/block").into_iter().filter(|name| is_member(name) && is_held(name)).collect()
}

/// True if the kernel refuses writes to it by programs.
pub(super) fn is_marked(host: &dyn Host, name: &str) -> bool {
    host.root().text(format!("/sys/block/{name}/ro")).as_deref() == Some("1")
}
