//! Whether a block device is in use, and whether it holds anything.

use std::fs::{self, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::error::Error;
use crate::host::Host;
use crate::mounts;

/// The part searched for bytes that no tool knows: where file systems, volumes and databases begin, on the device
/// itself and in a first partition whose table is lost.
const HEAD: u64 = HEAD_MIB << 20;
/// The same in MiB.
pub const HEAD_MIB: u64 = 4;

/// The kernel's name of a device, links followed: `sdb` of `/dev/disk/by-id/…`.
///
/// # Errors
/// It is not there, or not below /dev.
pub fn name(host: &dyn Host, device: &Path) -> Result<String, Error> {
    let real = host.root().resolve(device).map_err(Error::file(device))?;
    let name = real.strip_prefix("/dev").ok().and_then(Path::to_str).filter(|name| !name.contains('/'));
    name.map(str::to_owned).ok_or_else(|| {
        Error::refused(format!("{} is not a device: it is {}", device.display(), real.display()))
    })
}

/// Nobody uses it: no mount, no swap, no device made of it or of a partition of it, no program that has claimed it.
///
/// # Errors
/// Somebody does; the error names the user.
pub fn is_unused(host: &dyn Host, device: &Path) -> Result<(), Error> {
    let name = name(host, device)?;
    let refused = |why: String| Error::refused(format!("{} is in use: {why}", device.display()));
    let mounts = mounts::all(host.root());
    let swaps = host.root().text("/proc/swaps").unwrap_or_default();
    for part in parts(host, &name) {
        let dev = format!("/dev/{part}");
        if let Some(mount) = mounts.iter().find(|mount| mount.source == dev) {
            return Err(refused(format!("{dev} is mounted on {}", mount.point.display())));
        }
        if swaps.lines().any(|line| line.split_whitespace().next() == Some(&dev)) {
            return Err(refused(format!("{dev} is used for swap")));
        }
        let below = if part == name { String::new() } else { format!("/{part}") };
        if let Some(holder) =
            host.root().names(format!("/sys/block/{name}{below}/holders")).into_iter().next()
        {
            return Err(refused(format!("{holder} is made of {dev}")));
        }
    }
    match claimed(&host.root().host_path(device)) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::ResourceBusy => {
            Err(refused("a program or the kernel has claimed it (lsof, fuser)".into()))
        }
        Err(e) => Err(Error::file(device)(e)),
    }
}

/// It, and its partitions.
pub fn parts(host: &dyn Host, name: &str) -> Vec<String> {
    let at = PathBuf::from("/sys/block").join(name);
    let is_part = |part: &String| host.root().has(at.join(part).join("partition"));
    let inside = host.root().names(&at).into_iter().filter(is_part);
    std::iter::once(name.to_owned()).chain(inside).collect()
}

/// The kernel lets one claim it at a time, and what mounts, or makes devices of devices, claims.
fn claimed(path: &Path) -> io::Result<()> {
    let is_device = fs::metadata(path)?.file_type().is_block_device();
    let flags = if is_device { OFlags::EXCL.bits() as i32 } else { 0 };
    OpenOptions::new().read(true).custom_flags(flags).open(path).map(drop)
}

/// It holds nothing: no tool knows what is on it, and where anything would begin there are zeros only.
///
/// # Errors
/// What it holds, and how to give that up.
pub fn is_empty(host: &dyn Host, device: &Path) -> Result<(), Error> {
    let shown = device.display();
    let give_up = |what: String| {
        Error::refused(format!(
            "{shown} holds {what}. To give that up for good: wipefs --all {shown}; dd if=/dev/zero of={shown} bs=1M \
             count={HEAD_MIB} conv=fsync"
        ))
    };
    let name = name(host, device)?;
    if parts(host, &name).len() > 1 {
        return Err(give_up("partitions".into()));
    }
    if let Some(what) = signature(host, device) {
        return Err(give_up(what));
    }
    let mut head = Vec::new();
    let path = host.root().host_path(device);
    let read = fs::File::open(&path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    read.map_err(Error::file(device))?;
    match head.iter().position(|byte| *byte != 0) {
        None => Ok(()),
        Some(at) => Err(give_up(format!("something that no tool knows, at byte {at}"))),
    }
}

/// What blkid knows of it.
fn signature(host: &dyn Host, device: &Path) -> Option<String> {
    let said = probe_all(host, device)?;
    let kind = value(&said, "TYPE");
    let name = value(&said, "LABEL").or(value(&said, "UUID")).unwrap_or("no name");
    kind.map(|kind| format!("{kind} ({name})"))
        .or_else(|| value(&said, "PTTYPE").map(|kind| format!("a partition table ({kind})")))
}

/// One of the values that blkid knows of a device.
pub fn probe(host: &dyn Host, device: &Path, key: &str) -> Option<String> {
    value(&probe_all(host, device)?, key).map(str::to_owned)
}

/// It looks at the device and not into its cache. It fails where it finds nothing.
fn probe_all(host: &dyn Host, device: &Path) -> Option<String> {
    let words = ["blkid", "--probe", "--output", "export", &device.to_string_lossy()].map(str::to_owned);
    host.run(&words, "").ok()
}

fn value<'s>(said: &'s str, key: &str) -> Option<&'s str> {
    said.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='))
}

/// What of a disk stays the same from start to start: its serial number, else the PCI function it hangs on.
pub fn identity(host: &dyn Host, name: &str) -> String {
    let at = PathBuf::from("/sys/block").join(name);
    let files = ["serial", "device/serial", "wwid", "device/wwid"];
    let serial =
        files.iter().find_map(|file| host.root().text(at.join(file))).filter(|text| !text.is_empty());
    serial.unwrap_or_else(|| {
        let real = host.root().resolve(&at).unwrap_or(at);
        let above = real.parent().filter(|above| !above.starts_with("/sys/devices/virtual"));
        // A disk that hangs nowhere has nothing but its name.
        above.map_or_else(|| name.to_owned(), |above| above.display().to_string())
    })
}
