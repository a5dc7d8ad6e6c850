//! Repeated measurements: a dot each, and a line at the median.

use std::fmt::Write;

use super::frame::{LEFT, RIGHT, class, figure};
use crate::escape;
use crate::scale::{digits, ticks};

const FIRST: f64 = 46.0;
const ROW: f64 = 52.0;

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

impl Spread {
    /// A dot for each measurement, and a line at the median.
    pub(super) fn draw(&self) -> String {
        let highest = self.rows.iter().flat_map(|(_, values)| values).copied().fold(0.0, f64::max);
        let top = if highest > 0.0 { highest * 1.06 } else { 1.0 };
        // Zero is always there; what lies below it makes room for itself.
        let bottom = self.rows.iter().flat_map(|(_, values)| values).copied().fold(0.0, f64::min) * 1.06;
        let left = names_width(self).max(LEFT);
        let x = |value: f64| left + (value - bottom) / (top - bottom) * (RIGHT - left);
        let end = FIRST + ROW * self.rows.len() as f64 - 20.0;
        let mut plane = String::new();
        let above = ticks(top.max(-bottom));
        let below = above.iter().skip(1).map(|tick| -tick);
        let shown = above.iter().copied().chain(below).filter(|tick| (bottom..=top).contains(tick));
        for tick in shown {
            let _ = writeln!(
                plane,
                "<line x1=\"{0:.1}\" x2=\"{0:.1}\" y1=\"26\" y2=\"{end:.1}\" class=\"grid\"/>\
                 <text x=\"{0:.1}\" y=\"{1:.1}\" class=\"middle\">{2}</text>",
                x(tick),
                end + 18.0,
                digits(tick)
            );
        }
        for (i, (name, values)) in self.rows.iter().enumerate() {
            let y = FIRST + ROW * i as f64;
            let _ = writeln!(
                plane,
                "<text x=\"{:.1}\" y=\"{:.1}\" class=\"tick\">{}</text>",
                left - 8.0,
                y + 4.0,
                escape(name)
            );
            for value in values {
                let dot = format!("<title>{}</title>", digits(*value));
                let _ = writeln!(
                    plane,
                    "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"5\" class=\"dot {}\">{dot}</circle>",
                    x(*value),
                    class(i)
                );
            }
            let middle = x(median(values));
            let _ = writeln!(
                plane,
                "<path d=\"M{middle:.1} {:.1}V{:.1}\" class=\"line {}\"/>",
                y - 14.0,
                y + 14.0,
                class(i)
            );
        }
        let names: Vec<&str> = self.rows.iter().map(|(name, _)| name.as_str()).collect();
        figure(&self.title, &self.unit, &names, &plane, end + 30.0)
    }
}

/// Room for the longest name, at the width of most letters.
fn names_width(data: &Spread) -> f64 {
    let longest = data.rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    longest as f64 * 6.8 + 14.0
}

fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => 0.0,
        n if n.is_multiple_of(2) => f64::midpoint(sorted[half - 1], sorted[half]),
        _ => sorted[half],
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn what_is_below_zero_has_room_and_ticks() {
        let rows = vec![("x".to_owned(), vec![-4.0, 1.0, 5.0])];
        let drawn = super::Spread { title: "T".into(), unit: "%".into(), rows }.draw();
        let dots: Vec<f64> =
            drawn.split("cx=\"").skip(1).filter_map(|rest| rest.split('"').next()?.parse().ok()).collect();
        assert!(dots.len() == 3 && dots.is_sorted() && dots[0] > super::LEFT, "{dots:?}");
        assert!(
            drawn.contains(">-4</text>") && drawn.contains(">0</text>") && drawn.contains(">4</text>"),
            "{drawn}"
        );
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(
            [super::median(&[]), super::median(&[3.0, 1.0, 2.0]), super::median(&[1.0, 4.0])],
            [0.0, 2.0, 2.5]
        );
    }
}
