//! What a device ends with: a file system that is mounted, a pool.

use std::path::{Path, PathBuf};

use super::draft::Draft;
use crate::emptied::emptied;
use crate::error::Error;
use crate::kernel::version;
use crate::mkfs::{FileSystem, New, Shape};
use crate::mounted::{self, Wanted};
use crate::plan::{Act, Check, Step};
use crate::uuid::uuid;

/// A device to be filled.
pub struct Device {
    /// Its path.
    pub path: PathBuf,
    /// Its bytes, or some more.
    pub bytes: u64,
    /// What must hold before anything is written to it.
    pub check: Option<Check>,
    /// Its pages can be accessed directly.
    pub dax: bool,
    /// The step that made it takes it away, so that nothing on it needs to be taken back.
    pub goes: bool,
}

/// What mkfs.xfs asks for, with room for what lies beside the file system.
const XFS_LEAST: u64 = 512 << 20;

/// A file system where the wish says, and the pool in it.
pub fn file_system(draft: &mut Draft<'_>, device: &Device, point: &Path) -> Result<(), Error> {
    if draft.wish.file_system == FileSystem::Xfs && device.bytes < XFS_LEAST {
        return Err(Error::refused(format!(
            "{} bytes are too few for XFS: use --fs ext4, or at least 512 MiB",
            device.bytes
        )));
    }
    let (kind, uuid) = (draft.wish.file_system, uuid());
    make(draft, device, &uuid);
    let wanted = Wanted {
        name: &draft.plan.name,
        point,
        uuid: &uuid,
        kind: kind.name(),
        options: options(draft, device.dax),
        fstab: draft.wish.fstab,
        names: draft.wish.pool.map(|_| format!("{}.pool", draft.name())).into_iter().collect(),
    };
    let steps = mounted::steps(draft.host.root(), &wanted, draft.wish.owner.as_ref());
    draft.plan.steps.extend(steps);
    if device.dax {
        draft.step(Step::new("it is accessed directly", Act::ProveDax { directory: point.to_owned() }));
    }
    pool_in(draft, point, device.dax);
    Ok(())
}

fn options(draft: &Draft<'_>, dax: bool) -> &'static str {
    match dax {
        true if knows_dax_always(&draft.machine.kernel) => "dax=always,noatime",
        true => "dax,noatime",
        false => "noatime",
    }
}

/// Linux 5.8 gave the option its values.
fn knows_dax_always(release: &str) -> bool {
    version(release).is_none_or(|version| version >= (5, 8))
}

fn make(draft: &mut Draft<'_>, device: &Device, uuid: &str) {
    let (path, label) = (device.path.to_string_lossy(), draft.name().to_owned());
    let shape = if device.dax { Shape::Dax } else { Shape::Plain };
    let new = New { kind: draft.wish.file_system, device: &path, label: &label, uuid, shape };
    draft.need(new.program());
    let mut step = Step::new(format!("a file system on {path}"), new.act());
    step.needs.extend(device.check.clone());
    if !device.goes {
        let is_it = Check::Probed { device: device.path.clone(), key: "UUID".into(), value: uuid.into() };
        step = step.undo(emptied(&path)).undo_if(is_it);
    }
    draft.step(step);
}

/// A pool in a file, if one is wished for.
fn pool_in(draft: &mut Draft<'_>, point: &Path, dax: bool) {
    let Some(bytes) = draft.wish.pool else { return };
    let path = point.join(format!("{}.pool", draft.name()));
    let shown = path.to_string_lossy();
    let size = bytes.unwrap_or(POOL_BYTES).to_string();
    let act = if dax {
        as_owner(draft, &["seawall", "init", &shown, "--size", &size])
    } else {
        as_owner(draft, &["seawall", "init", "--block", &shown, "--size", &size])
    };
    draft.step(made_pool(act, &path).undo(Act::Remove { path: path.clone() }));
    after_pool(draft, &path);
}

/// Of a pool in a file, if nobody says more.
const POOL_BYTES: u64 = 256 << 20;

/// The step that makes a pool.
fn made_pool(act: Act, path: &Path) -> Step {
    let title = format!("a pool, {}", path.display());
    let absent = Check::Absent { path: path.to_owned() };
    let step = Step::new(title, act).undo_needs(Check::PoolIsEmpty { path: path.to_owned() });
    if path.starts_with("/dev") { step } else { step.needs(absent) }
}

/// A pool on a whole partition.
pub fn pool_on(draft: &mut Draft<'_>, path: &Path) {
    let shown = path.to_string_lossy();
    let size = draft.wish.pool.flatten().map(|bytes| bytes.to_string());
    let mut words = vec!["seawall", "init", "--block", &shown];
    words.extend(size.iter().flat_map(|size| ["--size", size]));
    let act = as_owner(draft, &words);
    draft.step(made_pool(act, path));
    after_pool(draft, path);
}

fn after_pool(draft: &mut Draft<'_>, path: &Path) {
    let shown = path.display();
    draft.plan.next.push(format!(
        "seawall run --pool {shown} -- COMMAND       # or: seawall attach SERVICE --pool {shown}"
    ));
}

/// A pool belongs to the user that runs the database.
fn as_owner(draft: &mut Draft<'_>, words: &[&str]) -> Act {
    let mut all: Vec<String> = Vec::new();
    if let Some(owner) = &draft.wish.owner {
        all.extend(
            ["setpriv", "--init-groups", "--reuid", &owner.user, "--regid", &owner.group].map(str::to_owned),
        );
        draft.need(Check::program("setpriv", "util-linux"));
    }
    all.extend(words.iter().map(|word| (*word).to_owned()));
    Act::run(all)
}
