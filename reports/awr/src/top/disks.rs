//! The disks of virtual machines in a frame: a line for each.

use seawall_page::scale::{bytes, digits};

use super::screen::{Page, Paint};
use crate::disks::Disk;

/// What their guests asked for since the last look; nothing where there are none.
pub fn lines(out: &mut Page, before: &[Disk], now: &[Disk], seconds: f64) {
    if now.is_empty() {
        return;
    }
    out.line(Paint::Plain, "");
    out.line(Paint::Dim, &row(["guest", "reads/s", "read/s", "writes/s", "written/s", "flushes/s"], "disk"));
    for disk in now {
        let earlier = before.iter().find(|earlier| earlier.image == disk.image);
        let grown = |i: usize| {
            // Another process counts anew.
            let earlier = earlier.map_or(0, |earlier| earlier.counts[i]);
            disk.counts[i].checked_sub(earlier).unwrap_or(disk.counts[i]) as f64 / seconds
        };
        let speed = |i: usize| format!("{}/s", bytes(grown(i)));
        let guest = match disk.queues {
            0 => "none".into(),
            1 => "1 queue".into(),
            n => format!("{n} queues"),
        };
        let cells = [guest, digits(grown(0)), speed(1), digits(grown(2)), speed(3), digits(grown(4))];
        let image = out.tail(&disk.image.display().to_string(), 67);
        out.line(Paint::Plain, &row(cells.each_ref().map(String::as_str), &image));
    }
}

fn row(cells: [&str; 6], path: &str) -> String {
    let [guest, reads, read, writes, written, flushes] = cells;
    format!("{guest:<9}{reads:>9}{read:>13}{writes:>10}{written:>13}{flushes:>11}  {path}")
}
