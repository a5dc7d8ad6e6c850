//! The charts of a report.

use seawall_page::chart::{Chart, Distribution, OverTime};

use crate::period::{Period, Wait};

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
    let timed = part.waits.iter().filter(|w| !w.buckets.is_empty());
    let series: Vec<_> = timed.map(|w| (w.name.clone(), outline(&w.buckets))).collect();
    let title = "How long Seawall's waits took".into();
    (!series.is_empty()).then_some(Chart::Distribution(Distribution { title, series }))
}

/// What writers waited, by class of file: the log's writes and the data files' are different things.
pub fn latency_by_class(period: &Period) -> Option<Chart> {
    let part = period.seawall.as_ref()?;
    let seen = |w: &&Wait| w.name == "log file sync" && !w.buckets.is_empty();
    let series: Vec<_> =
        part.class_waits.iter().filter(seen).map(|w| (w.class.clone(), outline(&w.buckets))).collect();
    let title = "How long durable writes took, by class of file".into();
    (series.len() > 1).then_some(Chart::Distribution(Distribution { title, series }))
}

/// The histogram with an empty bucket wherever there is a gap, so that the line falls to zero there.
fn outline(buckets: &[(u64, u64)]) -> Vec<(u64, u64)> {
    // Four buckets an octave, as Seawall's statistics count.
    let end = |floor: u64| floor + (1 << (floor.max(4).ilog2() - 2));
    let mut outline = Vec::new();
    for (i, (floor, n)) in buckets.iter().enumerate() {
        outline.push((*floor, *n));
        if buckets.get(i + 1).is_none_or(|(next, _)| *next != end(*floor)) {
            outline.push((end(*floor), 0));
        }
    }
    outline
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_gap_is_drawn_as_one() {
        let found = super::outline(&[(1024, 5), (1280, 2), (4096, 1)]);
        assert_eq!(found, [(1024, 5), (1280, 2), (1536, 0), (4096, 1), (5120, 0)]);
    }
}
