//! RAM that looks like storage.

use crate::finding::{Finding, Sure};
use crate::machine::{Link, Mount};
use crate::view::View;

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let mounts = view.mounts();
    let decoys = mounts.iter().filter(|mount| mount.in_memory() && mount.source.starts_with("/dev/"));
    let is_plain = |mount: &Mount| mount.in_memory() && !mount.source.starts_with("/dev/");
    let places = view.places.iter().filter_map(|place| {
        let mount = place.mount.filter(|mount| is_plain(mount))?;
        Some(in_ram(&place.path.display().to_string(), &mount.kind))
    });
    let ram = view.places.iter().filter_map(|place| {
        let disk = place.stack.iter().find(|disk| matches!(disk.link, Link::Ram | Link::Null))?;
        Some(in_ram(&disk.name, &format!("the device {}", disk.name)))
    });
    let mut found: Vec<Finding> = decoys.map(|mount| decoy(mount)).collect();
    found.extend(places.chain(ram));
    found.dedup_by(|a, b| a.subject == b.subject);
    found
}

fn decoy(mount: &Mount) -> Finding {
    let at = mount.point.display();
    Finding::durability("tmpfs-ignores-its-source", at.to_string())
        .what(format!("{at} is {}, which is RAM; none of it lies on {}", mount.kind, mount.source))
        .why(format!(
            "{} takes any word for its source and ignores it. A power cut or an unmount loses every file here",
            mount.kind
        ))
        .type_in(format!("umount {at}"))
        .type_in(format!("mkfs.ext4 -b 4096 {}      # this erases it: leave it out if a file system is there", mount.source))
        .type_in(format!("mount -o dax=always {} {at}    # dax on fsdax persistent memory only", mount.source))
}

fn in_ram(subject: &str, kind: &str) -> Finding {
    Finding::durability("data-in-ram", subject)
        .what(format!("{subject} lies on {kind}, which is RAM"))
        .why("A power cut, a crash of the kernel or a reboot loses every file here")
        .sure(Sure::High, "the kernel says so")
        .type_in("# move it to a file system on a disk or on persistent memory")
}
