//! Distributions of durations on a logarithmic scale: one outline a series.

use std::fmt::Write;

use super::frame::{BOTTOM, HEIGHT, LEFT, RIGHT, class, figure, vertical_axis, y};
use crate::escape;
use crate::scale::{thousands, time};

/// Shares of waits by duration.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    /// What it shows.
    pub title: String,
    /// Names, and (lower border in ns, count), rising.
    pub series: Vec<(String, Vec<(u64, u64)>)>,
}

impl Distribution {
    /// One outline for each series.
    pub(super) fn draw(&self) -> String {
        let series: Vec<_> = self.series.iter().filter(|(_, buckets)| total(buckets) > 0).collect();
        let used =
            || series.iter().flat_map(|(_, b)| b.iter().filter(|(_, n)| *n > 0).map(|(floor, _)| *floor));
        let low = (used().min().unwrap_or(1).max(1) as f64).log10().floor();
        let high = ((used().max().unwrap_or(10) as f64) * 1.3).log10().ceil().max(low + 1.0);
        let x =
            |ns: f64| LEFT + ((ns.max(1.0).log10() - low) / (high - low)).clamp(0.0, 1.0) * (RIGHT - LEFT);
        let share = |buckets: &[(u64, u64)], n: u64| n as f64 * 100.0 / total(buckets) as f64;
        let highest =
            series.iter().flat_map(|(_, b)| b.iter().map(|(_, n)| share(b, *n))).fold(0.0, f64::max);
        let top = if highest > 0.0 { highest * 1.06 } else { 1.0 };
        let mut plane = vertical_axis(top);
        for decade in low as i32..=high as i32 {
            let at = 10f64.powi(decade);
            let _ = writeln!(
                plane,
                "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"26\" y2=\"{BOTTOM}\" class=\"grid\"/>\
                 <text x=\"{0:.1}\" y=\"{1:.1}\" class=\"middle\">{2}</text>",
                x(at),
                HEIGHT - 10.0,
                time(at)
            );
        }
        for (i, (name, buckets)) in series.iter().enumerate() {
            let mut shape = format!("M{:.1} {BOTTOM}", x(first_used(buckets) as f64));
            for (k, (floor, n)) in buckets.iter().enumerate() {
                let end = buckets.get(k + 1).map_or(*floor as f64 * 1.25, |(next, _)| *next as f64);
                let _ = write!(
                    shape,
                    "L{:.1} {2:.1}L{:.1} {2:.1}",
                    x(*floor as f64),
                    x(end),
                    y(share(buckets, *n), top)
                );
            }
            let _ = writeln!(
                plane,
                "<path d=\"{shape}\" class=\"line {}\"><title>{}: {} waits</title></path>",
                class(i),
                escape(name),
                thousands(total(buckets) as f64)
            );
        }
        let names: Vec<&str> = series.iter().map(|(name, _)| name.as_str()).collect();
        figure(&self.title, "% of waits", &names, &plane, HEIGHT)
    }
}

fn total(buckets: &[(u64, u64)]) -> u64 {
    buckets.iter().map(|(_, n)| n).sum()
}

fn first_used(buckets: &[(u64, u64)]) -> u64 {
    buckets.iter().find(|(_, n)| *n > 0).map_or(1, |(floor, _)| *floor)
}
