//! Can a program be preloaded at all? Answered from its first bytes, before it is started.

use std::ffi::OsString;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What a program file is, as far as the dynamic loader is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 64-bit, of this machine, dynamically linked with glibc: can be preloaded.
    Dynamic,
    /// Dynamically linked with another C library.
    OtherLibc,
    /// No dynamic loader takes part.
    Static,
    /// 32-bit.
    Narrow,
    /// Of another machine.
    Foreign,
    /// A script; its interpreter decides.
    Script(PathBuf),
    /// None of these.
    Unknown,
}

const PT_INTERP: u32 = 3;
const PATH_MAX: usize = 4096;
#[cfg(target_arch = "x86_64")]
const MACHINE: u16 = 62;
#[cfg(target_arch = "aarch64")]
const MACHINE: u16 = 183;

/// Looks at a file.
pub fn kind(path: &Path) -> std::io::Result<Kind> {
    let mut file = File::open(path)?;
    let mut head = [0; 256];
    let mut got = 0;
    while got < head.len() {
        match file.read(&mut head[got..])? {
            0 => break,
            n => got += n,
        }
    }
    let head = &head[..got];
    Ok(match head {
        [b'#', b'!', line @ ..] => interpreter(line).map_or(Kind::Unknown, Kind::Script),
        [0x7f, b'E', b'L', b'F', 1, ..] => Kind::Narrow,
        [0x7f, b'E', b'L', b'F', 2, 1, ..] if head.len() >= 64 => wide(&file, head),
        [0x7f, b'E', b'L', b'F', ..] => Kind::Foreign,
        _ => Kind::Unknown,
    })
}

fn interpreter(line: &[u8]) -> Option<PathBuf> {
    let line = line.split(|byte| *byte == b'\n').next()?;
    let text = String::from_utf8_lossy(line);
    text.split_ascii_whitespace().next().map(PathBuf::from)
}

fn wide(file: &File, head: &[u8]) -> Kind {
    let u16_at = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    if u16_at(18) != MACHINE {
        return Kind::Foreign;
    }
    let table = u64::from_le_bytes(std::array::from_fn(|i| head[32 + i]));
    let (entry, count) = (u64::from(u16_at(54)), u64::from(u16_at(56)));
    match (0..count).find_map(|i| loader(file, table.saturating_add(i * entry))) {
        None => Kind::Static,
        Some(loader) if is_glibcs(&loader) => Kind::Dynamic,
        Some(_) => Kind::OtherLibc,
    }
}

/// The path of the dynamic loader, if that is what the program header at `at` names.
fn loader(file: &File, at: u64) -> Option<PathBuf> {
    let mut header = [0; 40];
    file.read_exact_at(&mut header, at).ok()?;
    let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| header[at + i]));
    if u32::from_le_bytes(std::array::from_fn(|i| header[i])) != PT_INTERP {
        return None;
    }
    let mut path = vec![0; usize::try_from(u64_at(32)).ok()?.min(PATH_MAX)];
    file.read_exact_at(&mut path, u64_at(8)).ok()?;
    path.truncate(path.iter().position(|byte| *byte == 0).unwrap_or(path.len()));
    Some(OsString::from_vec(path).into())
}

/// True for glibc's loader, `ld-linux-x86-64.so.2` and the like; until 2.33 a symbolic link to `ld-2.N.so`. Where another
/// C library imitates glibc a link of that name leads elsewhere.
fn is_glibcs(loader: &Path) -> bool {
    let real = std::fs::canonicalize(loader).unwrap_or_else(|_| loader.into());
    let name = real.file_name().unwrap_or_default().as_encoded_bytes();
    name.starts_with(b"ld-linux") || name.starts_with(b"ld-2.")
}

/// True if the kernel starts the program with more rights than its caller has; the loader then ignores
/// LD_PRELOAD (AT_SECURE).
pub fn is_privileged(path: &Path) -> bool {
    let me = rustix::process::geteuid().as_raw();
    let Ok(found) = std::fs::metadata(path) else { return false };
    let set_user = found.mode() & 0o4000 != 0 && found.uid() != me;
    let mut none: [u8; 0] = [];
    let capabilities = rustix::fs::getxattr(path, "security.capability", &mut none).is_ok_and(|n| n > 0);
    set_user || (capabilities && me != 0)
}

/// Why a program that was started goes without the preload.
pub fn why_not(path: &Path) -> Option<&'static str> {
    match kind(path).ok()? {
        Kind::Static => Some("it is statically linked"),
        Kind::OtherLibc => Some("it is linked with a C library other than glibc (musl, for example)"),
        Kind::Narrow => Some("it is a 32-bit program"),
        Kind::Foreign => Some("it is a program for another machine"),
        _ if is_privileged(path) => {
            Some("it is set-uid or has file capabilities, so the loader ignores LD_PRELOAD")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(bytes: &[u8]) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), bytes).expect("written");
        file
    }

    #[test]
    fn programs_are_told_apart_by_their_headers() {
        assert_eq!(kind(Path::new("/proc/self/exe")).expect("read"), Kind::Dynamic);
        let of = |bytes: &[u8]| kind(written(bytes).path()).expect("read");
        assert_eq!(of(b"#!/bin/sh -e\n"), Kind::Script("/bin/sh".into()));
        assert_eq!(of(b"#! /usr/bin/env python3\n"), Kind::Script("/usr/bin/env".into()));
        assert_eq!(of(b"\x7fELF\x01\x01\x01"), Kind::Narrow);
        assert_eq!(of(b"hello"), Kind::Unknown);
        assert_eq!(of(b""), Kind::Unknown);
        let mut elf = vec![0; 64];
        elf[..6].copy_from_slice(b"\x7fELF\x02\x01");
        assert_eq!(of(&elf), Kind::Foreign);
        elf[18..20].copy_from_slice(&MACHINE.to_le_bytes());
        assert_eq!(of(&elf), Kind::Static, "no program header names a loader");
        for (loader, expected) in [
            ("/lib/ld-musl-x86_64.so.1", Kind::OtherLibc),
            ("/lib/ld64-uClibc.so.0", Kind::OtherLibc),
            ("/no/such/store/lib/ld-linux-x86-64.so.2", Kind::Dynamic),
            ("/no/such/ld-linux-aarch64.so.1", Kind::Dynamic),
        ] {
            assert_eq!(of(&naming(&elf, loader)), expected, "{loader}");
        }
    }

    /// The same program with one header, which names a dynamic loader.
    fn naming(elf: &[u8], loader: &str) -> Vec<u8> {
        let mut elf = elf.to_vec();
        elf[32] = 64;
        elf[54] = 56;
        elf[56] = 1;
        let mut header = [0_u8; 56];
        header[0] = PT_INTERP as u8;
        header[8] = 64 + 56;
        header[32] = loader.len() as u8 + 1;
        elf.extend(header);
        elf.extend(loader.bytes());
        elf.push(0);
        elf
    }
}
