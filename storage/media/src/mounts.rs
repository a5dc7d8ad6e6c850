//! Mounts, as the kernel lists them in /proc/self/mountinfo.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// File systems that keep nothing on any device, whatever their mount's source says.
const IN_MEMORY: [&str; 4] = ["tmpfs", "ramfs", "devtmpfs", "hugetlbfs"];

/// One of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Mount {
    /// The kernel's number of it.
    pub id: u64,
    /// Number of the device; major 0 if it is on none, or on several.
    pub dev: (u32, u32),
    /// Where it is.
    pub point: PathBuf,
    /// `ext4`, `tmpfs` …
    pub kind: String,
    /// What the mount calls its source: a word that not every file system reads.
    pub source: String,
    /// Options of the mount and of the file system.
    pub options: Vec<String>,
}

impl Mount {
    /// `ID PARENT MAJOR:MINOR ROOT POINT OPTIONS [TAGS] - KIND SOURCE OPTIONS`.
    pub fn parse(line: &[u8]) -> Option<Self> {
        let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        let end = words.iter().position(|word| *word == b"-")?;
        let [kind, source, more @ ..] = &words[end + 1..] else { return None };
        let text = |word: &[u8]| String::from_utf8_lossy(&unescaped(word)).into_owned();
        let (id, dev) = (text(words.first()?), text(words.get(2)?));
        let (major, minor) = dev.split_once(':')?;
        let options = [Some(words.get(5)?), more.first()].into_iter().flatten();
        Some(Self {
            id: id.parse().ok()?,
            dev: (major.parse().ok()?, minor.parse().ok()?),
            point: OsString::from_vec(unescaped(words.get(4)?)).into(),
            kind: text(kind),
            source: text(source),
            options: options.flat_map(|list| list.split(|byte| *byte == b',')).map(text).collect(),
        })
    }

    /// True if it has this option.
    pub fn has(&self, option: &str) -> bool {
        self.options.iter().any(|o| o == option)
    }

    /// The value of an option.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.options.iter().find_map(|option| option.strip_prefix(name)?.strip_prefix('='))
    }

    /// True if it is RAM.
    pub fn in_memory(&self) -> bool {
        is_in_memory(&self.kind)
    }
}

/// True for a file system that is RAM.
pub fn is_in_memory(kind: &str) -> bool {
    IN_MEMORY.contains(&kind)
}

/// The lines of a list.
pub fn parse(list: &[u8]) -> impl DoubleEndedIterator<Item = Mount> {
    list.split(|byte| *byte == b'\n').filter_map(Mount::parse)
}

/// The kernel writes blanks and their like as `\040`.
pub fn unescaped(field: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, after)) = rest.split_first() {
        let code = after
            .get(..3)
            .filter(|_| *first == b'\\')
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 8).ok());
        text.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_taken_apart() {
        let line = br"36 35 259:1 / /mnt/a\040b\134040 rw,noatime shared:1 master:2 - ext4 /dev/pmem0 rw,dax=always,data=ordered";
        let mount = Mount::parse(line).expect("a mount");
        assert_eq!((mount.id, mount.dev), (36, (259, 1)));
        assert_eq!((mount.point.to_str(), mount.kind.as_str()), (Some(r"/mnt/a b\040"), "ext4"));
        assert!(mount.has("noatime") && mount.value("data") == Some("ordered"), "{mount:?}");
        assert!(!mount.in_memory());
        assert!(Mount::parse(b"nonsense").is_none());
    }

    #[test]
    fn a_source_may_be_empty_and_options_may_be_missing() {
        let mount = Mount::parse(b"40 35 0:50 / /run rw - tmpfs  rw").expect("a mount");
        assert!(mount.in_memory() && mount.source.is_empty(), "{mount:?}");
        assert!(Mount::parse(b"40 35 0:50 / /run rw - tmpfs none").is_some_and(|mount| mount.has("rw")));
        assert_eq!(parse(b"40 35 0:50 / /run rw - tmpfs none rw\nnonsense\n").count(), 1);
    }
}
