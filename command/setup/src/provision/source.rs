//! What is made ready: a region, a namespace, a CXL device, a dax device, a disk.

use std::path::{Path, PathBuf};

use crate::disk;
use crate::error::Error;
use crate::host::Host;

/// Of a plan's name.
const LONGEST: usize = 12;

/// One of them, by the name that the kernel has for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Source {
    /// `region0`: what of it no namespace has.
    Region(String),
    /// `namespace0.0`
    Namespace(String),
    /// `mem0`: a CXL memory device.
    Cxl(String),
    /// `dax0.0`
    Dax(String),
    /// A block device.
    Disk(PathBuf),
}

impl Source {
    /// Understands a name, or a path below /dev.
    ///
    /// # Errors
    /// It is neither.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let name = text.strip_prefix("/dev/").unwrap_or(text);
        let numbered = |prefix: &str| {
            let number = name.strip_prefix(prefix)?;
            let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
            is_number.then(|| name.to_owned())
        };
        if let Some(name) = numbered("dax") {
            return Ok(Self::Dax(name));
        }
        if text.starts_with('/') {
            return Ok(Self::Disk(text.into()));
        }
        let found = numbered("region")
            .map(Self::Region)
            .or_else(|| numbered("namespace").map(Self::Namespace))
            .or_else(|| numbered("mem").map(Self::Cxl));
        found.ok_or_else(|| {
            Error::refused(format!(
                "{text} is not region0, namespace0.0, mem0 (CXL), dax0.0 or the like, nor the path of a \
                 disk: seawall provision lists what is free here"
            ))
        })
    }

    /// What a plan for it is called if nobody says more.
    pub(super) fn short_name(&self) -> String {
        let name = match self {
            Self::Region(name) | Self::Namespace(name) | Self::Cxl(name) | Self::Dax(name) => name.as_str(),
            Self::Disk(path) => path.file_name().and_then(|name| name.to_str()).unwrap_or("disk"),
        };
        let name = name.replace("namespace", "ns").to_lowercase();
        let plain: Vec<char> =
            name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        // The end of a long name tells disks apart: their numbers.
        let end: String = plain[plain.len().saturating_sub(LONGEST)..].iter().collect();
        end.trim_matches('-').to_owned()
    }

    /// As a finding of `seawall doctor` names it.
    pub(super) fn subject(&self, host: &dyn Host) -> String {
        match self {
            Self::Region(name) | Self::Namespace(name) | Self::Cxl(name) | Self::Dax(name) => name.clone(),
            Self::Disk(path) => disk::name(host, path).unwrap_or_else(|_| shown(path)),
        }
    }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_told_apart_and_named() {
        let parsed = |text: &str| Source::parse(text).expect("a source");
        assert_eq!(parsed("region0"), Source::Region("region0".into()));
        assert_eq!(parsed("namespace1.2").short_name(), "ns1-2");
        assert_eq!(parsed("/dev/dax0.0"), Source::Dax("dax0.0".into()));
        assert_eq!(parsed("mem3"), Source::Cxl("mem3".into()));
        assert_eq!(parsed("/dev/disk/by-id/nvme-SAMSUNG_MZ_0042").short_name(), "sung-mz-0042");
        for wrong in ["regionx", "mem", "sdb", ""] {
            Source::parse(wrong).expect_err(wrong);
        }
    }
}
