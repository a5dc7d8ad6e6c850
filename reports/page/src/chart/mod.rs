//! Charts as inline SVG: lines and stacked areas over time, distributions on a logarithmic scale.
//!
//! Colours are classes of the style sheet, so that one file is right in light, dark and print; every chart has
//! a legend in words and a `title` per series.

mod distribution;
mod frame;
mod over_time;
mod spread;

pub use distribution::Distribution;
pub use over_time::OverTime;
pub use spread::Spread;

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

impl Chart {
    /// The chart as a `figure`.
    pub fn svg(&self) -> String {
        match self {
            Self::Lines(data) => data.draw(false),
            Self::Stacked(data) => data.draw(true),
            Self::Distribution(data) => data.draw(),
            Self::Spread(data) => data.draw(),
        }
    }
}
