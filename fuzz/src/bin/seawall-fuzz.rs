//! libFuzzer's entry. `SEAWALL_FUZZ` names the target.
#![no_main]

use std::sync::LazyLock;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let name = std::env::var("SEAWALL_FUZZ").unwrap_or_default();
    let found = seawall_fuzz::TARGETS.iter().find(|(target, _)| *target == name);
    found.expect("SEAWALL_FUZZ names a target: answers, disk, image, keeper, messages, settings").1
});

libfuzzer_sys::fuzz_target!(|data: &[u8]| TARGET(data));
