//! The header: which database, which period, how it was captured.

use seawall_page::Document;
use seawall_page::scale::{bytes, digits};

use super::words::duration;
use crate::clock::utc;
use crate::model::Target;
use crate::period::Period;

/// A document without sections.
pub fn document(period: &Period) -> Document {
    let target = &period.target;
    let title = match target.product.as_str() {
        "machine" => format!("{}: the machine alone", target.host),
        product => format!("{product} {} on {}", short_version(target), target.host),
    };
    Document {
        brand: "Seawall · workload report".into(),
        title,
        medium: period.seawall.as_ref().map(|s| s.medium.clone()),
        facts: facts(period),
        sections: Vec::new(),
    }
}

/// Without what a distribution adds.
pub fn short_version(target: &Target) -> &str {
    target.version.split_whitespace().next().unwrap_or_default()
}

/// The lines of the header.
pub fn facts(period: &Period) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut fact = |name: &str, value: String| facts.push((name.to_owned(), value));
    if period.target.product != "machine" {
        fact("Database", format!("{} ({})", period.target.name, period.target.id));
    }
    fact("Period", format!("{} to {} (UTC)", utc(period.wall_ms[0]), utc(period.wall_ms[1])));
    let [first, last] = &period.snapshots;
    let label = |label: &str| if label.is_empty() { String::new() } else { format!(" “{label}”") };
    fact(
        "Snapshots",
        format!(
            "{}{} to {}{}, {} in all, {} activity samples",
            first.0,
            label(&first.1),
            last.0,
            label(&last.1),
            period.count,
            period.samples
        ),
    );
    fact("Elapsed", duration(period.elapsed_s));
    if let (Some(time), Some(active)) = (period.db_time_s, period.average_active()) {
        fact("DB time", format!("{}, {} active sessions on average", duration(time), digits(active)));
    }
    fact(
        "Seawall",
        match &period.seawall {
            Some(part) => format!("yes: {} ({})", part.medium, part.because),
            None => "not under this database, or not queried".into(),
        },
    );
    let machine = &period.machine;
    let word = |name: &str| machine.facts.get(name).cloned().unwrap_or_default();
    let memory = machine.memory.get("MemTotal").copied().unwrap_or_default();
    fact(
        "Machine",
        format!("{} CPUs ({}), {}, Linux {}", machine.cpus, word("cpu"), bytes(memory), word("kernel")),
    );
    for place in &period.storage {
        let word = |name: &str| place.get(name).map_or("", String::as_str);
        fact(
            if word("what") == "log" { "Log on" } else { "Data on" },
            format!("{}, {} of {}, DAX {}", word("path"), word("file system"), word("device"), word("dax")),
        );
    }
    fact("Capturing took", capture(period));
    facts
}

/// What the snapshots of this period cost.
fn capture(period: &Period) -> String {
    let server = match period.capture_server_s {
        Some(seconds) => format!("{} s in the server", digits(seconds)),
        None => "the server's work for it is not known".into(),
    };
    let all = period.capture_cpu_s + period.capture_server_s.unwrap_or(0.0);
    format!(
        "{} s of CPU time (snapshots: {}; samples included), {server}: {} % of one CPU",
        digits(period.capture_cpu_s),
        period.count.saturating_sub(1),
        digits(all * 100.0 / period.elapsed_s)
    )
}
