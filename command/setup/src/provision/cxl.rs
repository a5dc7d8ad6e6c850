//! A CXL memory device: a region of its persistent part, with what goes on that, or of its volatile part, as memory.

use std::path::PathBuf;

use super::draft::{Draft, Mode};
use super::memory;
use super::namespace::fresh;
use crate::error::Error;
use crate::plan::{Act, Check, Step};
use crate::unit;

const BUS: &str = "/sys/bus/cxl/devices";

/// A region of one device. Which of its parts: what was asked for, `memory` or files, else the one it has.
pub fn region(draft: &mut Draft<'_>, name: &str) -> Result<(), Error> {
    let found = draft.machine.cxl.memory.iter().find(|device| device.name == name).cloned();
    let found = found.ok_or_else(|| {
        Error::refused(format!("there is no CXL device {name}: seawall provision lists what there is"))
    })?;
    draft
        .plan
        .about
        .push(format!("{name}: {} bytes volatile, {} persistent", found.volatile, found.persistent));
    let as_memory = draft.wish.mode == Some(Mode::Memory) || found.persistent == 0;
    if as_memory && (draft.wish.mount.is_some() || draft.wish.pool.is_some()) {
        return Err(Error::refused(format!(
            "{name} has no persistent part: it can only become memory (--mode memory)"
        )));
    }
    if as_memory && found.volatile == 0 {
        return Err(Error::refused(format!(
            "{name} has no volatile part. Its persistent part becomes a region first, and then memory: seawall provision {name}, \
             then seawall provision regionN --mode memory"
        )));
    }
    if as_memory { volatile(draft, name, found.volatile) } else { persistent(draft, name, found.persistent) }
}

fn persistent(draft: &mut Draft<'_>, name: &str, bytes: u64) -> Result<(), Error> {
    created(draft, name)?;
    let number =
        (0..).find(|n| !draft.host.root().has(format!("/sys/bus/nd/devices/region{n}"))).unwrap_or(0);
    let region = format!("region{number}");
    let seed = format!("namespace{number}.0");
    draft.step(Step::new(
        format!("the kernel makes {region} of it"),
        Act::Await { path: format!("/sys/bus/nd/devices/{region}/namespace_seed").into() },
    ));
    fresh(draft, &region, &seed, bytes)
}

/// Volatile regions are forgotten at a restart, so a unit makes it again.
fn volatile(draft: &mut Draft<'_>, name: &str, bytes: u64) -> Result<(), Error> {
    let decoder = decoder(draft, "ram")?;
    let region = ready(draft, &decoder, "ram");
    let made = by_hand(draft, name, &decoder, &region, draft.wish.size.unwrap_or(bytes))?;
    let device = format!("dax{}.0", region.trim_start_matches("region"));
    if unit::runs(draft.host.root()) {
        at_start(draft, name, &device, &made);
    }
    draft.need(Check::program("cxl", "ndctl"));
    let destroyed = Act::run(["cxl", "destroy-region", "--force", &region]);
    draft.step(Step::new(format!("a region (ram) of {name}"), made).undo(destroyed));
    memory::onlined(draft, &device, None);
    Ok(())
}

/// What `cxl create-region -t ram` does. That of ndctl 76 (Debian 12) says that it cannot find the size out, and ends as if
/// it had made one.
fn by_hand(draft: &Draft<'_>, name: &str, root: &str, region: &str, bytes: u64) -> Result<Act, Error> {
    let endpoint = endpoint(draft, name)?;
    let at = |path: String| PathBuf::from(BUS).join(path);
    let set = |path: PathBuf, value: &str| Act::Set { path, value: value.to_owned() };
    let size = format!("{bytes:#x}");
    Ok(Act::All(vec![
        set(at(format!("{root}/create_ram_region")), region),
        set(at(format!("{region}/interleave_granularity")), "256"),
        set(at(format!("{region}/interleave_ways")), "1"),
        set(at(format!("{endpoint}/mode")), "ram"),
        set(at(format!("{endpoint}/dpa_size")), &size),
        set(at(format!("{region}/size")), &size),
        set(at(format!("{region}/target0")), &endpoint),
        set(at(format!("{region}/commit")), "1"),
        set("/sys/bus/cxl/drivers/cxl_region/bind".into(), region),
    ]))
}

