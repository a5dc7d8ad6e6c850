//! The machine's sections: CPU and disks as sar shows them, operating system statistics.

use seawall_page::scale::{bytes, digits};
use seawall_page::{Block, Section, Table};

use super::charts;
use crate::period::Period;

/// CPU.
pub fn cpu(period: &Period) -> Section {
    let mut section = Section::new("Host CPU");
    let machine = &period.machine;
    let head = ["<", "%user", "%system", "%iowait", "%steal", "%idle", "load at start", "at end"];
    let mut cpu = Table::new("", &head);
    let share = |state: &str| format!("{:.2}", machine.cpu.get(state).copied().unwrap_or(0.0));
    let states = ["user", "system", "iowait", "steal", "idle"].map(share);
    let load = machine.load.map(|load| format!("{load:.2}"));
    cpu.row([vec!["all (sar -u)".to_owned()], states.to_vec(), load.to_vec()].concat());
    section.table(cpu).chart(charts::cpu(period));
    let own = period.db_cpu_s.filter(|_| machine.cpus > 0.0);
    if let Some(seconds) = own {
        section.words(format!(
            "Instance CPU: {} s, {} of {} CPUs on average ({:.1} % of the machine).",
            digits(seconds),
            digits(period.per_second(seconds)),
            machine.cpus,
            period.per_second(seconds) * 100.0 / machine.cpus
        ));
    }
    section
}

/// Memory, pressure, and what the kernel counts.
pub fn statistics(period: &Period) -> Section {
    let mut section = Section::new("Memory and Operating System Statistics");
    let machine = &period.machine;
    let mut pressure = Table::new(
        "Pressure stall: % of the time in which tasks were held up",
        &["<Resource", "some", "all"],
    );
    for what in ["cpu", "io", "memory"] {
        let of = |who: &str| {
            machine.pressure.get(&format!("{what} {who}")).map_or("–".into(), |v| format!("{v:.2}"))
        };
        if machine.pressure.contains_key(&format!("{what} some")) {
            pressure.row([what.to_owned(), of("some"), of("full")]);
        }
    }
    section.table(pressure);
    let memory = |(name, shown): (&str, &str)| Some((shown.to_owned(), bytes(*machine.memory.get(name)?)));
    let names = [
        ("MemTotal", "Memory"),
        ("MemAvailable", "available at the end"),
        ("Cached", "page cache"),
        ("Dirty", "dirty, not written yet"),
        ("Writeback", "being written"),
        ("SwapFree", "free swap"),
    ];
    let mut facts: Vec<_> = names.into_iter().filter_map(memory).collect();
    facts.extend(machine.rates.iter().map(|(name, rate)| (rate_name(name), digits(*rate))));
    section.blocks.extend((!facts.is_empty()).then_some(Block::Facts(facts)));
    section
}

/// The kernel's counters in words.
fn rate_name(name: &str) -> String {
    let words = match name {
        "pgmajfault" => "major page faults",
        "pgpgin" => "KiB read from disks",
        "pgpgout" => "KiB written to disks",
        "pswpin" => "pages swapped in",
        "pswpout" => "pages swapped out",
        "oom_kill" => "processes killed for want of memory",
        other => other,
    };
    format!("{words} a second")
}

/// Disks.
pub fn disks(period: &Period) -> Section {
    let mut section = Section::new("Disks");
    let head = ["<DEV (sar -d)", "tps", "rkB/s", "wkB/s", "areq-sz", "aqu-sz", "await", "%util", "flushes/s"];
    let mut table = Table::new("", &head);
    for disk in &period.machine.disks {
        let two = [
            disk.tps,
            disk.read_kb_s,
            disk.write_kb_s,
            disk.request_kb,
            disk.queue,
            disk.await_ms,
            disk.util,
            disk.flushes_s,
        ];
        table.row([vec![disk.name.clone()], two.map(|v| format!("{v:.2}")).to_vec()].concat());
    }
    section.table(table).chart(charts::disks(period));
    section
}
