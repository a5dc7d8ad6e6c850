//! A whole disk: a partition with a name that stays, and on it a pool or a file system.

use std::path::{Path, PathBuf};

use super::draft::Draft;
use super::filled::{self, Device};
use super::namespace::{NO_UDEV, rules};
use crate::disk;
use crate::emptied::emptied;
use crate::error::Error;
use crate::plan::{Act, Check, Step};
use crate::uuid::uuid;

/// Linux's own kind of partition: others leave it alone.
const KIND: &str = "0FC63DAF-8483-4772-8E79-3D69D8477DE4";

/// A partition over a disk that holds nothing; or, on persistent memory, the device itself.
pub fn whole(draft: &mut Draft<'_>, path: &Path) -> Result<(), Error> {
    let name = disk::name(draft.host, path)?;
    let known = draft.machine.disk(&name).cloned();
    let known = known.filter(|disk| disk.name == name).ok_or_else(|| {
        Error::refused(format!(
            "{} is a partition, or not a disk: seawall provision takes whole disks",
            path.display()
        ))
    })?;
    if draft.wish.mode.is_some() {
        return Err(Error::refused("--mode is for persistent memory and CXL memory"));
    }
    if draft.wish.mount.is_none() && draft.wish.pool.is_none() {
        return Err(Error::refused(format!("say what {} is for: --pool, or --mount DIR", path.display())));
    }
    let space = draft.machine.pmem.namespaces.iter().find(|space| space.device.as_deref() == Some(&name));
    let dax = space.is_some_and(|space| space.mode == "fsdax");
    draft
        .plan
        .about
        .push(format!("{}: {} {} bytes", path.display(), known.model, known.bytes).replace("  ", " "));
    draft.need(Check::Empty { device: path.to_owned() });
    if name.starts_with("pmem") {
        return on_pmem(draft, path, dax, known.bytes);
    }
    let part = partition(draft, path, &name);
    match draft.wish.mount.clone() {
        Some(point) => {
            let device = Device {
                path: part,
                bytes: draft.wish.size.unwrap_or(known.bytes),
                check: None,
                dax: false,
                goes: true,
            };
            filled::file_system(draft, &device, &point)?;
        }
        None => pool(draft, &part),
    }
    Ok(())
}

fn on_pmem(draft: &mut Draft<'_>, path: &Path, dax: bool, bytes: u64) -> Result<(), Error> {
    let Some(point) = draft.wish.mount.clone() else {
        return Err(Error::refused("a pool in persistent memory is a file: give --mount DIR"));
    };
    let check = Some(Check::Empty { device: path.to_owned() });
    let device = Device { path: path.to_owned(), bytes, check, dax, goes: false };
    filled::file_system(draft, &device, &point)
}

/// The partition's path, by which it is found after each start.
fn partition(draft: &mut Draft<'_>, disk: &Path, name: &str) -> PathBuf {
    let uuid = uuid();
    let shown = disk.to_string_lossy().into_owned();
    let kernel = partition_of(name);
    draft.need(Check::program("sfdisk", "fdisk"));
    let size = draft.wish.size.map(|bytes| format!("size={}KiB, ", bytes >> 10)).unwrap_or_default();
    let input = format!(
        "label: gpt\nstart=1MiB, {size}type={KIND}, uuid={uuid}, name=\"seawall-{}\"\n",
        draft.name()
    );
    let words = ["sfdisk", "--quiet", "--wipe=never", "--wipe-partitions=never", &shown].map(str::to_owned);
    let back = Act::All(vec![emptied(&kernel), emptied(&shown)]);
    let step = Step::new(format!("one partition on {shown}"), Act::Run { words: words.to_vec(), input });
    let is_it =
        Check::Probed { device: kernel.clone().into(), key: "PART_ENTRY_UUID".into(), value: uuid.clone() };
    draft.step(step.needs(Check::Empty { device: disk.to_owned() }).undo(back).undo_if(is_it));
    let stays = PathBuf::from(format!("/dev/disk/by-partuuid/{uuid}"));
    let path = if draft.has_udev() { stays } else { PathBuf::from(&kernel) };
    draft.step(Step::new("the partition gets its name", Act::Await { path: path.clone() }));
    path
}

/// `nvme0n1p1`, `sdb1`
fn partition_of(name: &str) -> String {
    let between = if name.ends_with(|c: char| c.is_ascii_digit()) { "p" } else { "" };
    format!("/dev/{name}{between}1")
}

fn pool(draft: &mut Draft<'_>, part: &Path) {
    if let Some(owner) = draft.wish.owner.clone() {
        let title = format!("the partition belongs to {}", owner.user);
        if draft.has_udev() {
            let uuid = part.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let rule = format!(
                "SUBSYSTEM==\"block\", ENV{{ID_PART_ENTRY_UUID}}==\"{uuid}\", OWNER=\"{}\", GROUP=\"{}\", MODE=\"0660\", \
                 SYMLINK+=\"seawall/{}\"\n",
                owner.user,
                owner.group,
                draft.name()
            );
            rules(draft, title, &rule, &["--subsystem-match=block"]);
        } else {
            draft.step(Step::new(title, Act::run(["chown", &owner.both(), &part.to_string_lossy()])));
            draft.plan.about.push(NO_UDEV.into());
        }
    }
    filled::pool_on(draft, part);
}
