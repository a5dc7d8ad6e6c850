//! Answers in a sentence: how much a gain can come from what was made faster; how many cores it buys.

use super::Results;
use super::judge::judge;
use crate::case::{Configuration, Front, Measure, Role};
use crate::table::short;
use crate::verdict::Verdict;

/// A sentence for each candidate.
pub fn candidates(results: &Results) -> Vec<(Verdict, String)> {
    let shown = results.configurations.iter().filter(|c| c.again_of.is_none() && c.role != Role::Baseline);
    shown.map(|c| sentence(results, c)).collect()
}

fn sentence(results: &Results, c: &Configuration) -> (Verdict, String) {
    let judged = judge(results, &c.name);
    let title = &c.title;
    let measure = results.case.judged();
    let mut said = match (judged.verdict, judged.ratio) {
        (Verdict::Better | Verdict::Worse, Some(ratio)) => format!(
            "{title}: {} × the baseline's {} ({}–{}): {}.",
            short(ratio.median),
            measure.title(),
            short(ratio.min),
            short(ratio.max),
            judged.verdict.in_words()
        ),
        (verdict, _) => format!("{title}: {}.", verdict.in_words()),
    };
    if judged.verdict == Verdict::Better
        && measure == Measure::Throughput
        && let Some(bound) = bound(results, judged.ratio.map_or(1.0, |r| r.median))
    {
        said += &bound;
    }
    (judged.verdict, said)
}

/// What can come of making the wait nothing at all, at most, and whether the gain is more than that.
fn bound(results: &Results, gain: f64) -> Option<String> {
    let wait = &results.case.sped_up;
    let share = results.share(&results.case.baseline().name, wait)?;
    let most = 100.0 / (100.0 - share.min(99.9));
    let rest = if gain > most * 1.1 {
        " That is more than this wait explains: the rest came from elsewhere (sessions that wait for each other less, CPUs \
         that are no longer woken for every sync)."
    } else {
        ""
    };
    Some(format!(
        " {wait} was {share:.0} % of the baseline's DB time: taking all of it away could bring {} × at most.{rest}",
        short(most)
    ))
}

/// How many cores Seawall is worth, where CPUs were varied on both sides.
pub fn cores(results: &Results) -> Vec<String> {
    let cpus = |c: &Configuration| {
        let set = c.cpus.map(|n| n as f64);
        match (set, c.cpu_max) {
            (Some(set), Some(max)) => Some(set.min(max)),
            (set, max) => set.or(max),
        }
    };
    let of = |front: fn(&Configuration) -> bool| -> Vec<(f64, f64, String)> {
        let all = results.configurations.iter().filter(|c| c.again_of.is_none() && front(c));
        all.filter_map(|c| {
            Some((cpus(c)?, results.spread(&c.name, Measure::Throughput)?.median, c.title.clone()))
        })
        .collect()
    };
    let bare = of(|c| c.front == Front::None);
    let seawall = of(|c| c.front != Front::None);
    if bare.len() < 2 {
        return Vec::new();
    }
    seawall.iter().map(|(cpus, rate, title)| compare(*cpus, *rate, title, &bare)).collect()
}

fn compare(cpus: f64, rate: f64, title: &str, bare: &[(f64, f64, String)]) -> String {
    let mut line: Vec<(f64, f64)> = bare.iter().map(|(cpus, rate, _)| (*cpus, *rate)).collect();
    line.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.total_cmp(&b.1)));
    // Of two ways to have as many CPUs the better one counts for the old storage.
    line.dedup_by(|later, earlier| {
        later.0 == earlier.0 && {
            earlier.1 = earlier.1.max(later.1);
            true
        }
    });
    let (most_cpus, most) = line.last().copied().unwrap_or((0.0, 0.0));
    let worth = if rate >= most {
        format!("more than the old storage gives with all {} CPUs it was measured with", short(most_cpus))
    } else {
        match at(&line, rate) {
            Some(x) => {
                format!("as much as the old storage with {} CPUs, between its measured points", short(x))
            }
            None => "less than the old storage with the fewest CPUs it was measured with".to_owned(),
        }
    };
    format!("{title} ({} CPUs): {} transactions/s, {worth}.", short(cpus), crate::table::thousands(rate))
}

/// Where a line through the points has this rate.
fn at(line: &[(f64, f64)], rate: f64) -> Option<f64> {
    line.windows(2).find_map(|pair| {
        let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
        (y0 <= rate && rate <= y1 && y1 > y0).then(|| x0 + (rate - y0) / (y1 - y0) * (x1 - x0))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cores_are_read_off_the_old_storages_own_line() {
        let bare = [(2.0, 200.0, String::new()), (1.0, 100.0, String::new()), (1.0, 90.0, String::new())];
        assert!(compare(1.0, 150.0, "x", &bare).contains("with 1.50 CPUs"));
        assert!(compare(1.0, 250.0, "x", &bare).contains("more than the old storage gives with all 2.00"));
        assert!(compare(1.0, 50.0, "x", &bare).contains("less than"));
    }
}
