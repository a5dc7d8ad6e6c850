//! Whether the sides did equal work: what each commit changed and logged.

use super::Results;
use crate::trial::record::Work;

/// Rows a commit may differ by this much, in percent: statistics are flushed a moment after the load ends.
const ROWS: f64 = 3.0;
/// Redo a commit: above this, in percent, we report the difference. More commits after a checkpoint share one image of each page.
const REDO: f64 = 10.0;

/// What one configuration did, all turns together.
pub fn work(results: &Results, name: &str) -> Work {
    let mut sum = Work::default();
    for turn in results.turns(name) {
        sum.commits += turn.work.commits;
        sum.rows += turn.work.rows;
        sum.wal_bytes += turn.work.wal_bytes;
        sum.wal_images += turn.work.wal_images;
    }
    sum
}

/// What differs from the baseline, in words; nothing if nothing does.
pub fn differences(results: &Results) -> Vec<String> {
    let base = work(results, &results.case.baseline().name);
    let mut said = Vec::new();
    for c in &results.configurations {
        said.extend(difference(&c.title, &base, &work(results, &c.name)));
    }
    said
}

fn difference(title: &str, base: &Work, mine: &Work) -> Vec<String> {
    let mut said = Vec::new();
    let percent = |of: fn(&Work) -> f64| {
        let (mine, base) = (of(mine) / mine.commits, of(base) / base.commits);
        (mine / base - 1.0) * 100.0
    };
    let rows = percent(|w| w.rows);
    if rows.is_finite() && rows.abs() > ROWS {
        said.push(format!(
            "Unequal work: a commit changed {rows:+.0} % rows under “{title}”. Their rates do not compare."
        ));
    }
    let redo = percent(|w| w.wal_bytes);
    if redo.is_finite() && redo.abs() > REDO {
        let images = |w: &Work| w.wal_images / w.commits;
        said.push(format!(
            "Redo a commit differs: {redo:+.0} % under “{title}” ({:.2} page images a commit, {:.2} in the baseline). The same rows; \
             the more commits follow a checkpoint, the fewer of them are the first to change a page.",
            images(mine),
            images(base)
        ));
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unequal_work_is_told() {
        let base = Work { commits: 100.0, rows: 200.0, wal_bytes: 1e5, wal_images: 50.0 };
        assert!(
            difference("x", &base, &Work { commits: 200.0, rows: 400.0, wal_bytes: 2e5, wal_images: 100.0 })
                .is_empty()
        );
        let fewer =
            difference("x", &base, &Work { commits: 200.0, rows: 200.0, wal_bytes: 2e5, wal_images: 100.0 });
        assert!(fewer[0].contains("Unequal work") && fewer[0].contains("-50 %"), "{fewer:?}");
        let redo =
            difference("x", &base, &Work { commits: 200.0, rows: 400.0, wal_bytes: 1e5, wal_images: 50.0 });
        assert!(redo[0].contains("0.25 page images"), "{redo:?}");
    }
}
