//! A device, given back.

use crate::disk::HEAD_MIB;
use crate::plan::Act;

/// A device is as empty as it was before something was put on it.
pub fn emptied(device: &str) -> Act {
    let (of, count) = (format!("of={device}"), format!("count={HEAD_MIB}"));
    Act::All(vec![
        Act::run(["wipefs", "--all", "--quiet", device]),
        Act::run(["dd", "if=/dev/zero", &of, "bs=1M", &count, "conv=fsync", "status=none"]),
    ])
}
