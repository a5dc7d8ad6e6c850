//! Persistent memory: a namespace in a region's free part, or one that is there and is given another mode.

use std::path::PathBuf;

use seawall_doctor::machine::{Namespace, Region};

use super::draft::{Coming, Draft, Mode};
use super::filled::{self, Device};
use super::memory;
use crate::error::Error;
use crate::plan::{Act, Check, Step};
use crate::uuid::uuid;

const BUS: &str = "/sys/bus/nd/devices";

/// A new namespace, and what goes on it.
pub fn of_region(draft: &mut Draft<'_>, name: &str) -> Result<(), Error> {
    let region = region(draft, name)?;
    describe(draft, &region);
    if region.virtio {
        return Err(Error::refused(format!(
            "{name} is virtio-pmem: a flush there is a request to the host, so nothing is accessed directly. \
             Use it as a disk: seawall provision /dev/pmem{}",
            name.trim_start_matches("region")
        )));
    }
    let least = draft.wish.size.unwrap_or(1);
    draft.need(Check::Free { region: name.to_owned(), bytes: least });
    if !has_labels(draft, name) {
        labels(draft, name)?;
    }
    let seed = next(draft, name)
        .ok_or_else(|| Error::refused(format!("{name} takes no more namespaces: ndctl list -R")))?;
    fresh(draft, name, &seed, region.free)
}

/// The name of a region's next namespace. As ndctl does: the first one if nobody has it, else the one that the kernel has
/// ready.
fn next(draft: &Draft<'_>, region: &str) -> Option<String> {
    let (root, first) = (draft.host.root(), format!("namespace{}.0", number(region)));
    let is_taken = root.number::<u64>(format!("{BUS}/{first}/size")).unwrap_or(0) > 0;
    if !is_taken || !has_labels(draft, region) {
        return Some(first);
    }
    root.text(format!("{BUS}/{region}/namespace_seed")).filter(|seed| !seed.is_empty())
}

/// Without labels a region is one namespace as it is.
fn has_labels(draft: &Draft<'_>, region: &str) -> bool {
    draft.host.root().text(format!("{BUS}/{region}/nstype")).as_deref() != Some(WITHOUT_LABELS)
}

/// ND_DEVICE_NAMESPACE_IO
const WITHOUT_LABELS: &str = "4";

/// Modules whose labels nobody has begun: they are given some, if what the region is until then holds nothing.
fn labels(draft: &mut Draft<'_>, region: &str) -> Result<(), Error> {
    let root = draft.host.root();
    let count: usize = root.number(format!("{BUS}/{region}/mappings")).unwrap_or(0);
    // `nmem0,0,536870912,0`
    let module =
        |n: usize| Some(root.text(format!("{BUS}/{region}/mapping{n}"))?.split(',').next()?.to_owned());
    let modules: Vec<String> = (0..count).filter_map(module).collect();
    let room = |module: &String| root.number(format!("{BUS}/{module}/available_slots")).unwrap_or(0u32) > 0;
    if modules.is_empty() || !modules.iter().all(room) {
        return Err(Error::refused(format!(
            "the modules of {region} have no room for labels, so it can only be one namespace, as it is: \
             seawall provision namespace{}.0",
            number(region)
        )));
    }
    let whole = format!("namespace{}.0", number(region));
    if let Some(found) = draft.machine.pmem.namespaces.iter().find(|space| space.name == whole).cloned() {
        held(draft, &found)?;
    }
    let on_modules = |verb| Act::run(["ndctl", verb].into_iter().chain(modules.iter().map(String::as_str)));
    let of_region = |verb| Act::run(["ndctl", verb, region]);
    let (off, on) = (|| of_region("disable-region"), || of_region("enable-region"));
    draft.step(Step::new(format!("{region} is out of use while its modules get labels"), off()).undo(on()));
    draft.step(
        Step::new("labels, so that it can have namespaces", on_modules("init-labels"))
            .undo(on_modules("zero-labels")),
    );
    draft.step(Step::new(format!("{region} is in use again"), on()).undo(off()));
    Ok(())
}

