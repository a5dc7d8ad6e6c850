//! Lines and stacked areas over time.

use std::fmt::Write;

use super::frame::{BOTTOM, HEIGHT, LEFT, RIGHT, class, figure, vertical_axis, y};
use crate::escape;
use crate::scale::{digits, ticks};

/// Series over the same points in time.
#[derive(Clone, Debug, Default)]
pub struct OverTime {
    /// What it shows.
    pub title: String,
    /// The unit of the values.
    pub unit: String,
    /// Seconds since the beginning, rising.
    pub seconds: Vec<f64>,
    /// Names, and a value for each point.
    pub series: Vec<(String, Vec<f64>)>,
}

impl OverTime {
    /// Lines, or the series on top of each other.
    pub(super) fn draw(&self, stacked: bool) -> String {
        let tops = upper_edges(self, stacked);
        let highest = tops.iter().flatten().copied().filter(|v| v.is_finite()).fold(0.0, f64::max);
        let top = match highest {
            // A share is of a whole: half of it shall look like half.
            highest if self.unit.starts_with('%') => f64::max(highest, 100.0),
            0.0 => 1.0,
            highest => highest * 1.06,
        };
        let mut plane = vertical_axis(top) + &time_axis(self);
        let zero = vec![0.0; self.seconds.len()];
        for (i, (name, values)) in self.series.iter().enumerate() {
            let below = if i == 0 { &zero } else { &tops[i - 1] };
            let shape = if stacked { area(self, &tops[i], below, top) } else { path(self, &tops[i], top) };
            let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
            let kind = if stacked { "area" } else { "line" };
            let _ = writeln!(
                plane,
                "<path d=\"{shape}\" class=\"{kind} {}\"><title>{}: {} {} on average</title></path>",
                class(i),
                escape(name),
                digits(mean),
                escape(&self.unit)
            );
        }
        let names: Vec<&str> = self.series.iter().map(|(name, _)| name.as_str()).collect();
        figure(&self.title, &self.unit, &names, &plane, HEIGHT)
    }
}

/// Where each series ends: its values, or the sum of those up to it.
fn upper_edges(data: &OverTime, stacked: bool) -> Vec<Vec<f64>> {
    let mut sum = vec![0.0; data.seconds.len()];
    let edge = |(_, values): &(String, Vec<f64>)| {
        sum.iter_mut()
            .zip(values)
            .for_each(|(sum, value)| *sum = if stacked { *sum + value } else { *value });
        sum.clone()
    };
    data.series.iter().map(edge).collect()
}

fn x(data: &OverTime, seconds: f64) -> f64 {
    let (first, last) =
        (data.seconds.first().copied().unwrap_or(0.0), data.seconds.last().copied().unwrap_or(1.0));
    LEFT + (seconds - first) / (last - first).max(1e-9) * (RIGHT - LEFT)
}

fn path(data: &OverTime, values: &[f64], top: f64) -> String {
    let point = |(i, (s, v)): (usize, (&f64, &f64))| {
        format!("{}{:.1} {:.1}", if i == 0 { 'M' } else { 'L' }, x(data, *s), y(*v, top))
    };
    data.seconds.iter().zip(values).enumerate().map(point).collect()
}

fn area(data: &OverTime, upper: &[f64], lower: &[f64], top: f64) -> String {
    let back = data.seconds.iter().zip(lower).rev();
    let back: String = back.map(|(s, v)| format!("L{:.1} {:.1}", x(data, *s), y(*v, top))).collect();
    format!("{}{back}Z", path(data, upper, top))
}

fn time_axis(data: &OverTime) -> String {
    let last = data.seconds.last().copied().unwrap_or(0.0);
    let (unit, name) = if last >= 7200.0 {
        (3600.0, "h")
    } else if last >= 180.0 {
        (60.0, "min")
    } else {
        (1.0, "s")
    };
    let first = data.seconds.first().copied().unwrap_or(0.0);
    let mut out = String::new();
    for tick in ticks((last / unit).max(1e-9)).into_iter().filter(|t| t * unit >= first) {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" class=\"middle\">{} {name}</text>",
            x(data, tick * unit),
            HEIGHT - 10.0,
            digits(tick)
        );
    }
    out + &format!("<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{BOTTOM}\" y2=\"{BOTTOM}\" class=\"base\"/>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stack_ends_at_the_sum() {
        let series = vec![("a".into(), vec![1.0, 2.0]), ("b".into(), vec![10.0, 20.0])];
        let data = OverTime { seconds: vec![0.0, 1.0], series, ..OverTime::default() };
        assert_eq!(upper_edges(&data, true)[1], [11.0, 22.0]);
        assert_eq!(upper_edges(&data, false)[1], [10.0, 20.0]);
        assert!(!data.draw(true).contains("NaN"));
    }

    #[test]
    fn one_point_or_none_is_drawn_without_a_fault() {
        for seconds in [vec![], vec![0.0]] {
            let series = vec![("a".into(), vec![0.0; seconds.len()])];
            assert!(!OverTime { seconds, series, ..OverTime::default() }.draw(true).contains("NaN"));
        }
    }
}
