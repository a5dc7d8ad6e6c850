//! Guards at places where only older versions put them: they are found and lowered like any other, and never raised.
//!
//! A database that such a version left guarded, or a copy of one, is mended by whatever lowers its guards today:
//! recovery, the next start, `seawall guard --lower`.

use std::path::{Path, PathBuf};

use seawall_core::stand_in::REDO_LOG;
use seawall_core::table::RootEntry;
use seawall_wire::shm::Preset;

use crate::guard::stand_in::{self, PG_VERSION};
use crate::guard::{Among, Claim, GuardError};
use crate::place::beside;

/// The files that texts once stood in for.
const FORMER: [(Preset, &str); 2] = [(Preset::Postgres, PG_VERSION), (Preset::Mariadb, REDO_LOG)];

/// Those of a database in this very directory that are up, or half-way.
pub fn find(dir: &Path) -> Vec<(PathBuf, Preset)> {
    let is_left = |at: &Path| {
        let parts = [".seawall", ".seawall.tmp"].map(|end| beside(at, end));
        Claim::read(at).is_some() || parts.iter().any(|part| part.symlink_metadata().is_ok())
    };
    let all = FORMER.into_iter().map(|(preset, name)| (dir.join(name), preset));
    all.filter(|(at, _)| is_left(at)).collect()
}

/// Lowers those of this pool in its directories. What could not be lowered is returned and stays up.
pub(crate) fn lower<'r>(roots: impl Iterator<Item = &'r RootEntry>, claim: &Claim) -> Vec<GuardError> {
    let found = roots.flat_map(|root| find(&root.data));
    found.filter_map(|(at, preset)| stand_in::lower(preset, &at, Some(claim), Among::Nobody).err()).collect()
}
