//! The clock that databases ask a million times, and who may step it.

use crate::finding::{Finding, Sure};
use crate::view::View;

/// Clocks that take a system call, or an exit to the hypervisor.
const SLOW: [&str; 5] = ["hpet", "acpi_pm", "jiffies", "refined-jiffies", "xen"];

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    slow(view).into_iter().chain(steps(view)).collect()
}

fn steps(view: &View<'_>) -> Option<Finding> {
    let (name, setting) =
        view.machine.cpu.steps.as_ref().filter(|_| view.is_whole || view.database.is_some())?;
    Some(
        Finding::information("clock-may-step", *name)
            .what(format!("{name} may step the clock at any time ({setting})"))
            .why(
                "After a step back, the same times come twice: keys expire late, leases of clusters overlap, \
                 and a replay of a log may find files that are younger than the log. A clock that is slewed \
                 has none of these problems",
            )
            .sure(Sure::Medium, "whether it ever has to step the clock is not visible from here")
            .type_in("# chrony: makestep 1 3 steps in the first three updates only; then: systemctl restart chrony"),
    )
}

fn slow(view: &View<'_>) -> Vec<Finding> {
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
                "Each reading is a system call that takes a microsecond or more instead of some 20 ns: \
                 track_io_timing, EXPLAIN ANALYZE and performance_schema become expensive",
            )
            .sure(
                if better.is_some() { Sure::High } else { Sure::Medium },
                "the kernel may have found tsc unstable on this machine",
            )
            .type_in(mend)
            .type_in("pg_test_timing"),
    ]
}
