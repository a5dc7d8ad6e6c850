//! libFuzzer's entry. `SEAWALL_FUZZ` names the target.
#![no_main]

use std::sync::LazyLock;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("SEAWALL_FUZZ").unwrap_or_default();
    let all = seawall_fuzz::TARGETS;
    let found = all.iter().find(|(target, _)| *target == name);
    found.unwrap_or_else(|| panic!("SEAWALL_FUZZ names a target: {:?}", all.map(|(target, _)| target))).1
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));