/// The device's own decoder that nobody uses.
fn endpoint(draft: &Draft<'_>, name: &str) -> Result<String, Error> {
    let root = draft.host.root();
    let is_its = |endpoint: &String| {
        let port = root.resolve(&PathBuf::from(BUS).join(endpoint).join("uport"));
        endpoint.starts_with("endpoint") && port.is_ok_and(|port| port.ends_with(name))
    };
    let found = root.names(BUS).into_iter().find(is_its);
    let number = found.as_deref().map(|endpoint| endpoint.trim_start_matches("endpoint").to_owned());
    let is_free = |decoder: &String| {
        let of_it = number.as_ref().is_some_and(|number| decoder.starts_with(&format!("decoder{number}.")));
        of_it && root.text(format!("{BUS}/{decoder}/mode")).as_deref() == Some("none")
    };
    root.names(BUS).into_iter().find(is_free).ok_or_else(|| {
        Error::refused(format!("{name} is not reachable, or all of it is in regions: cxl list -M -E -D -R"))
    })
}

/// The name that the kernel has ready for the next region.
fn ready(draft: &Draft<'_>, decoder: &str, kind: &str) -> String {
    let name = draft.host.root().text(format!("{BUS}/{decoder}/create_{kind}_region"));
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "region0".into())
}

/// A persistent region.
fn created(draft: &mut Draft<'_>, name: &str) -> Result<(), Error> {
    draft.need(Check::program("cxl", "ndctl"));
    let decoder = decoder(draft, "pmem")?;
    let region = ready(draft, &decoder, "pmem");
    // Its UUID cannot be chosen (ndctl 76 makes one of its own), so a plan's undoing knows its namespace again, and not it.
    let made = Act::run(["cxl", "create-region", "-m", "-d", &decoder, "-w", "1", "-t", "pmem", name]);
    let there = Act::Await { path: format!("{BUS}/{region}").into() };
    let destroyed = Act::run(["cxl", "destroy-region", "--force", &region]);
    let title = format!("a region (pmem) of {name}");
    draft.step(Step::new(title, Act::All(vec![made, there])).undo(destroyed));
    Ok(())
}

/// A window of the platform's address space that takes memory of this kind.
fn decoder(draft: &Draft<'_>, kind: &str) -> Result<String, Error> {
    let root = draft.host.root();
    let takes = |name: &String| {
        // decoder0.N: the root's.
        name.starts_with("decoder0.") && root.text(format!("{BUS}/{name}/cap_{kind}")).as_deref() == Some("1")
    };
    let found = root.names(BUS).into_iter().find(takes);
    found.ok_or_else(|| {
        Error::refused(format!(
            "the platform has no window for CXL memory of this kind ({kind}): cxl list -D"
        ))
    })
}

fn at_start(draft: &mut Draft<'_>, memory: &str, device: &str, made: &Act) {
    let name = format!("seawall-{}.service", draft.name());
    let made = made.lines().join(" && ");
    let text = format!(
        "[Unit]\nDescription=CXL memory {memory} as memory (seawall provision)\nDefaultDependencies=no\nAfter=systemd-udevd.service\n\
         Before=local-fs.target\nConditionPathExists=!/sys/bus/dax/devices/{device}\n\n[Service]\nType=oneshot\nRemainAfterExit=yes\n\
         ExecStart=/bin/sh -ec '{made}'\n\
         ExecStart=daxctl reconfigure-device --force --mode=system-ram {device}\n\n[Install]\nWantedBy=local-fs.target\n"
    );
    draft.step(unit::enabled("the same after each start", &name, &text));
}
