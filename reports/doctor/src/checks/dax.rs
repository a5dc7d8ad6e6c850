//! Is a file on persistent memory truly accessed directly? Mount options say what was asked for, not what is.

use crate::finding::{Finding, Sure};
use crate::machine::{Link, Mount, Namespace};
use crate::place::Place;
use crate::view::View;

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = Vec::new();
    for mount in view.mounts() {
        let Some(space) = namespace(view, mount) else { continue };
        let place = view.places.iter().find(|place| place.mount.is_some_and(|on| on.id == mount.id));
        found.extend(
            raw(mount, space)
                .or_else(|| off(mount, space, place))
                .or_else(|| place.and_then(|p| not_here(p))),
        );
        found.extend(place.and_then(no_map_sync));
    }
    found
}

/// The namespace of persistent memory that a mount is directly on.
fn namespace<'m>(view: &View<'m>, mount: &Mount) -> Option<&'m Namespace> {
    let disk = view.machine.disk_under(mount).filter(|disk| disk.link == Link::Pmem)?;
    view.machine.pmem.namespaces.iter().find(|space| space.device.as_ref() == Some(&disk.name))
}

fn raw(mount: &Mount, space: &Namespace) -> Option<Finding> {
    let at = mount.point.display();
    (space.mode == "raw").then(|| {
        Finding::speed("file-system-on-raw-pmem", at.to_string())
            .what(format!("{at} is {} on {}, a namespace in mode raw", mount.kind, space.name))
            .why("It is an ordinary file system with a page cache: nothing is accessed directly, whatever its options ask for")
            .type_in(format!("ndctl create-namespace --force --reconfig={} --mode=fsdax    # this erases it", space.name))
    })
}

/// Without an option the file system decides file by file, as with dax=inode, and shows nothing.
fn off(mount: &Mount, space: &Namespace, place: Option<&Place<'_>>) -> Option<Finding> {
    let at = mount.point.display();
    let said = place.and_then(|place| place.dax);
    (space.mode == "fsdax" && mount.dax().is_none() && said != Some(true)).then(|| {
        let (sure, because) = match said {
            Some(_) => (Sure::High, "the kernel was asked about this very file"),
            None => (Sure::Medium, "a file whose directory has the flag of `chattr +x` is accessed directly all the same"),
        };
        Finding::speed("dax-off", at.to_string())
            .what(format!("{at} is on persistent memory ({}) and mounted without dax", space.name))
            .why("Reads and writes go through the page cache, and each fsync through a block device: ten times slower or more")
            .sure(sure, because)
            .type_in(format!("umount {at} && mount -o dax=always {} {at}", mount.source))
    })
}

fn not_here(place: &Place<'_>) -> Option<Finding> {
    let asked = place.mount?.dax()?;
    (place.dax == Some(false) || place.map_sync == Some(false) && place.dax != Some(true)).then(|| {
        let mend = match asked {
            "dax=inode" => format!("chattr +x {}        # then copy its files: the flag is taken when a file is made", dir(place)),
            _ => "dmesg | grep -i dax       # why the file system does not do it: reflink, block size, alignment".to_owned(),
        };
        Finding::speed("dax-not-for-this-file", place.path.display().to_string())
            .what(format!("{} is not accessed directly, although its mount has {asked}", place.path.display()))
            .why("The option asks; the file system decides file by file. This one goes through the page cache")
            .sure(Sure::High, "the kernel was asked about this very file (statx, MAP_SYNC)")
            .type_in(mend)
    })
}

fn dir(place: &Place<'_>) -> String {
    place.path.display().to_string()
}

/// Direct, but the kernel cannot promise that a flushed store is durable.
fn no_map_sync(place: &Place<'_>) -> Option<Finding> {
    (place.dax == Some(true) && place.map_sync == Some(false)).then(|| {
        Finding::durability("no-map-sync", place.path.display().to_string())
            .what(format!("{} is accessed directly, but the kernel refuses MAP_SYNC", place.path.display()))
            .why(
                "Flushing a processor's cache makes nothing durable here: a program must call fsync. \
                 virtio-pmem behaves like that",
            )
            .sure(Sure::High, "the kernel was asked about this very file")
            .type_in("# in a virtual machine: an NVDIMM (-device nvdimm) instead of virtio-pmem")
    })
}
