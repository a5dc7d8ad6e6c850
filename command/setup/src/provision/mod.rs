//! From a free region, a namespace, a CXL device or an empty disk to a pool, a file system, or memory.
//!
//! In: what is asked for, and the machine. Out: a [`Plan`]. One module for each kind of source; what several of them end
//! with, a file system and a pool, is [`filled`].

mod cxl;
mod disk;
mod draft;
mod filled;
mod free;
mod memory;
mod namespace;
mod source;
#[cfg(test)]
mod tests;

use seawall_doctor::machine::Machine;
use seawall_doctor::{Kind, Report, View};

use crate::error::Error;
use crate::host::Host;
pub use crate::mkfs::FileSystem;
use crate::plan::{Check, Of, Plan, record};
use draft::Draft;
pub use draft::{Mode, Wish};
pub use free::{Free, free};
pub use source::Source;

/// Draws the plan for a source.
///
/// # Errors
/// What was asked for is not possible there, and why.
pub fn plan(host: &dyn Host, machine: &Machine, source: &Source, wish: &Wish) -> Result<Plan, Error> {
    let name = wish.name.clone().unwrap_or_else(|| source.short_name());
    record::check_name(&name)?;
    let mut draft = Draft { host, machine, wish, plan: Plan::new(Of::Provision, &name) };
    warn(&mut draft, source);
    match source {
        Source::Region(name) => namespace::of_region(&mut draft, name)?,
        Source::Namespace(name) => namespace::changed(&mut draft, name)?,
        Source::Cxl(name) => cxl::region(&mut draft, name)?,
        Source::Dax(name) => memory::of_device(&mut draft, name)?,
        Source::Disk(path) => disk::whole(&mut draft, path)?,
    }
    if let Some(point) = &wish.mount {
        draft.need(Check::MountPoint { directory: point.clone() });
    }
    Ok(draft.plan)
}

/// Says in the plan what undoes durability there, before anything is put on it.
fn warn(draft: &mut Draft<'_>, source: &Source) {
    let report = Report::of(&View::whole(draft.machine));
    let subject = source.subject(draft.host);
    let bad =
        report.findings.iter().filter(|found| found.kind == Kind::Durability && found.subject == subject);
    draft.plan.about.extend(bad.map(|found| format!("!! {}. {}  [{}]", found.what, found.why, found.id)));
}