/// The same for a region whose next namespace will have this name.
pub fn fresh(draft: &mut Draft<'_>, region: &str, seed: &str, free: u64) -> Result<(), Error> {
    let mode = draft.wish.mode.unwrap_or(Mode::Fsdax);
    aligned(draft, region)?;
    let coming = Coming {
        name: seed.to_owned(),
        uuid: uuid(),
        device: device_of(seed, mode),
        bytes: draft.wish.size.unwrap_or(free),
    };
    draft.need(Check::program("ndctl", "ndctl"));
    let mut words = vec!["ndctl", "create-namespace"];
    let (of, as_mode) = (format!("--region={region}"), format!("--mode={}", mode.name()));
    let (named, with) = (format!("--name={}", draft.name()), format!("--uuid={}", coming.uuid));
    words.extend([of.as_str(), &as_mode, &named, &with]);
    let size = draft.wish.size.map(|bytes| format!("--size={bytes}"));
    words.extend(size.as_deref());
    // The kernel's notes on each page lie in the persistent memory itself: a terabyte would take 16 GB of DRAM.
    words.extend((mode != Mode::Sector).then_some("--map=dev"));
    let title = format!("a namespace in {region}: {}, /dev/{}", mode.name(), coming.device);
    let made = Act::run(words);
    let destroyed = Act::run(["ndctl", "destroy-namespace", "--force", &coming.name]);
    let is_it = Check::Says { path: format!("{BUS}/{seed}/uuid").into(), text: coming.uuid.clone() };
    draft.step(Step::new(title, made).undo(destroyed).undo_if(is_it));
    used(draft, &coming, mode)
}

/// A region is divided at multiples of its alignment.
fn aligned(draft: &Draft<'_>, region: &str) -> Result<(), Error> {
    let text = draft.host.root().text(format!("{BUS}/{region}/align")).unwrap_or_default();
    let align = u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or(1).max(1);
    match draft.wish.size.filter(|size| !size.is_multiple_of(align)) {
        None => Ok(()),
        Some(size) => Err(Error::refused(format!(
            "{region} can only be divided at multiples of {align} bytes: --size {}",
            size.div_ceil(align) * align
        ))),
    }
}

/// A namespace that holds nothing gets another mode.
pub fn changed(draft: &mut Draft<'_>, name: &str) -> Result<(), Error> {
    let found = draft.machine.pmem.namespaces.iter().find(|space| space.name == name).cloned();
    let found = found.ok_or_else(|| {
        Error::refused(format!("there is no {name}: seawall provision lists what there is"))
    })?;
    describe(draft, &region(draft, &found.region)?);
    if draft.wish.size.is_some() {
        return Err(Error::refused(format!(
            "{name} already has its size: --size is for a region's free part"
        )));
    }
    let mode = draft.wish.mode.unwrap_or(Mode::Fsdax);
    let device = held(draft, &found)?;
    draft.need(Check::program("ndctl", "ndctl"));
    let reconfigured = |mode: &str| {
        let (which, to) = (format!("--reconfig={name}"), format!("--mode={mode}"));
        Act::run(["ndctl", "create-namespace", "--force", &which, &to])
    };
    let coming = Coming {
        name: name.to_owned(),
        uuid: String::new(),
        device: device_of(name, mode),
        bytes: found.bytes,
    };
    let step = Step::new(
        format!("{name} becomes {}, /dev/{}", mode.name(), coming.device),
        reconfigured(mode.name()),
    );
    draft.step(step.needs(Check::Empty { device }).undo(reconfigured(found.mode)));
    used(draft, &coming, mode)
}

/// The block device by which one sees what it holds.
fn held(draft: &mut Draft<'_>, found: &Namespace) -> Result<PathBuf, Error> {
    let device = found.device.as_ref().filter(|device| device.starts_with("pmem"));
    let device = device.ok_or_else(|| {
        Error::refused(format!(
            "{} is in mode {} and has no block device, so it cannot be seen whether it holds anything: ndctl \
             destroy-namespace gives it up, and its region is then free",
            found.name, found.mode
        ))
    })?;
    let device = PathBuf::from("/dev").join(device);
    draft.need(Check::Empty { device: device.clone() });
    Ok(device)
}

