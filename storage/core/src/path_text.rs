//! Paths in JSON: names of files are bytes, and JSON's strings are Unicode.
//!
//! A path in UTF-8, as nearly all are, is a string. Any other path is an object, `{"text": "donn\u{fffd}es", "bytes":
//! [100, …]}`: one field for people to read, one for programs to open. So every path comes back as it was. For fields:
//! `#[serde(with = "seawall_core::path_text")]`, and its `::option` and `::list`.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path to be written as JSON.
pub struct Shown<'a>(pub &'a Path);

impl Serialize for Shown<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if let Some(text) = self.0.to_str() {
            return to.serialize_str(text);
        }
        let mut both = to.serialize_struct("Path", 2)?;
        both.serialize_field("text", &self.0.to_string_lossy())?;
        both.serialize_field("bytes", self.0.as_os_str().as_bytes())?;
        both.end()
    }
}

/// A path as it is read.
#[derive(Deserialize)]
#[serde(untagged)]
enum Read {
    Text(String),
    Bytes { bytes: Vec<u8> },
}

impl From<Read> for PathBuf {
    fn from(read: Read) -> Self {
        match read {
            Read::Text(text) => text.into(),
            Read::Bytes { bytes } => OsString::from_vec(bytes).into(),
        }
    }
}

/// Writes a path.
///
/// # Errors
/// The serializer's error.
pub fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    Shown(path).serialize(to)
}

/// Reads a path.
///
/// # Errors
/// The deserializer's error.
pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<PathBuf, D::Error> {
    Read::deserialize(from).map(Into::into)
}

/// A path, or none.
pub mod option {
    use super::*;

    /// Writes it.
    ///
    /// # Errors
    /// The serializer's error.
    pub fn serialize<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        path.as_deref().map(Shown).serialize(to)
    }

    /// Reads it.
    ///
    /// # Errors
    /// The deserializer's error.
    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<Read>::deserialize(from)?.map(Into::into))
    }
}

/// A list of paths.
pub mod list {
    use super::*;

    /// Writes them.
    ///
    /// # Errors
    /// The serializer's error.
    pub fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|path| Shown(path)))
    }

    /// Reads them.
    ///
    /// # Errors
    /// The deserializer's error.
    pub fn deserialize<'d, D: Deserializer<'d>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        Ok(Vec::<Read>::deserialize(from)?.into_iter().map(Into::into).collect())
    }
}
