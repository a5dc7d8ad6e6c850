//! The machine's sections, as sar shows them.

use seawall_page::scale::{bytes, digits};
use seawall_page::{Block, Section, Table};

use super::charts;
use crate::period::Period;

/// CPU, pressure, memory.
pub fn machine(period: &Period) -> Section {
    let mut section = Section::new("Machine: CPU, Pressure, Memory");
    let machine = &period.machine;
    let mut cpu = Table::new(
        "CPU (sar -u)",
        &["<", "%user", "%system", "%iowait", "%steal", "%idle", "load at start", "at end"],
    );
    let share = |state: &str| format!("{:.2}", machine.cpu.get(state).copied().unwrap_or(0.0));
    let states = ["user", "system", "iowait", "steal", "idle"].map(share);
    let load = machine.load.map(|load| format!("{load:.2}"));
    cpu.row([vec!["all".to_owned()], states.to_vec(), load.to_vec()].concat());
    section.table(cpu).chart(charts::cpu(period));
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
    let memory = |name: &str| Some((name.to_owned(), bytes(*machine.memory.get(name)?)));
    let names = ["MemTotal", "MemAvailable", "Cached", "Dirty", "Writeback", "SwapFree"];
    let mut facts: Vec<_> = names.into_iter().filter_map(memory).collect();
    facts.extend(machine.rates.iter().map(|(name, rate)| (format!("{name}/s"), digits(*rate))));
    section.blocks.push(Block::Facts(facts));
    section
}

/// Disks.
pub fn disks(period: &Period) -> Section {
    let mut section = Section::new("Machine: Disks");
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
