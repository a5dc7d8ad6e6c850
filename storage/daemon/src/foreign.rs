//! Foreign writers: processes without the preload that have a managed file open for writing.
//!
//! Input: a file's device and inode. Output: their process ids, as far as this user may see them: root sees
//! all, others only their own processes. A descriptor opened for writing counts, and so does a shared
//! writable mapping whose descriptor was closed since.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use nix::libc;
use seawall_core::pool::maps_for_writing;

use crate::{process, sys};

const O_ACCMODE: u32 = 0o3;

/// True if `fd` is the only open file description of its file: nobody else can write to it, not even through
/// a mapping. Costs two system calls. False proves nothing.
///
/// A write lease is granted to the only opener (fcntl(2)). A process that opens the file in the moment that we hold
/// it waits for the second call; the signal that this sends us is blocked.
pub fn is_only_open(fd: impl AsFd) -> bool {
    let only = sys::lease(fd.as_fd(), libc::F_WRLCK);
    if only {
        sys::lease(fd.as_fd(), libc::F_UNLCK);
    }
    only
}

/// Those among `pids` that have the file open for writing, except this process and those that will be ours.
pub fn writers(
    dev: u64,
    ino: u64,
    pids: impl IntoIterator<Item = u32>,
    will_be: impl Fn(u32) -> bool,
) -> impl Iterator<Item = u32> {
    let me = std::process::id();
    pids.into_iter()
        .filter(move |pid| *pid != me)
        .filter(move |pid| writes(*pid, dev, ino))
        // Asked last: reading the mappings of every process on the machine is the dear part.
        .filter(move |pid| !will_be(*pid))
}

/// True if the process has the file open for writing.
pub fn writes(pid: u32, dev: u64, ino: u64) -> bool {
    let place = process::place(pid);
    has_descriptor(&place, dev, ino) || has_mapping(&place, dev, ino)
}

/// True while a process lives whose descriptors this user may not see.
pub fn is_hidden(pid: u32) -> bool {
    let descriptors = fs::read_dir(process::place(pid).join("fd"));
    descriptors.is_err_and(|e| e.kind() == std::io::ErrorKind::PermissionDenied)
}

/// Processes that have the file mapped, shared and writable, except this one.
pub fn mappers(dev: u64, ino: u64) -> Vec<u32> {
    let me = std::process::id();
    process::all().filter(|pid| *pid != me && has_mapping(&process::place(*pid), dev, ino)).collect()
}

fn has_descriptor(process: &Path, dev: u64, ino: u64) -> bool {
    let Ok(entries) = fs::read_dir(process.join("fd")) else { return false };
    entries.flatten().any(|entry| {
        let is_file = fs::metadata(entry.path()).is_ok_and(|m| m.dev() == dev && m.ino() == ino);
        is_file && entry.file_name().to_str().is_some_and(|fd| is_writable(process, fd))
    })
}

fn is_writable(process: &Path, fd: &str) -> bool {
    let Ok(info) = fs::read_to_string(process.join("fdinfo").join(fd)) else { return false };
    flags(&info).is_some_and(|flags| flags & O_ACCMODE != 0)
}

/// The octal `flags:` line of `/proc/PID/fdinfo/FD`.
fn flags(info: &str) -> Option<u32> {
    let line = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    u32::from_str_radix(line.trim(), 8).ok()
}

fn has_mapping(process: &Path, dev: u64, ino: u64) -> bool {
    let Ok(mut maps) = File::open(process.join("maps")) else { return false };
    if let Ok(found) = asks_for_mapping(&maps, dev, ino) {
        return found;
    }
    // The text of them all takes some twenty times as long: every path is written out.
    let mut text = String::new();
    maps.read_to_string(&mut text).is_ok_and(|_| text.lines().any(|line| maps_for_writing(line, dev, ino)))
}

fn asks_for_mapping(maps: &File, dev: u64, ino: u64) -> io::Result<bool> {
    let mut from = 0;
    while let Some(mapping) = sys::next_shared_writable(maps.as_fd(), from)? {
        if (mapping.dev, mapping.ino) == (dev, ino) {
            return Ok(true);
        }
        from = mapping.end;
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn the_only_opener_is_told_from_one_of_two() {
        let dir = tempfile::tempdir_in("/var/tmp").expect("a directory");
        let path = dir.path().join("file");
        let mine = fs::File::create(&path).expect("created");
        assert!(is_only_open(&mine));
        let copy = mine.try_clone().expect("a second descriptor of the same open file");
        assert!(is_only_open(&copy));
        let other = fs::File::options().append(true).open(&path).expect("opened");
        assert!(!is_only_open(&mine));
        drop(other);
        assert!(is_only_open(&mine));
    }

    #[test]
    fn flags_are_octal() {
        assert_eq!(flags("pos:\t0\nflags:\t0100002\nmnt_id:\t1\n"), Some(0o100_002));
        assert_eq!(flags("pos:\t0\n"), None);
    }

    #[test]
    fn only_shared_writable_mappings_of_the_file_count() {
        let dev = rustix::fs::makedev(0xfe, 0);
        let line = |perms: &str| format!("7f00-7f01 {perms} 00000000 fe:00 42    /a b");
        assert!(maps_for_writing(&line("rw-s"), dev, 42));
        assert!(!maps_for_writing(&line("r--s"), dev, 42));
        assert!(!maps_for_writing(&line("rw-p"), dev, 42));
        assert!(!maps_for_writing(&line("rw-s"), dev, 43));
    }

    #[test]
    fn only_who_maps_the_file_shared_and_writable_has_a_mapping_of_it() {
        let [mine, other] = [(); 2].map(|()| tempfile::tempfile().expect("a file"));
        let me = std::process::id();
        let found = |file: &File| {
            let stat = file.metadata().expect("stat");
            let maps = File::open("/proc/self/maps").expect("open");
            let asked = asks_for_mapping(&maps, stat.dev(), stat.ino());
            let found = has_mapping(&process::place(me), stat.dev(), stat.ino());
            // Where the kernel cannot be asked the text is read.
            assert!(asked.is_err() || asked.is_ok_and(|asked| asked == found));
            found
        };
        for file in [&mine, &other] {
            file.set_len(8192).expect("longer");
        }
        assert!(!found(&mine));
        let read_only =
            seawall_media::Region::map_read_only(mine.try_clone().expect("a copy"), 4096).expect("mapped");
        let elsewhere = seawall_media::Region::map(&other, 4096, false).expect("mapped");
        assert!(!found(&mine) && found(&other));
        let region = seawall_media::Region::map(&mine, 4096, false).expect("mapped");
        assert!(found(&mine));
        drop((region, read_only, elsewhere));
        assert!(!found(&mine) && !found(&other));
    }

    #[test]
    fn a_writer_is_found_and_a_reader_is_not() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let stat = file.as_file().metadata().expect("stat");
        let found = |redirect: &str| {
            let script = format!("exec 9{redirect}\"$1\"; echo; read x");
            let mut child = Command::new("sh")
                .args(["-c", &script, "sh"])
                .arg(file.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("spawned");
            let mut ready = [0];
            std::io::Read::read_exact(child.stdout.as_mut().expect("piped"), &mut ready).expect("ready");
            let found = writers(stat.dev(), stat.ino(), [child.id()], |_| false).next().is_some();
            drop(child.stdin.take());
            child.wait().expect("ended");
            found
        };
        assert!(found(">>"));
        assert!(!found("<"));
    }
}
