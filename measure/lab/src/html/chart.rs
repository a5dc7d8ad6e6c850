//! The chart: grouped columns with their spread, one panel a load, each an inline SVG.
//!
//! Panels of the same database share a scale (so they can be compared); another database has its own. They
//! stand side by side where there is room, and below each other where there is none. Colours come from the
//! page's style sheet; the unsafe bound is hatched too, so that nothing depends on colour alone.

use std::fmt::Write;

use seawall_page::escape;
use seawall_page::scale::ticks;

use crate::demo::Row;
use crate::side::Side;
use crate::spread::Spread;
use crate::table::{short, thousands};

const HEIGHT: f64 = 330.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 44.0;
const AXIS: f64 = 52.0;
const BAR: f64 = 24.0;
const BAR_GAP: f64 = 3.0;
const CLUSTER_GAP: f64 = 26.0;

struct Panel<'a> {
    title: &'a str,
    rows: Vec<&'a Row>,
    rounds: usize,
    top: f64,
}

/// The panels.
pub fn figures(rows: &[Row], rounds: usize) -> String {
    let mut out = String::from("<div class=\"panels\">\n");
    out += HATCH;
    for panel in panels(rows, rounds) {
        let width = panel.width();
        let _ = writeln!(
            out,
            "<svg viewBox=\"0 0 {width:.0} {HEIGHT:.0}\" role=\"img\" aria-label=\"{}: transactions per second; the \
             table below has the numbers\" style=\"flex:{width:.0} 1 {:.0}px;max-width:{:.0}px\">",
            escape(panel.title),
            width * 0.68,
            width * 1.15
        );
        panel.draw(&mut out);
        out += "</svg>\n";
    }
    out + "</div>\n"
}

/// One definition for all panels, in an element of its own.
const HATCH: &str = "<svg width=\"0\" height=\"0\" style=\"position:absolute\"><defs><pattern id=\"hatch\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
    patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" class=\"hatch-ground\"/>\
    <line x1=\"0\" y1=\"0\" x2=\"0\" y2=\"6\" class=\"hatch-line\"/></pattern></defs></svg>\n";

fn panels(rows: &[Row], rounds: usize) -> Vec<Panel<'_>> {
    let mut panels: Vec<Panel> = Vec::new();
    for row in rows {
        match panels.last_mut() {
            Some(panel) if panel.title == row.group => panel.rows.push(row),
            _ => panels.push(Panel { title: &row.group, rows: vec![row], rounds, top: 0.0 }),
        }
    }
    let database = |title: &str| title.split(',').next().unwrap_or_default().to_owned();
    for panel in &mut panels {
        let mine = database(panel.title);
        let alike = rows.iter().filter(|row| database(&row.group) == mine);
        let highest = alike.flat_map(|r| [r.tps.fs.max, r.tps.seawall.max, r.tps.unsafe_bound.max]);
        panel.top = highest.fold(1.0, f64::max) * 1.06;
    }
    panels
}

impl Panel<'_> {
    fn width(&self) -> f64 {
        AXIS + self.rows.len() as f64 * (3.0 * (BAR + BAR_GAP) + CLUSTER_GAP)
    }

    fn y(&self, value: f64) -> f64 {
        HEIGHT - BOTTOM - value / self.top * (HEIGHT - TOP - BOTTOM)
    }

    fn draw(&self, out: &mut String) {
        let right = self.width();
        let _ = writeln!(out, "<text x=\"0\" y=\"18\" class=\"panel\">{}</text>", escape(self.title));
        let _ = writeln!(out, "<text x=\"0\" y=\"36\" class=\"unit\">transactions per second</text>");
        for tick in ticks(self.top) {
            let y = self.y(tick);
            let class = if tick == 0.0 { "base" } else { "grid" };
            let _ = writeln!(
                out,
                "<line x1=\"{AXIS:.1}\" x2=\"{right:.1}\" y1=\"{y:.1}\" y2=\"{y:.1}\" class=\"{class}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" class=\"tick\">{}</text>",
                AXIS - 6.0,
                y + 4.0,
                axis_label(tick)
            );
        }
        let mut x = AXIS + CLUSTER_GAP / 2.0;
        for row in &self.rows {
            self.cluster(out, x, row);
            x += 3.0 * (BAR + BAR_GAP) + CLUSTER_GAP;
        }
    }

    fn cluster(&self, out: &mut String, left: f64, row: &Row) {
        let tps = &row.tps;
        let bars = [
            (Side::Fs, "Bare file system", tps.fs),
            (Side::Seawall, "Seawall", tps.seawall),
            (Side::Unsafe, "Unsafe bound", tps.unsafe_bound),
        ];
        for (i, (side, name, spread)) in bars.into_iter().enumerate() {
            let x = left + i as f64 * (BAR + BAR_GAP);
            self.bar(out, x, side, &format!("{name}, {}", row.label), spread);
        }
        let middle = left + 1.5 * (BAR + BAR_GAP) - BAR_GAP / 2.0;
        // Ends where Seawall's column ends: to its right may stand a higher one, to its left hardly ever.
        let end = left + 2.0 * BAR + BAR_GAP;
        let gain_y = self.y(tps.seawall.max.max(tps.fs.max)) - 8.0;
        if tps.verdict(self.rounds).is_shown() {
            let gain = short(tps.speedup.median);
            let _ = writeln!(out, "<text x=\"{end:.1}\" y=\"{gain_y:.1}\" class=\"gain\">{gain}×</text>");
        }
        let label_y = HEIGHT - BOTTOM + 20.0;
        let label = escape(&row.label);
        let _ = writeln!(out, "<text x=\"{middle:.1}\" y=\"{label_y:.1}\" class=\"label\">{label}</text>");
    }

    fn bar(&self, out: &mut String, x: f64, side: Side, name: &str, spread: Spread) {
        let (top, base) = (self.y(spread.median), self.y(0.0));
        let (low, high) = (self.y(spread.min), self.y(spread.max));
        let middle = x + BAR / 2.0;
        let _ = writeln!(
            out,
            "<g><title>{}: {} tps ({}–{})</title>\
             <path d=\"M{x:.1} {base:.1}V{:.1}q0 -3 3 -3h{:.1}q3 0 3 3V{base:.1}z\" class=\"{}\"/>\
             <path d=\"M{middle:.1} {low:.1}V{high:.1}M{:.1} {low:.1}h8M{:.1} {high:.1}h8\" class=\"spread\"/></g>",
            escape(name),
            thousands(spread.median),
            thousands(spread.min),
            thousands(spread.max),
            (top + 3.0).min(base),
            BAR - 6.0,
            side.name(),
            middle - 4.0,
            middle - 4.0
        );
    }
}

fn axis_label(value: f64) -> String {
    if value >= 1000.0 && value % 500.0 == 0.0 { format!("{}k", value / 1000.0) } else { thousands(value) }
}
