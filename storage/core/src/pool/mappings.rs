//! Which other processes have a file of ours mapped.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use seawall_media::process;

/// A file in memory that this user left there earlier, and its length.
pub(crate) fn open_own(path: &Path) -> io::Result<Option<(File, u64)>> {
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(e),
    };
    let meta = file.metadata()?;
    if meta.uid() != rustix::process::getuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "it belongs to another user"));
    }
    Ok(Some((file, meta.len())))
}

/// Other processes that have this file mapped for writing, as far as we can see. Processes that only read (`seawall
/// status`, `seawall inspect`) are no reason to refuse a start.
pub(crate) fn mapped_by_others(file: &File) -> io::Result<Vec<u32>> {
    let meta = file.metadata()?;
    others_that_map(|line| maps_for_writing(line, meta.dev(), meta.ino()))
}

/// Other processes that have the memory with this name mapped, removed or not, as far as we can see.
pub(crate) fn users_of_memory(at: &Path) -> io::Result<Vec<u32>> {
    let name = at.file_name().unwrap_or_default().to_string_lossy();
    others_that_map(|line| is_shared_for_writing(line) && line.contains(&*name))
}

fn others_that_map(is_it: impl Fn(&str) -> bool) -> io::Result<Vec<u32>> {
    let me = std::process::id();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")?.flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let maps = std::fs::read_to_string(process::place(pid).join("maps")).unwrap_or_default();
        if pid != me && maps.lines().any(&is_it) {
            found.push(pid);
        }
    }
    Ok(found)
}

fn is_shared_for_writing(line: &str) -> bool {
    let perms = line.split_ascii_whitespace().nth(1);
    perms.is_some_and(|perms| perms.starts_with("rw") && perms.ends_with('s'))
}

/// True for a line of proc_pid_maps(5), `address perms offset major:minor inode path`, that maps this file
/// shared and writable.
pub fn maps_for_writing(line: &str, dev: u64, ino: u64) -> bool {
    let mut fields = line.split_ascii_whitespace().skip(3);
    let (Some(device), Some(inode)) = (fields.next(), fields.next()) else {
        return false;
    };
    let of_file = device == format!("{:02x}:{:02x}", rustix::fs::major(dev), rustix::fs::minor(dev));
    is_shared_for_writing(line) && of_file && inode.parse() == Ok(ino)
}
