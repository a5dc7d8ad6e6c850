//! A result's figures, as rows of a table.

use serde_json::Value;

/// A number with separators, or the text itself.
pub fn shown(value: &Value) -> String {
    let Some(number) = value.as_f64() else { return value.as_str().unwrap_or("–").to_owned() };
    let whole = format!("{number:.0}");
    let digits: Vec<char> = whole.chars().rev().collect();
    let groups: Vec<String> = digits.chunks(3).map(|group| group.iter().rev().collect()).collect();
    groups.into_iter().rev().collect::<Vec<_>>().join(",")
}

/// A row for each field of an object.
fn fields(of: &Value) -> Option<Vec<Vec<String>>> {
    let rows = of.as_object()?.iter().filter(|(_, value)| value.is_number());
    Some(rows.map(|(name, value)| vec![name.replace('_', " "), shown(value)]).collect())
}

/// What the simulator counts, in its order of importance.
const SIMULATED: [(&str, &str); 11] = [
    ("points", "crash points explored"),
    ("points_in_recovery", "of them within a recovery"),
    ("cuts", "power cuts gone through, recovery and all"),
    ("recoveries_cut", "recoveries that were cut in turn"),
    ("damaged", "images with planted damage"),
    ("refused", "of them refused; the others recovered correctly"),
    ("poisoned", "images with an unreadable line"),
    ("operations", "operations begun"),
    ("kills", "processes killed"),
    ("takeovers", "daemons that took a live log over"),
    ("replayed", "records replayed"),
];
/// What is counted of a log on devices, and shown where it came to that.
const ON_DEVICES: [(&str, &str); 4] = [
    ("device_failures", "writes to a device that failed"),
    ("lies_found", "power cuts of a device that had lied about its flush, and was found out"),
    ("lies_believed", "power cuts of one whose lie looked like writes that were under way"),
    ("lies_outvoted", "power cuts of a mirrored log one of whose devices had lied"),
];

/// What a campaign of the simulator counted.
pub fn simulated(result: &Value) -> Option<Vec<Vec<String>>> {
    let mut rows = vec![vec!["what".into(), "how often".into()]];
    rows.extend(SIMULATED.iter().map(|(key, text)| vec![(*text).into(), shown(&result["counts"][*key])]));
    let of_devices = ON_DEVICES.iter().map(|(key, text)| (text, &result["counts"][*key]));
    let happened = of_devices.filter(|(_, count)| count.as_u64().is_some_and(|count| count > 0));
    rows.extend(happened.map(|(text, count)| vec![(*text).into(), shown(count)]));
    rows.push(vec!["crash points a second".into(), shown(&result["points_per_second"])]);
    rows.push(vec!["**promises broken**".into(), result["violations"].as_array()?.len().to_string()]);
    Some(rows)
}

/// How many mutants were noticed, and which were not.
pub fn mutants(result: &Value) -> Option<Vec<Vec<String>>> {
    let fates = result.as_array().or_else(|| result["fates"].as_array())?;
    let is = |fate: &&Value, name: &str| !fate[name].is_null();
    let killed = fates.iter().filter(|fate| is(fate, "killed_by")).count();
    let needless = fates.iter().filter(|fate| is(fate, "needless") && !is(fate, "killed_by"));
    let survived = fates.iter().filter(|fate| !is(fate, "killed_by") && !is(fate, "needless"));
    let mut rows = vec![
        vec!["what".into(), "how many".into()],
        vec!["broken, one at a time".into(), fates.len().to_string()],
        vec!["noticed".into(), killed.to_string()],
    ];
    rows.extend(
        needless.map(|fate| vec![format!("needless: {}", shown(&fate["mutant"])), shown(&fate["needless"])]),
    );
    rows.push(vec!["**survived**".into(), survived.clone().count().to_string()]);
    rows.extend(survived.map(|fate| vec!["survivor".into(), shown(&fate["mutant"])]));
    Some(rows)
}

/// What virtual machines went through whose power was cut.
pub fn machine(result: &Value) -> Option<Vec<Vec<String>>> {
    let mut rows = vec![vec!["with Seawall".into(), "how many".into()]];
    rows.extend(fields(&result["totals"])?);
    rows.push(vec!["**failures**".into(), result["totals"]["failures"].as_array()?.len().to_string()]);
    let proofs = [
        ("counter_proof", "control, not synced"),
        ("logless", "control, without the keepers' log"),
        ("control", "control, synced"),
    ];
    for (name, title) in proofs {
        let proof = &result[name];
        if proof["ran"] == true {
            let text =
                format!("{} acknowledged, {} lost", shown(&proof["acknowledged"]), shown(&proof["lost"]));
            rows.push(vec![title.into(), text]);
        }
    }
    Some(rows)
}
