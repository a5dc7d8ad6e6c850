//! What this host does for others that undoes *their* durability, and what it does to every program: files in /etc and /proc.

use std::path::PathBuf;

use crate::root::Root;

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Host {
    /// Directories that are exported by NFS, with their options.
    pub exports: Vec<Export>,
    /// Virtual machines whose disks are configured not to flush.
    pub unsafe_guests: Vec<Guest>,
    /// Libraries that every program loads.
    pub preloaded: Vec<String>,
    /// Devices that DRBD mirrors.
    pub drbd: Vec<Drbd>,
    /// ZFS is set not to flush.
    pub zfs_no_flush: bool,
    /// A file system on one of these mount points says that it is lost with the machine.
    pub marked_temporary: Vec<PathBuf>,
}

/// An exported directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Export {
    /// The directory.
    pub path: String,
    /// The file that says so.
    pub file: &'static str,
    /// It acknowledges writes before they are on disk.
    pub is_async: bool,
}

/// A virtual machine of this host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guest {
    /// The file with its definition.
    pub file: String,
    /// The line about the disk.
    pub line: String,
}

/// A DRBD device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drbd {
    /// `drbd0`
    pub name: String,
    /// `A`, `B` or `C`.
    pub protocol: char,
    /// How it orders writes: `n` if it does not flush at all.
    pub order: char,
}

/// Reads it.
pub fn read(root: &Root) -> Host {
    let lines = |path: &str| root.text(path).unwrap_or_default();
    let set = |name: &str| root.text(format!("/sys/module/zfs/parameters/{name}")).as_deref() == Some("1");
    Host {
        exports: exports(root),
        unsafe_guests: guests(root),
        preloaded: lines("/etc/ld.so.preload").split_whitespace().map(str::to_owned).collect(),
        drbd: drbd(&lines("/proc/drbd")),
        zfs_no_flush: set("zfs_nocacheflush") || set("zil_nocacheflush"),
        marked_temporary: temporary(root),
    }
}

/// The current exports count; the configuration where the server does not run.
fn exports(root: &Root) -> Vec<Export> {
    let files = ["/var/lib/nfs/etab", "/etc/exports"];
    let Some((file, text)) =
        files.iter().find_map(|file| Some((*file, root.text(file).filter(|t| !t.is_empty())?)))
    else {
        return Vec::new();
    };
    let lines = text.lines().filter(|line| line.starts_with(['/', '"']));
    let one = |line: &str| {
        let path = line.split_whitespace().next()?.trim_matches('"').to_owned();
        let is_async = line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|word| word == "async");
        Some(Export { path, file, is_async })
    };
    lines.filter_map(one).collect()
}

/// Proxmox's and libvirt's definitions. Only root may read them.
fn guests(root: &Root) -> Vec<Guest> {
    let mut found = Vec::new();
    for (dir, end) in [("/etc/pve/qemu-server", ".conf"), ("/etc/libvirt/qemu", ".xml")] {
        for name in root.names(dir).into_iter().filter(|name| name.ends_with(end)) {
            let file = format!("{dir}/{name}");
            let text = root.text(&file).unwrap_or_default();
            let is_unsafe =
                |line: &&str| ["cache=unsafe", "cache='unsafe'"].iter().any(|word| line.contains(word));
            let guest = |line: &str| Guest { file: file.clone(), line: line.trim().to_owned() };
            found.extend(text.lines().filter(is_unsafe).map(guest));
        }
    }
    found
}

/// ` 0: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate C r-----`, and ` … wo:f oos:0` below it.
fn drbd(text: &str) -> Vec<Drbd> {
    let mut found: Vec<Drbd> = Vec::new();
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        let number =
            words.first().and_then(|word| word.strip_suffix(':')).filter(|n| n.parse::<u32>().is_ok());
        if let Some(number) = number {
            let protocol =
                words.iter().find(|word| matches!(**word, "A" | "B" | "C")).and_then(|w| w.chars().next());
            found.push(Drbd { name: format!("drbd{number}"), protocol: protocol.unwrap_or('C'), order: 'f' });
        } else if let (Some(order), Some(last)) =
            (words.iter().find_map(|word| word.strip_prefix("wo:")?.chars().next()), found.last_mut())
        {
            last.order = order;
        }
    }
    found
}

/// Azure's agent leaves a note on the disk that a deallocated machine loses.
fn temporary(root: &Root) -> Vec<PathBuf> {
    let places = ["/mnt", "/mnt/resource"];
    let marked = places.iter().filter(|dir| root.has(format!("{dir}/DATALOSS_WARNING_README.txt")));
    marked.map(PathBuf::from).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drbd_says_its_protocol_and_whether_it_flushes() {
        let text = "version: 8.4.11\n 0: cs:Connected ro:Primary/Secondary ds:UpToDate/UpToDate A r-----\n    ns:1 nr:0 \
                    ap:0 ep:1 wo:n oos:0\n";
        assert_eq!(drbd(text), [Drbd { name: "drbd0".into(), protocol: 'A', order: 'n' }]);
        assert!(drbd("").is_empty());
    }
}
