//! Can a program be preloaded at all? Answered from its first bytes, before it is started.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What a program file is, as far as the dynamic loader is concerned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// 64-bit, of this machine, dynamically linked: can be preloaded.
    Dynamic,
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
    let names_loader = (0..count).any(|i| {
        let mut kind = [0; 4];
        let at = table.saturating_add(i * entry);
        file.read_exact_at(&mut kind, at).is_ok() && u32::from_le_bytes(kind) == PT_INTERP
    });
    if names_loader { Kind::Dynamic } else { Kind::Static }
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
    }
}
