//! File systems, made.

use serde::{Deserialize, Serialize};

use crate::plan::{Act, Check};

/// A kind of file system.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystem {
    /// ext4
    #[default]
    Ext4,
    /// XFS
    Xfs,
}

impl FileSystem {
    /// As mount(8) calls it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }
}

/// One to be made.
pub struct New<'a> {
    /// Its kind.
    pub kind: FileSystem,
    /// On what.
    pub device: &'a str,
    /// Its label: at most 12 characters.
    pub label: &'a str,
    /// Its UUID.
    pub uuid: &'a str,
    /// What lies below.
    pub shape: Shape,
}

/// How the device is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Nothing that a file system should know.
    Plain,
    /// Persistent memory: a file's blocks shall begin where a page of 2 MiB can.
    Dax,
    /// Stripes: bytes that lie on one disk, and how many disks hold different bytes.
    Stripes {
        /// Bytes.
        unit: u64,
        /// Disks.
        width: u64,
    },
}

const BLOCK: u64 = 4096;

impl New<'_> {
    /// Makes it.
    pub fn act(&self) -> Act {
        Act::run(match self.kind {
            FileSystem::Ext4 => self.ext4(),
            FileSystem::Xfs => self.xfs(),
        })
    }

    /// The program that does.
    pub fn program(&self) -> Check {
        match self.kind {
            FileSystem::Ext4 => Check::program("mkfs.ext4", "e2fsprogs"),
            FileSystem::Xfs => Check::program("mkfs.xfs", "xfsprogs"),
        }
    }

    fn ext4(&self) -> Vec<String> {
        let mut words = owned(&["mkfs.ext4", "-q", "-F", "-U", self.uuid, "-L", self.label]);
        let (stride, width) = match self.shape {
            Shape::Plain => (0, 0),
            Shape::Dax => (512, 512),
            Shape::Stripes { unit, width } => (unit / BLOCK, unit / BLOCK * width),
        };
        if stride > 0 {
            words.extend(owned(&["-b", "4096", "-E", &format!("stride={stride},stripe_width={width}")]));
        }
        words.push(self.device.to_owned());
        words
    }

    fn xfs(&self) -> Vec<String> {
        let mut words = owned(&["mkfs.xfs", "-q", "-L", self.label]);
        let mut meta = format!("uuid={}", self.uuid);
        match self.shape {
            Shape::Plain => {}
            // Not every kernel that has DAX has it together with reflinks. The remains of a former namespace are no
            // file system.
            Shape::Dax => {
                words.extend(owned(&["-f", "-d", "su=2m,sw=1"]));
                meta += ",reflink=0";
            }
            Shape::Stripes { unit, width } => words.extend(owned(&["-d", &format!("su={unit},sw={width}")])),
        }
        words.extend(["-m".to_owned(), meta, self.device.to_owned()]);
        words
    }
}

fn owned(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
