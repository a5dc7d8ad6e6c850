//! What all charts have: a figure with a heading and a legend, a plane, a vertical axis.

use std::fmt::Write;

use crate::escape;
use crate::scale::{digits, ticks};

pub const WIDTH: f64 = 860.0;
pub const HEIGHT: f64 = 250.0;
pub const LEFT: f64 = 58.0;
pub const RIGHT: f64 = WIDTH - 28.0;
pub const TOP: f64 = 26.0;
pub const BOTTOM: f64 = HEIGHT - 30.0;

/// Colours of the style sheet; from the ninth series on all are of the last one.
pub fn class(series: usize) -> String {
    format!("c{}", (series + 1).min(8))
}

/// Height of a value on a plane that ends at `top`.
pub fn y(value: f64, top: f64) -> f64 {
    BOTTOM - (value / top).clamp(0.0, 1.0) * (BOTTOM - TOP)
}

/// The figure around a plane that ends at `height`.
pub fn figure(title: &str, unit: &str, names: &[&str], plane: &str, height: f64) -> String {
    let keys: String = names
        .iter()
        .enumerate()
        .map(|(i, name)| format!("<span><i class=\"key {}\"></i>{}</span>", class(i), escape(name)))
        .collect();
    format!(
        "<figure><h3>{title}</h3>\n<p class=\"legend\">{keys}</p>\n<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         aria-label=\"{title}\"><text x=\"0\" y=\"14\" class=\"unit\">{}</text>\n{plane}</svg></figure>\n",
        escape(unit),
        title = escape(title),
    )
}

/// Grid lines and figures up to `top`.
pub fn vertical_axis(top: f64) -> String {
    let mut out = String::new();
    for tick in ticks(top) {
        let (y, class) = (y(tick, top), if tick == 0.0 { "base" } else { "grid" });
        let _ = writeln!(
            out,
            "<line x1=\"{LEFT}\" x2=\"{RIGHT}\" y1=\"{y:.1}\" y2=\"{y:.1}\" class=\"{class}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" class=\"tick\">{}</text>",
            LEFT - 6.0,
            y + 4.0,
            digits(tick)
        );
    }
    out
}
