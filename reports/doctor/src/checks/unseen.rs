//! What cannot be seen on a machine, and why: one line each.

use crate::finding::Unseen;
use crate::machine::{Disk, Link};
use crate::view::View;

/// All of it.
pub fn unseen(view: &View<'_>) -> Vec<Unseen> {
    let mut found = view.unseen.clone();
    let servers = view.machine.servers.iter().filter(|_| view.is_whole);
    found.extend(servers.map(|server| {
        let look = match &server.directory {
            Some(directory) => format!("seawall doctor {} looks at them", directory.display()),
            None => "seawall doctor DIRECTORY looks at them".to_owned(),
        };
        Unseen::aside(format!("the settings and files of {}, which runs here", server.name), look)
    }));
    let disks = view.disks();
    found.extend(hypervisor(view, &disks));
    if view.machine.cpu.hypervisor && !view.namespaces().is_empty() {
        let why = "only its host knows: a file in RAM looks the same in here (seawall tune qemu --backing FILE, on the host)";
        found.push(Unseen::aside("what backs the persistent memory of this virtual machine", why));
    }
    let arrays: Vec<&str> =
        disks.iter().filter(|disk| is_array(disk)).map(|disk| disk.name.as_str()).collect();
    if !arrays.is_empty() {
        let why = "the array's own tool shows them: perccli, storcli, ssacli, arcconf";
        found.push(Unseen::aside(format!("the battery and the disks behind {}", arrays.join(", ")), why));
    }
    let mapped: Vec<&str> =
        disks.iter().filter(|disk| disk.link == Link::Mapper).map(|d| d.name.as_str()).collect();
    if !mapped.is_empty() {
        found.push(Unseen::aside(
            format!("the targets of {}", mapped.join(", ")),
            "device mapper shows its tables only to root, by an ioctl: dmsetup table",
        ));
    }
    if view.machine.mounts.iter().any(|mount| mount.kind == "zfs") {
        found.push(Unseen::aside("ZFS's properties", "no file shows them: zfs get sync,logbias,recordsize"));
    }
    found.push(Unseen::aside(
        "steps of the clock",
        "the kernel keeps no record of them: chronyc tracking, or timedatectl timesync-status",
    ));
    found
}

/// Only the host knows what a guest's flush becomes.
fn hypervisor(view: &View<'_>, disks: &[&Disk]) -> Option<Unseen> {
    let in_guest = view.machine.cpu.hypervisor;
    let is_its = |disk: &&&Disk| {
        let could_be = matches!(disk.link, Link::Nvme | Link::Sata | Link::Scsi);
        disk.link.is_virtual() || in_guest && could_be && !disk.is_cloud()
    };
    let names: Vec<&str> = disks.iter().filter(is_its).map(|disk| disk.name.as_str()).collect();
    (!names.is_empty()).then(|| {
        Unseen::aside(
            format!("what the hypervisor does with a flush of {}", names.join(", ")),
            "only its host knows: with cache=unsafe it acknowledges flushes and does nothing (qm config, \
             virsh dumpxml). A power cut of the host would show it",
        )
    })
}

fn is_array(disk: &Disk) -> bool {
    let names = ["PERC", "MegaRAID", "LOGICAL VOLUME", "AVAGO", "MR9", "ServeRAID", "LSI MR"];
    disk.link == Link::Scsi && names.iter().any(|name| disk.model.contains(name))
}
