//! What the lab measured of redo and data together or apart (`seawall-lab run layout`), for the plan to say.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

/// A wish is judged by this.
const MEASURE: &str = "throughput";

/// One line of it.
pub fn of(results: &Path, apart: bool) -> String {
    let chosen = if apart { "apart" } else { "together" };
    match read(results) {
        Some(Figure { ratio, low, high, rounds }) => format!(
            "redo and data: {chosen}. Measured here: apart has {ratio:.2} × the transactions of together ({low:.2}–{high:.2}, {rounds} \
             rounds; {})",
            results.display()
        ),
        None => format!(
            "redo and data: {chosen}. It has not been measured here which is better: use seawall-lab run \
             layout, with --apart DIR on the other disk"
        ),
    }
}

struct Figure {
    ratio: f64,
    low: f64,
    high: f64,
    rounds: usize,
}

/// The last trial's rounds, each compared in itself.
fn read(results: &Path) -> Option<Figure> {
    let text = std::fs::read_to_string(results).ok()?;
    let lines: Vec<Value> = text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let last = lines.iter().rev().find(|line| line["kind"] == "run")?["id"].as_str()?.to_owned();
    let mut rounds: BTreeMap<u64, BTreeMap<String, f64>> = BTreeMap::new();
    for turn in lines.iter().filter(|line| line["kind"] == "turn" && line["run"] == last.as_str()) {
        let name = turn["configuration"].as_str()?.to_owned();
        rounds.entry(turn["round"].as_u64()?).or_default().insert(name, turn["figures"][MEASURE].as_f64()?);
    }
    let ratio = |round: &BTreeMap<String, f64>| Some(round.get("own-device")? / round.get("together")?);
    let mut ratios: Vec<f64> = rounds.values().filter_map(ratio).collect();
    ratios.sort_by(f64::total_cmp);
    let (low, high) = (*ratios.first()?, *ratios.last()?);
    Some(Figure { ratio: ratios[ratios.len() / 2], low, high, rounds: ratios.len() })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_last_trial_s_rounds_are_compared_each_in_itself() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let mut text = String::from("{\"kind\":\"run\",\"id\":\"1\"}\n{\"kind\":\"run\",\"id\":\"2\"}\n");
        for (run, round, name, value) in [
            (1, 0, "together", 1.0),
            (1, 0, "own-device", 9.0),
            (2, 0, "together", 100.0),
            (2, 0, "own-device", 190.0),
        ] {
            text += &format!(
                "{{\"kind\":\"turn\",\"run\":\"{run}\",\"round\":{round},\"configuration\":\"{name}\",\"figures\":{{\"throughput\":{value}}}}}\n"
            );
        }
        std::fs::write(file.path(), text + "{cut").expect("written");
        let line = super::of(file.path(), true);
        assert!(
            line.contains("apart has 1.90 × the transactions of together (1.90–1.90, 1 rounds"),
            "{line}"
        );
        assert!(super::of("/nowhere".as_ref(), false).contains("has not been measured"));
    }
}