fn used(draft: &mut Draft<'_>, coming: &Coming, mode: Mode) -> Result<(), Error> {
    let wants_files = draft.wish.mount.is_some() || draft.wish.pool.is_some();
    match (mode, draft.wish.mount.clone()) {
        (Mode::Memory, _) if wants_files => {
            Err(Error::refused("a device that becomes memory can hold neither a mount nor a pool"))
        }
        (Mode::Memory, _) => {
            memory::of_namespace(draft, coming);
            Ok(())
        }
        (Mode::Devdax, _) if wants_files => Err(Error::refused(
            "a devdax device holds no file system, and a pool is a file: --mode fsdax with --mount",
        )),
        (Mode::Devdax, _) => {
            belongs(draft, coming);
            Ok(())
        }
        (_, Some(point)) => {
            let device = Device {
                path: PathBuf::from("/dev").join(&coming.device),
                bytes: coming.bytes,
                check: check(coming),
                dax: mode == Mode::Fsdax,
                goes: true,
            };
            filled::file_system(draft, &device, &point)
        }
        (_, None) if draft.wish.pool.is_some() => {
            Err(Error::refused("a pool in persistent memory is a file: give --mount DIR"))
        }
        (_, None) => Ok(()),
    }
}

/// One without a UUID of its own was not made by this plan, and was found empty.
fn check(coming: &Coming) -> Option<Check> {
    let Coming { name, uuid, device, .. } = coming;
    (!uuid.is_empty()).then(|| Check::Namespace {
        name: name.clone(),
        uuid: uuid.clone(),
        device: device.clone(),
    })
}

/// A devdax device, and its owner after each start.
fn belongs(draft: &mut Draft<'_>, coming: &Coming) {
    let Some(owner) = draft.wish.owner.clone() else { return };
    let device = format!("/dev/{}", coming.device);
    let title = format!("{device} belongs to {}", owner.user);
    if !draft.has_udev() {
        draft.step(Step::new(title, Act::run(["chown", &owner.both(), &device])));
        draft.plan.about.push(NO_UDEV.into());
        return;
    }
    let rule = format!(
        "SUBSYSTEM==\"dax\", KERNEL==\"{}\", KERNELS==\"region{}\", OWNER=\"{}\", GROUP=\"{}\", MODE=\"0660\"\n",
        coming.device,
        number(&coming.name),
        owner.user,
        owner.group
    );
    rules(draft, title, &rule, &["--subsystem-match=dax"]);
}

/// Said where nobody gives devices their owners.
pub const NO_UDEV: &str = "udev does not run here: after a restart the device belongs to root again";

/// A rule of udev, in force at once.
pub fn rules(draft: &mut Draft<'_>, title: String, rule: &str, which: &[&str]) {
    let path = PathBuf::from(format!("/etc/udev/rules.d/70-seawall-{}.rules", draft.name()));
    let reload = || Act::run(["udevadm", "control", "--reload"]);
    let trigger = ["udevadm", "trigger", "--action=change", "--settle"];
    let again = || Act::run(trigger.iter().chain(which).copied());
    draft.step(Step::file(title, path, rule).around([reload(), again()], [], [reload(), again()]));
}

fn region(draft: &Draft<'_>, name: &str) -> Result<Region, Error> {
    let found = draft.machine.pmem.regions.iter().find(|region| region.name == name).cloned();
    found.ok_or_else(|| Error::refused(format!("there is no {name}: seawall provision lists what there is")))
}

fn describe(draft: &mut Draft<'_>, region: &Region) {
    let survives = match region.domain.as_str() {
        "cpu_cache" => "data in the processors' caches survives a power cut (eADR)",
        "memory_controller" => {
            "data that was flushed out of the processors' caches survives a power cut (ADR)"
        }
        _ if region.virtio => "data that the host has written survives a power cut",
        _ => "the platform does not say which data survives a power cut",
    };
    draft
        .plan
        .about
        .push(format!("{}: {} bytes, {} free; {survives}", region.name, region.bytes, region.free));
}

/// `0` of `region0`, `namespace0.1`
fn number(name: &str) -> &str {
    let digits = name.trim_start_matches(|c: char| c.is_ascii_alphabetic());
    digits.split('.').next().unwrap_or(digits)
}

/// As the kernel will call its device: `pmem0` of `namespace0.0`, `pmem0.1` of `namespace0.1`, an `s` behind a sector
/// device.
fn device_of(namespace: &str, mode: Mode) -> String {
    let numbers = namespace.trim_start_matches("namespace");
    let short = numbers.strip_suffix(".0").unwrap_or(numbers);
    match mode {
        Mode::Fsdax => format!("pmem{short}"),
        Mode::Sector => format!("pmem{short}s"),
        Mode::Devdax | Mode::Memory => format!("dax{numbers}"),
    }
}
