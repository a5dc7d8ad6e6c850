//! Persistent memory: the nd bus, its regions, namespaces and modules.

use std::path::Path;

use crate::root::Root;

const BUS: &str = "/sys/bus/nd/devices";

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Pmem {
    /// The providers that found it: `ACPI.NFIT`, `e820`, `virtio-pmem`, `cxl`.
    pub providers: Vec<String>,
    /// Ranges of persistent memory.
    pub regions: Vec<Region>,
    /// What they are divided into.
    pub namespaces: Vec<Namespace>,
    /// Modules.
    pub dimms: Vec<Dimm>,
}

/// A range that is interleaved over modules.
#[derive(Clone, Debug, Default)]
pub struct Region {
    /// `region0`
    pub name: String,
    /// Bytes.
    pub bytes: u64,
    /// Bytes that no namespace has.
    pub free: u64,
    /// Modules it is interleaved over.
    pub ways: u32,
    /// What a power cut leaves: `cpu_cache`, `memory_controller`, or empty.
    pub domain: String,
    /// It is virtio-pmem: a flush is a request to the host, as for a disk.
    pub virtio: bool,
    /// The memory node it is of.
    pub node: Option<u32>,
    /// Ranges that cannot be read.
    pub bad_blocks: usize,
}

/// A namespace, with the device that it is used by.
#[derive(Clone, Debug, Default)]
pub struct Namespace {
    /// `namespace0.0`
    pub name: String,
    /// Its region.
    pub region: String,
    /// `raw`, `sector`, `fsdax` or `devdax`, as ndctl calls them.
    pub mode: &'static str,
    /// Bytes.
    pub bytes: u64,
    /// To what its pages are aligned, where it has such.
    pub align: Option<u64>,
    /// The block device or device file: `pmem0`, `dax0.0`.
    pub device: Option<String>,
}

/// A module.
#[derive(Clone, Debug, Default)]
pub struct Dimm {
    /// `nmem0`
    pub name: String,
    /// Troubles, as the firmware names them: `not_armed`, `save_fail` …
    pub flags: Vec<String>,
    /// How often it lost power before all was saved.
    pub dirty_shutdowns: Option<u64>,
}

/// Reads it.
pub fn read(root: &Root) -> Pmem {
    let mut pmem = Pmem::default();
    for name in root.names(BUS) {
        let at = Path::new(BUS).join(&name);
        match name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.') {
            "ndbus" => pmem.providers.extend(root.text(at.join("provider"))),
            "region" => pmem.regions.extend(region(root, &name, &at)),
            "namespace" => pmem.namespaces.extend(namespace(root, &name, &at)),
            "nmem" => pmem.dimms.push(dimm(root, &name, &at)),
            _ => {}
        }
    }
    pmem
}

fn region(root: &Root, name: &str, at: &Path) -> Option<Region> {
    let number = |file: &str| root.number(at.join(file));
    Some(Region {
        name: name.into(),
        bytes: number("size")?,
        free: number("available_size").unwrap_or(0),
        ways: root.number(at.join("mappings")).unwrap_or(0),
        domain: root.text(at.join("persistence_domain")).unwrap_or_default(),
        virtio: root.resolve(at).is_ok_and(|real| real.to_string_lossy().contains("/virtio")),
        node: root.number::<i32>(at.join("numa_node")).and_then(|node| node.try_into().ok()),
        bad_blocks: root
            .text(at.join("badblocks"))
            .map_or(0, |list| list.lines().filter(|l| !l.is_empty()).count()),
    })
}

fn namespace(root: &Root, name: &str, at: &Path) -> Option<Namespace> {
    // A seed of a namespace to come has no size.
    let bytes = root.number::<u64>(at.join("size")).filter(|bytes| *bytes > 0)?;
    let holder = root.text(at.join("holder")).filter(|holder| !holder.is_empty());
    let owner = holder.map_or_else(|| at.to_owned(), |holder| Path::new(BUS).join(holder));
    let block = || root.names(owner.join("block")).into_iter().next();
    let file = || root.names(&owner).into_iter().find(|name| name.starts_with("dax") && name.contains('.'));
    let number = name.trim_start_matches("namespace").split('.').next()?;
    Some(Namespace {
        name: name.into(),
        region: format!("region{number}"),
        mode: match root.text(at.join("mode"))?.as_str() {
            "memory" => "fsdax",
            "dax" => "devdax",
            "safe" => "sector",
            _ => "raw",
        },
        bytes,
        align: root.number(owner.join("align")),
        device: block().or_else(file),
    })
}

fn dimm(root: &Root, name: &str, at: &Path) -> Dimm {
    let flags = root.text(at.join("nfit/flags")).unwrap_or_default();
    Dimm {
        name: name.into(),
        flags: flags.split_whitespace().map(str::to_owned).collect(),
        dirty_shutdowns: root.number(at.join("nfit/dirty_shutdown")),
    }
}
