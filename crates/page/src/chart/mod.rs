//! Charts as inline SVG: lines and stacked areas over time, distributions on a logarithmic scale.
//!
//! Colours are classes of the style sheet, so that one file is right in light, dark and print; every chart has
//! a legend in words and a `title` per series.

mod distribution;
mod frame;
mod over_time;
mod spread;

/// A chart.
#[derive(Clone, Debug)]
pub enum Chart {
    /// One line a series.
    Lines(OverTime),
    /// The series on top of each other.
    Stacked(OverTime),
    /// How often something took how long.
    Distribution(Distribution),
    /// Repeated measurements of several things.
    Spread(Spread),
}

/// Repeated measurements, a row each.
#[derive(Clone, Debug, Default)]
pub struct Spread {
    /// What it shows.
    pub title: String,
    /// The unit of the values.
    pub unit: String,
    /// Names and values.
    pub rows: Vec<(String, Vec<f64>)>,
}

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

/// Shares of waits by duration.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    /// What it shows.
    pub title: String,
    /// Names, and (lower border in ns, count), rising.
    pub series: Vec<(String, Vec<(u64, u64)>)>,
}

impl Chart {
    /// The chart as a `figure`.
    pub fn svg(&self) -> String {
        match self {
            Self::Lines(data) => over_time::draw(data, false),
            Self::Stacked(data) => over_time::draw(data, true),
            Self::Distribution(data) => distribution::draw(data),
            Self::Spread(data) => spread::draw(data),
        }
    }
}
