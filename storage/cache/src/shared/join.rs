//! A zone is joined by a process that uses it with others.

use seawall_media::Region;
use zerocopy::{FromZeros, IntoBytes};

use super::format::{FORMAT_VERSION, Header};
use super::{Cache, Layout};

/// Why a zone cannot be used. It holds nothing that is not elsewhere: make it anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// It does not begin like one.
    #[error("this is not a block cache's zone")]
    NotAZone,
    /// It has the format of this version.
    #[error("the zone has format version {0}, and this program knows only version {FORMAT_VERSION}")]
    Version(u32),
    /// Its numbers contradict each other or its length.
    #[error("the zone should have {expected} bytes and has {found}")]
    Geometry {
        /// Bytes it asks for.
        expected: usize,
        /// Bytes there are.
        found: usize,
    },
    /// Something in it does not fit together.
    #[error("the zone is damaged: {0}")]
    Damaged(&'static str),
    /// The machine was restarted, which its memory does not survive.
    #[error("the machine was restarted, and the zone's memory does not survive that")]
    Lost,
}

impl Cache {
    /// Joins a zone that is in use.
    ///
    /// # Errors
    /// [`OpenError`].
    pub fn join(region: Region) -> Result<Self, OpenError> {
        if region.len() < Header::BYTES {
            return Err(OpenError::Geometry { expected: Header::BYTES, found: region.len() });
        }
        let mut header = Header::new_zeroed();
        region.read(0, header.as_mut_bytes());
        match header {
            header if !header.is_ours() => Err(OpenError::NotAZone),
            header if header.version != FORMAT_VERSION => Err(OpenError::Version(header.version)),
            header if !header.is_whole() => Err(OpenError::Damaged("the checksum of its header is wrong")),
            header => {
                fits(header.layout(), &region)?;
                Ok(Self { region, layout: header.layout(), is_durable: header.is_durable(), read: None })
            }
        }
    }
}

/// True if the region has room for the layout: an error that says so if not.
pub(super) fn fits(layout: Layout, region: &Region) -> Result<(), OpenError> {
    let found = region.len();
    match layout.total_bytes() {
        Some(expected) if expected <= found => Ok(()),
        expected => Err(OpenError::Geometry { expected: expected.unwrap_or(0), found }),
    }
}
