//! File systems, and options of theirs, that lie about fsync or lose what others keep.

use crate::finding::{Finding, Sure};
use crate::machine::Mount;
use crate::view::View;

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let named = !view.is_whole;
    let mut found: Vec<Finding> = Vec::new();
    for mount in view.mounts() {
        let of_any = [
            journal(mount),
            barriers(mount),
            data_order(mount),
            overlay(mount),
            soft(mount),
            unstrict(mount),
        ];
        found.extend(of_any.into_iter().flatten());
        let of_a_place = [kind(mount), locks(mount)];
        found.extend(of_a_place.into_iter().flatten().filter(|_| named));
    }
    let zfs = view.mounts().into_iter().find(|mount| mount.kind == "zfs");
    found.extend(zfs.filter(|_| view.machine.host.zfs_no_flush).map(zfs_no_flush));
    found
}

fn at(mount: &Mount) -> String {
    mount.point.display().to_string()
}

fn barriers(mount: &Mount) -> Option<Finding> {
    let off = ["nobarrier", "barrier=0", "barrier=none", "nobarriers"];
    let option = off.iter().find(|option| mount.has(option))?;
    Some(
        Finding::durability("barriers-off", at(mount))
            .what(format!("{} is mounted with {option}", at(mount)))
            .why(
                "fsync does not flush the device's cache: the content of a volatile cache is lost when the \
                 power fails, and the file system may be damaged",
            )
            .sure(
                Sure::High,
                "the kernel shows the option; it does no harm only if no device below has a volatile cache",
            )
            .type_in(format!("mount -o remount,barrier {}", at(mount)))
            .type_in("# and take the option out of /etc/fstab"),
    )
}

fn data_order(mount: &Mount) -> Option<Finding> {
    mount.has("data=writeback").then(|| {
        Finding::durability("data-not-ordered", at(mount))
            .what(format!("{} is mounted with data=writeback", at(mount)))
            .why(
                "The journal may name blocks before they are written: after a power cut the end of a file \
                 that was not fsynced holds old content of the disk. Databases fsync; archive and backup \
                 scripts often do not",
            )
            .sure(Sure::Low, "an fsync still writes its own file's data")
            .type_in(format!("umount {0} && mount -o data=ordered {1} {0}", at(mount), mount.source))
    })
}

fn overlay(mount: &Mount) -> Option<Finding> {
    (mount.kind == "overlay" && mount.has("volatile")).then(|| {
        Finding::durability("overlay-volatile", at(mount))
            .what(format!("The overlay on {} is mounted with volatile", at(mount)))
            .why("Every fsync on it succeeds and does nothing; after a crash of the host the layer must be thrown away")
            .type_in("# give the container a volume for its data, or start it without --volatile")
    })
}

fn soft(mount: &Mount) -> Option<Finding> {
    (mount.kind.starts_with("nfs") && mount.has("soft")).then(|| {
        Finding::durability("nfs-soft", at(mount))
            .what(format!("{} is an NFS mount with soft", at(mount)))
            .why(
                "When the server is slow or unreachable, writes fail after timeo × retrans instead of \
                 waiting: pages are dropped, and a database that goes on has lost them",
            )
            .type_in(format!("umount {0} && mount -o hard {1} {0}", at(mount), mount.source))
    })
}

fn locks(mount: &Mount) -> Option<Finding> {
    let local = mount.has("nolock") || mount.value("local_lock").is_some_and(|what| what != "none");
    (mount.kind.starts_with("nfs") && local).then(|| {
        Finding::durability("nfs-local-locks", at(mount))
            .what(format!("{} is an NFS mount whose locks other hosts do not see", at(mount)))
            .why("Two hosts can start a server on the same data, which damages it")
            .sure(Sure::Medium, "it does no harm as long as one host alone mounts it")
            .type_in(format!("umount {0} && mount -o vers=4.2,hard {1} {0}", at(mount), mount.source))
    })
}

fn unstrict(mount: &Mount) -> Option<Finding> {
    (matches!(mount.kind.as_str(), "cifs" | "smb3") && mount.has("nostrictsync")).then(|| {
        Finding::durability("smb-nostrictsync", at(mount))
            .what(format!("{} is an SMB mount with nostrictsync", at(mount)))
            .why(
                "fsync does not ask the server to flush: a power cut of the server loses data that it had \
                 acknowledged",
            )
            .type_in(format!("umount {0} && mount -t cifs -o strictsync {1} {0}", at(mount), mount.source))
    })
}

fn journal(mount: &Mount) -> Option<Finding> {
    (!mount.journal).then(|| {
        Finding::durability("no-journal", at(mount))
            .what(format!("{} is ext4 without a journal", at(mount)))
            .why(
                "After a power cut, names and sizes are in the state in which some write left them: the file \
                 system has to be repaired before it is used, and files may be lost although they were \
                 fsynced",
            )
            .sure(
                Sure::High,
                "the kernel shows no data mode for it, and shows one for every ext4 with a journal",
            )
            .type_in(format!("tune2fs -O has_journal {}      # unmounted", mount.source))
    })
}

fn kind(mount: &Mount) -> Option<Finding> {
    let (id, why, sure): (_, _, Sure) = match mount.kind.as_str() {
        "vfat" | "exfat" | "ntfs" | "ntfs3" | "ext2" => (
            "no-journal",
            "It has no journal for the names and sizes that an fsync depends on: a power cut can lose files \
             that were fsynced",
            Sure::High,
        ),
        "fuse.s3fs" | "fuse.sshfs" | "fuse.rclone" | "fuse.gcsfuse" => (
            "fsync-is-not-known",
            "Its fsync does not reach a disk, or only when the file is closed: it is not made for databases",
            Sure::Medium,
        ),
        _ => return None,
    };
    Some(
        Finding::durability(id, at(mount))
            .what(format!("{} is {}", at(mount), mount.kind))
            .why(why)
            .sure(sure, "that is how this file system works")
            .type_in("# move the data to ext4 or XFS"),
    )
}

fn zfs_no_flush(mount: &Mount) -> Finding {
    Finding::durability("zfs-no-flush", at(mount))
        .what("ZFS is configured not to flush its devices (zfs_nocacheflush or zil_nocacheflush = 1)")
        .why("A synchronous write is acknowledged while a volatile cache may hold it: a power cut loses it, or the pool")
        .type_in("echo 0 > /sys/module/zfs/parameters/zfs_nocacheflush")
        .type_in("echo 0 > /sys/module/zfs/parameters/zil_nocacheflush")
}
