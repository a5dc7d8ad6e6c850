//! Prometheus' text format, version 0.0.4.

use std::collections::BTreeMap;
use std::fmt::Write;

/// What a metric is.
#[derive(Clone, Copy)]
pub enum Kind {
    /// Goes up and down.
    Gauge,
    /// Only goes up.
    Counter,
}

/// Metrics, each with its help and type once, whatever order they came in.
#[derive(Default)]
pub struct Exposition {
    metrics: BTreeMap<String, (String, String)>,
}

impl Exposition {
    /// One value.
    pub fn value(&mut self, name: &str, kind: Kind, help: &str, labels: &[(&str, &str)], value: f64) {
        let kind = match kind {
            Kind::Gauge => "gauge",
            Kind::Counter => "counter",
        };
        let line = format!("{name}{} {value}\n", braces(labels, None));
        self.lines(name, kind, help).push_str(&line);
    }

    /// One histogram: upper borders with cumulative counts, the sum, and how many in all.
    pub fn histogram(
        &mut self,
        name: &str,
        help: &str,
        label: (&str, &str),
        borders: &[(f64, u64)],
        sum: f64,
        count: u64,
    ) {
        let mut text = String::new();
        for (border, n) in borders {
            let _ = writeln!(text, "{name}_bucket{} {n}", braces(&[label], Some(&border.to_string())));
        }
        let _ = writeln!(text, "{name}_bucket{} {count}", braces(&[label], Some("+Inf")));
        let _ = writeln!(
            text,
            "{name}_sum{} {sum}\n{name}_count{} {count}",
            braces(&[label], None),
            braces(&[label], None)
        );
        self.lines(name, "histogram", help).push_str(&text);
    }

    fn lines(&mut self, name: &str, kind: &str, help: &str) -> &mut String {
        let head = || (format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"), String::new());
        &mut self.metrics.entry(name.to_owned()).or_insert_with(head).1
    }

    /// All of it.
    pub fn text(&self) -> String {
        self.metrics.values().map(|(head, lines)| format!("{head}{lines}")).collect()
    }
}

/// Of a histogram whose buckets have these lower borders in ns: one upper border for each power of two, in seconds, and how
/// many are below.
pub fn borders(buckets: &[(u64, u64)]) -> Vec<(f64, u64)> {
    let mut octaves: BTreeMap<u32, u64> = BTreeMap::new();
    for (floor, n) in buckets {
        *octaves.entry(floor.max(&1).ilog2() + 1).or_default() += n;
    }
    let mut sum = 0;
    let border = |(power, n): (u32, u64)| {
        sum += n;
        (2f64.powi(power as i32) / 1e9, sum)
    };
    octaves.into_iter().map(border).collect()
}

fn braces(labels: &[(&str, &str)], border: Option<&str>) -> String {
    let escaped = |value: &str| value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let all = labels.iter().copied().chain(border.map(|border| ("le", border)));
    let inside: Vec<_> = all.map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    if inside.is_empty() { String::new() } else { format!("{{{}}}", inside.join(",")) }
}
