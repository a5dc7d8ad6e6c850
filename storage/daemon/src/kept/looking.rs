//! Looks at a log that keepers keep, which may be in use.

use std::fs::File;
use std::path::Path;

use seawall_core::pool::{self, MEMORY, Pool, replicated};
use seawall_keeper::descriptor::Descriptor;
use seawall_keeper::turn;
use seawall_media::Region;

use super::error::KeptError;
use crate::parts::survives;

fn read(path: &Path) -> Result<Option<Descriptor>, KeptError> {
    if !Descriptor::is_at(path) {
        return Ok(None);
    }
    let failed = |error| KeptError::File { path: path.into(), error };
    let file = File::open(path).map_err(failed)?;
    Descriptor::read(&file).map(Some).map_err(failed)
}

/// Who keeps a log, and what that survives, in words, as far as its file says. `None`: it is another kind of pool.
///
/// # Errors
/// [`KeptError::File`].
pub fn describe(path: &Path) -> Result<Option<String>, KeptError> {
    Ok(read(path)?.map(|said| survives::with_all(&said.roster, &[])))
}

/// Where the keepers of a log are reached. `None`: it is another kind of pool.
///
/// # Errors
/// [`KeptError::File`].
pub fn keepers(path: &Path) -> Result<Option<Vec<String>>, KeptError> {
    let addresses = |said: Descriptor| said.roster.members.into_iter().map(|member| member.address).collect();
    Ok(read(path)?.map(addresses))
}

/// Bytes of the image of a log that keepers keep. `None`: it is another kind of pool.
///
/// # Errors
/// [`KeptError::File`].
pub fn size(path: &Path) -> Result<Option<u64>, KeptError> {
    Ok(read(path)?.map(|said| said.image))
}

/// Opens a pool for looking at it, whatever it lies on. It may be in use meanwhile.
///
/// # Errors
/// [`KeptError`].
pub fn open_read_only(path: &Path) -> Result<Pool, KeptError> {
    let Some(said) = read(path)? else { return Ok(pool::open_read_only(path)?) };
    let because = survives::with_all(&said.roster, &[]);
    replicated::view((path, Path::new(MEMORY)), (said.uuid(), said.image), because, |region| {
        let mut peer = turn::newest_now(said.uuid(), &said.roster, &said.transport)?;
        Ok(peer.fetch(|at, bytes| put(region, said.image, at, bytes))?)
    })
}

/// What the newest copy of a log has that some keeper can give now, for whoever only looks. Its file need not be at `path`.
///
/// # Errors
/// [`KeptError`].
pub(crate) fn look_at_newest(path: &Path, said: &Descriptor) -> Result<Pool, KeptError> {
    let because = survives::with_all(&said.roster, &[]);
    replicated::view_of_copy(path, said.image, because, |region| {
        let mut peer = turn::newest_now(said.uuid(), &said.roster, &said.transport)?;
        Ok(peer.fetch(|at, bytes| put(region, said.image, at, bytes))?)
    })
}

/// Bytes of a copy; what would lie outside is nothing of this log's.
pub(super) fn put(region: &Region, image: u64, at: u64, bytes: &[u8]) {
    if at.checked_add(bytes.len() as u64).is_some_and(|end| end <= image) {
        region.copy_in(at as usize, bytes);
    }
}
