//! The pool's file of a log that other hosts keep: which log it is, and who keeps it. Never changed while the log is used.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use seawall_media::durable;
use serde::{Deserialize, Serialize};

use crate::meta::Roster;
use crate::transport::Transport;
use crate::uuid::parse_uuid;

/// What such a file begins with.
const FRONT: &[u8] = b"{\n  \"replicated_log\": 1,";

/// What is in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Descriptor {
    replicated_log: u32,
    /// The log's UUID.
    pub log: String,
    /// Bytes of its image.
    pub image: u64,
    /// Its keepers.
    pub roster: Roster,
    /// How they are reached from this host.
    #[serde(default, skip_serializing_if = "Transport::is_default")]
    pub transport: Transport,
}

impl Descriptor {
    /// Of a new log.
    pub fn new(log: String, image: u64, roster: Roster, transport: Transport) -> Self {
        Self { replicated_log: 1, log, image, roster, transport }
    }

    /// True if this is such a file.
    pub fn is_at(path: &Path) -> bool {
        let mut front = vec![0; FRONT.len()];
        let is_file = fs::metadata(path).is_ok_and(|meta| meta.is_file());
        is_file && File::open(path).and_then(|mut file| file.read_exact(&mut front)).is_ok() && front == FRONT
    }

    /// Reads it.
    ///
    /// # Errors
    /// It cannot be read, or makes no sense.
    pub fn read(mut file: &File) -> io::Result<Self> {
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let read: Self = serde_json::from_str(&text)?;
        let (keepers, acks) = (read.roster.members.len(), read.roster.acks);
        let is_sane = (1..=keepers).contains(&acks) && parse_uuid(&read.log).is_some();
        if is_sane { Ok(read) } else { Err(io::Error::other("its content makes no sense")) }
    }

    /// Writes a new one, durably. It must not exist.
    ///
    /// # Errors
    /// The disk's.
    pub fn create(&self, path: &Path) -> io::Result<()> {
        durable::create(path, 0o666, &serde_json::to_vec_pretty(self)?)
    }

    /// The log's UUID.
    pub fn uuid(&self) -> [u8; 16] {
        // Looked at when it was read.
        parse_uuid(&self.log).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::Mode;

    #[test]
    fn a_descriptor_is_told_from_other_files_and_read_back() {
        let directory = tempfile::tempdir().expect("a directory");
        let (path, other) = (directory.path().join("log"), directory.path().join("other"));
        let member = |id: &str| crate::meta::Member { id: id.into(), address: "a:1".into(), witness: false };
        let roster = Roster { acks: 1, members: vec![member("x"), member("y")], mode: Mode::Availability };
        let transport = Transport::Tls("/certificates".into());
        let made = Descriptor::new(format!("{:032x}", 77), 1 << 20, roster, transport);
        made.create(&path).expect("made");
        assert!(made.create(&path).is_err(), "it exists");
        fs::write(&other, "{}").expect("written");
        assert!(
            Descriptor::is_at(&path) && !Descriptor::is_at(&other) && !Descriptor::is_at(directory.path())
        );
        assert_eq!(Descriptor::read(&File::open(&path).expect("there")).expect("read"), made);
        assert_eq!(made.roster.quorum().takes(), 2);
        let none = Descriptor { roster: Roster { acks: 3, ..made.roster.clone() }, ..made };
        fs::write(&path, serde_json::to_vec_pretty(&none).expect("text")).expect("written");
        assert!(Descriptor::read(&File::open(&path).expect("there")).is_err(), "more acks than keepers");
    }
}
