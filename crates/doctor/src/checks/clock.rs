//! The clock that databases ask a million times.

use crate::finding::{Finding, Sure};
use crate::view::View;

/// Clocks that take a system call, or an exit to the hypervisor.
const SLOW: [&str; 5] = ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "xen"];

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let cpu = &view.machine.cpu;
    if !SLOW.contains(&cpu.clock.as_str()) {
        return Vec::new();
    }
    let better = ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page"]
        .into_iter()
        .find(|name| cpu.clocks.iter().any(|c| c == name));
    let mend = match better {
        Some(name) => {
            format!("echo {name} > /sys/devices/system/clocksource/clocksource0/current_clocksource")
        }
        None => "dmesg | grep -i -e tsc -e clocksource      # why the kernel gave tsc up".to_owned(),
    };
    vec![
        Finding::speed("slow-clock", "clocksource")
            .what(format!("The kernel reads time from {}", cpu.clock))
            .why(
                "Each reading is a system call of a microsecond or more instead of some 20 ns: track_io_timing, EXPLAIN ANALYZE and \
                 performance_schema become expensive",
            )
            .sure(if better.is_some() { Sure::High } else { Sure::Medium }, "the kernel may have found tsc unstable on this machine")
            .type_in(mend)
            .type_in("pg_test_timing"),
    ]
}
