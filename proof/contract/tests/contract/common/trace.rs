//! Traces cut into cases, and the first difference between two of them.

use std::collections::BTreeMap;

/// `case NAME VARIANT` to the lines below it.
pub fn cases(output: &str) -> BTreeMap<String, Vec<String>> {
    let mut cases = BTreeMap::new();
    let mut current = String::new();
    for line in output.lines() {
        match line.strip_prefix("case ") {
            Some(name) => {
                current = name.to_owned();
                cases.insert(current.clone(), Vec::new());
            }
            None if current.is_empty() || line == "all cases ran" => {}
            None => cases.entry(current.clone()).or_insert_with(Vec::new).push(line.to_owned()),
        }
    }
    cases
}

/// One report per case that differs.
pub fn differences(bare: &str, seawall: &str) -> Vec<String> {
    let (bare, mut seawall) = (cases(bare), cases(seawall));
    let mut reports = Vec::new();
    for (name, expected) in &bare {
        match seawall.remove(name) {
            None => reports.push(format!("case {name}: did not run under Seawall")),
            Some(found) if found == *expected => {}
            Some(found) => reports.push(report(name, expected, &found)),
        }
    }
    reports.extend(seawall.into_keys().map(|name| format!("case {name}: ran under Seawall only")));
    reports
}

/// The lines around the first difference, bare and under Seawall.
fn report(name: &str, bare: &[String], seawall: &[String]) -> String {
    let same = bare.iter().zip(seawall).take_while(|(one, other)| one == other).count();
    let shown =
        |lines: &[String]| lines.iter().skip(same).take(3).cloned().collect::<Vec<_>>().join("\n       ");
    let before = &bare[same.saturating_sub(3)..same];
    format!(
        "case {name}, line {}:\n  after:\n       {}\n  bare:\n       {}\n  seawall:\n       {}",
        same + 1,
        before.join("\n       "),
        shown(bare),
        shown(seawall)
    )
}
