//! CXL memory, and memory devices (devdax) that the kernel may have taken for ordinary memory.

use std::path::Path;

use crate::root::Root;

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Cxl {
    /// CXL memory devices.
    pub memory: Vec<MemoryDevice>,
    /// Devices of the dax bus: of CXL memory, or of persistent memory.
    pub dax: Vec<DaxDevice>,
}

/// A CXL memory device.
#[derive(Clone, Debug, Default)]
pub struct MemoryDevice {
    /// `mem0`
    pub name: String,
    /// Bytes that a power cut empties.
    pub volatile: u64,
    /// Bytes that it does not.
    pub persistent: u64,
}

/// A device of the dax bus.
#[derive(Clone, Debug, Default)]
pub struct DaxDevice {
    /// `dax0.0`
    pub name: String,
    /// Bytes.
    pub bytes: u64,
    /// The kernel uses it as memory (system-ram).
    pub as_memory: bool,
    /// The memory node that it becomes then.
    pub node: Option<u32>,
    /// It is a namespace of persistent memory.
    pub of_pmem: bool,
}

/// Reads it.
pub fn read(root: &Root) -> Cxl {
    let devices = root.names("/sys/bus/cxl/devices").into_iter();
    let dax = root.names("/sys/bus/dax/devices");
    Cxl {
        memory: devices.filter_map(|name| memory(root, &name)).collect(),
        dax: dax.iter().filter_map(|name| device(root, name)).collect(),
    }
}

fn memory(root: &Root, name: &str) -> Option<MemoryDevice> {
    let number = name.strip_prefix("mem")?;
    number.parse::<u32>().ok()?;
    let at = Path::new("/sys/bus/cxl/devices").join(name);
    let bytes = |file: &str| root.text(at.join(file)).and_then(|text| hexadecimal(&text)).unwrap_or(0);
    Some(MemoryDevice { name: name.into(), volatile: bytes("ram/size"), persistent: bytes("pmem/size") })
}

fn hexadecimal(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn device(root: &Root, name: &str) -> Option<DaxDevice> {
    let at = Path::new("/sys/bus/dax/devices").join(name);
    let real = root.resolve(&at).ok()?;
    let place = real.to_string_lossy();
    let driver = root.resolve(&at.join("driver")).ok();
    Some(DaxDevice {
        name: name.into(),
        bytes: root.number(at.join("size"))?,
        as_memory: driver.is_some_and(|driver| driver.ends_with("kmem")),
        node: root.number::<i32>(at.join("target_node")).and_then(|node| node.try_into().ok()),
        of_pmem: place.contains("/ndbus"),
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn sizes_are_in_either_base() {
        assert_eq!(super::hexadecimal("0x10000000"), Some(256 << 20));
        assert_eq!(super::hexadecimal("512"), Some(512));
        assert_eq!(super::hexadecimal("none"), None);
    }
}
