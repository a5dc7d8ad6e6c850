//! Swap under a database.

use crate::finding::{Finding, Sure};
use crate::view::View;

/// Less than this is what every machine swaps out and never wants back.
const NOTICED: u64 = 64 << 20;

/// The findings.
pub fn check(view: &View<'_>) -> Vec<Finding> {
    let memory = &view.machine.memory;
    let used: u64 = memory.swaps.iter().map(|swap| swap.used).sum();
    let in_use = (used >= NOTICED).then(|| {
        Finding::speed("swap-in-use", &memory.swaps[0].path)
            .what(format!("{} MiB are swapped out", used >> 20))
            .why(
                "A database whose buffers are swapped out waits for the disk where it expects memory, while \
                 it holds locks",
            )
            .sure(Sure::Medium, "Seawall did not examine whose pages they are")
            .type_in("grep VmSwap /proc/[0-9]*/status | sort -k2 -n | tail")
            .type_in("sysctl -w vm.swappiness=1")
    });
    let process = view.database.as_ref().and_then(|found| found.process.as_ref());
    let server = process.filter(|process| process.swapped >= NOTICED).map(|process| {
        Finding::speed("server-swapped-out", format!("process {}", process.pid))
            .what(format!(
                "{} MiB of the server, process {}, are swapped out",
                process.swapped >> 20,
                process.pid
            ))
            .why("It waits for the disk where it expects memory, while it holds locks")
            .type_in("sysctl -w vm.swappiness=1      # and less for shared_buffers or the buffer pool")
    });
    let eager =
        memory.swappiness.filter(|level| *level > 10 && !memory.swaps.is_empty() && view.database.is_some());
    let eager = eager.filter(|_| used < NOTICED).map(|level| {
        Finding::information("swappiness", "vm.swappiness")
            .what(format!("The machine has swap, and vm.swappiness is {level}"))
            .why("The kernel may swap a database's buffers out to make room for cached files, which the database has cached itself")
            .sure(Sure::Low, "it depends on how much memory is free")
            .type_in("sysctl -w vm.swappiness=1")
    });
    in_use.into_iter().chain(server).chain(eager).collect()
}
