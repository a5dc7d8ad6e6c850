//! Processors: how many, what they do when they are idle, at what frequency they run, and by which clock time is read.

use crate::root::Root;

/// All of it.
#[derive(Clone, Debug, Default)]
pub struct Cpu {
    /// Processors.
    pub count: usize,
    /// A hypervisor runs this machine.
    pub hypervisor: bool,
    /// For how many nanoseconds it looks for work before a halt, where the governor is haltpoll.
    pub halt_poll_ns: Option<u64>,
    /// The driver and the governor of frequencies.
    pub frequency: Option<(String, String)>,
    /// The clock in use.
    pub clock: String,
    /// Those that could be used.
    pub clocks: Vec<String>,
    /// What keeps the clock, and the setting by which it may step it at any time.
    pub steps: Option<(&'static str, String)>,
    /// Processes run in a container, as far as files tell.
    pub container: Option<&'static str>,
}

const CLOCK: &str = "/sys/devices/system/clocksource/clocksource0";
const IDLE: &str = "/sys/devices/system/cpu/cpuidle";
const FREQUENCY: &str = "/sys/devices/system/cpu/cpu0/cpufreq";

/// Reads it.
pub fn read(root: &Root, processes: &[(String, String)]) -> Cpu {
    let info = root.text("/proc/cpuinfo").unwrap_or_default();
    let flags = info.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    let governor = ["current_governor_ro", "current_governor"];
    let idle = governor.iter().find_map(|name| root.text(format!("{IDLE}/{name}"))).unwrap_or_default();
    let polls = || root.number("/sys/module/haltpoll/parameters/guest_halt_poll_ns");
    let word = |name: &str| root.text(format!("{FREQUENCY}/{name}"));
    Cpu {
        count: info.lines().filter(|line| line.starts_with("processor")).count(),
        hypervisor: flags.split_whitespace().any(|flag| flag == "hypervisor"),
        halt_poll_ns: if idle == "haltpoll" { polls() } else { None },
        frequency: word("scaling_driver").zip(word("scaling_governor")),
        clock: root.text(format!("{CLOCK}/current_clocksource")).unwrap_or_default(),
        clocks: words(&root.text(format!("{CLOCK}/available_clocksource")).unwrap_or_default()),
        steps: steps(root, processes),
        container: container(root),
    }
}

fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// chrony steps where `makestep` has no end; systemd-timesyncd steps whatever is more than 0.4 s away.
fn steps(root: &Root, processes: &[(String, String)]) -> Option<(&'static str, String)> {
    let runs = |name: &str| processes.iter().any(|(_, comm)| comm == name);
    if runs("systemd-timesyn") {
        return Some(("systemd-timesyncd", "any offset of more than 0.4 s".into()));
    }
    let files = ["/etc/chrony/chrony.conf", "/etc/chrony.conf"];
    let text = files.iter().find_map(|file| root.text(file)).filter(|_| runs("chronyd"))?;
    let setting = text.lines().map(str::trim).find(|line| line.starts_with("makestep "))?;
    let limit: i64 = setting.split_whitespace().nth(2)?.parse().ok()?;
    (limit < 0).then(|| ("chronyd", setting.to_owned()))
}

fn container(root: &Root) -> Option<&'static str> {
    let files = [("/.dockerenv", "Docker"), ("/run/.containerenv", "Podman")];
    let by_file = files.iter().find(|(path, _)| root.has(path)).map(|(_, name)| *name);
    by_file.or_else(|| root.has("/var/run/secrets/kubernetes.io").then_some("Kubernetes"))
}
