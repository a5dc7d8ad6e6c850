//! The charts of a report.

use seawall_page::chart::{Chart, Distribution, OverTime};

use crate::period::Period;

fn over_time(
    title: &str,
    unit: &str,
    (seconds, series): &(Vec<f64>, Vec<(String, Vec<f64>)>),
) -> Option<OverTime> {
    let drawable = seconds.len() > 1 && !series.is_empty();
    drawable.then(|| OverTime {
        title: title.into(),
        unit: unit.into(),
        seconds: seconds.clone(),
        series: series.clone(),
    })
}

/// DB time by wait class.
pub fn activity(period: &Period) -> Option<Chart> {
    over_time("DB time by wait class", "active sessions", &period.timeline.activity).map(Chart::Stacked)
}

/// CPU by state.
pub fn cpu(period: &Period) -> Option<Chart> {
    over_time("CPU", "% of all CPUs", &period.timeline.cpu).map(Chart::Stacked)
}

/// Disks.
pub fn disks(period: &Period) -> Option<Chart> {
    over_time("Disks", "% of the time busy", &period.timeline.disks).map(Chart::Lines)
}

/// Latencies that Seawall measured; the waits worth a look.
pub fn latency(period: &Period) -> Option<Chart> {
    let part = period.seawall.as_ref()?;
    let series: Vec<_> = part
        .waits
        .iter()
        .filter(|w| !w.buckets.is_empty())
        .map(|w| (w.name.clone(), w.buckets.clone()))
        .collect();
    let title = "How long Seawall's waits took".into();
    (!series.is_empty()).then_some(Chart::Distribution(Distribution { title, series }))
}
