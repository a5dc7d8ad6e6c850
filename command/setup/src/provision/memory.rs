//! A dax device, of persistent memory or of CXL memory, as memory of the kernel's: a node of its own without processors.

use std::path::PathBuf;

use super::draft::{Coming, Draft};
use crate::error::Error;
use crate::plan::{Act, Check, Step};

/// A device that is there.
pub fn of_device(draft: &mut Draft<'_>, name: &str) -> Result<(), Error> {
    let found = draft.machine.cxl.dax.iter().find(|device| device.name == name).cloned();
    let found = found.ok_or_else(|| {
        Error::refused(format!("there is no {name}: seawall provision lists what there is"))
    })?;
    if found.as_memory {
        return Err(Error::refused(format!("{name} is already memory: seawall tier shows it")));
    }
    if found.of_pmem {
        return Err(Error::refused(format!(
            "{name} is persistent memory, and it cannot be seen whether it holds anything. ndctl \
             destroy-namespace gives its content up; then: seawall provision region{} --mode memory",
            name.trim_start_matches("dax").split('.').next().unwrap_or_default()
        )));
    }
    if draft.wish.mount.is_some() || draft.wish.pool.is_some() || draft.wish.owner.is_some() {
        return Err(Error::refused(format!(
            "{name} is volatile memory: it can hold neither a mount nor a pool"
        )));
    }
    onlined(draft, name, None);
    Ok(())
}

/// A namespace that is to be: daxctl finds it again after each start by its UUID.
pub fn of_namespace(draft: &mut Draft<'_>, coming: &Coming) {
    let lasting = (!coming.uuid.is_empty()).then_some(coming.uuid.as_str());
    onlined(draft, &coming.device, lasting);
}

/// The device becomes memory, which only what can be moved again may use: else it could never be given back.
pub fn onlined(draft: &mut Draft<'_>, device: &str, namespace: Option<&str>) {
    draft.need(Check::program("daxctl", "daxctl"));
    let about = "Memory of this kind is for a large cache: its content is lost at a power cut, whatever it \
                 is made of";
    draft.plan.about.push(about.into());
    if let Some(uuid) = namespace {
        let path = PathBuf::from(format!("/etc/daxctl.conf.d/seawall-{}.conf", draft.name()));
        let text = format!(
            "[reconfigure-device {}]\nnvdimm.uuid = {uuid}\nmode = system-ram\nonline = true\nmovable = true\n",
            draft.name()
        );
        draft.step(Step::file("the same after each start (daxctl's own service)", path, &text));
    } else {
        draft.plan.about.push(format!("After a restart the kernel decides what {device} becomes"));
    }
    let there = Act::Await { path: format!("/sys/bus/dax/devices/{device}").into() };
    let memory = Act::run(["daxctl", "reconfigure-device", "--force", "--mode=system-ram", device]);
    let back = Act::run(["daxctl", "reconfigure-device", "--force", "--mode=devdax", device]);
    draft.step(
        Step::new(format!("{device} becomes memory of a node of its own"), Act::All(vec![there, memory]))
            .undo(back),
    );
    draft.plan.next.push("seawall tier                    # the nodes, and what to put where".into());
}
