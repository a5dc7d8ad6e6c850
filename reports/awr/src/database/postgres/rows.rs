//! A row of a view as a reading.

use serde_json::Value;

use super::views::View;
use crate::model::Reading;
use crate::recovery::REDO;

/// Numbers that do not only grow.
const GAUGES: [&str; 9] = [
    REDO.1,
    "numbackends",
    "sessions_active",
    "op_bytes",
    "period_ms",
    "n_live_tup",
    "n_dead_tup",
    "n_mod_since_analyze",
    "n_ins_since_vacuum",
];
/// Words worth keeping.
const FACTS: [&str; 5] = ["query", "datname", "backend_type", "object", "relation"];
/// Identifiers, and numbers that say nothing about an interval.
fn is_of_no_use(column: &str) -> bool {
    let statistics = ["min_", "max_", "mean_", "stddev_"].iter().any(|prefix| column.starts_with(prefix));
    statistics || ["datid", "dbid", "userid", "queryid", "relid", "local_blks_dirtied"].contains(&column)
}

/// `start` is the server's: all statistics may begin again with it.
pub fn reading(view: &View, start: &str, row: &[Option<String>]) -> Option<Reading> {
    let [item, json] = row else { return None };
    let Ok(Value::Object(columns)) = serde_json::from_str(json.as_deref()?) else { return None };
    let mut reading = Reading::new(view.kind, item.as_deref().unwrap_or_default(), start);
    if view.kind == "settings" {
        let words = columns.into_iter().filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())));
        reading.facts.extend(words);
        return Some(reading);
    }
    for (column, value) in columns {
        match value {
            Value::String(words) if column == "stats_reset" => reading.epoch = format!("{start} {words}"),
            Value::String(words) if GAUGES.contains(&column.as_str()) => {
                reading = reading.gauge(&column, number_of(&words));
            }
            Value::String(words) if FACTS.contains(&column.as_str()) => {
                drop(reading.facts.insert(column, words))
            }
            Value::Number(number) if !is_of_no_use(&column) => {
                let value = number.as_f64().unwrap_or(0.0);
                let into = if GAUGES.contains(&column.as_str()) {
                    &mut reading.gauges
                } else {
                    &mut reading.counters
                };
                into.insert(column, value);
            }
            _ => {}
        }
    }
    Some(reading)
}

/// `10ms` → 10.
fn number_of(words: &str) -> f64 {
    words.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use super::super::views::VIEWS;
    use super::*;

    fn read(kind: &str, json: &str) -> Reading {
        let view = VIEWS.iter().find(|view| view.kind == kind).expect("a view");
        reading(view, "100", &[Some("x".into()), Some(json.into())]).expect("a reading")
    }

    #[test]
    fn numbers_are_counters_and_a_reset_is_an_epoch() {
        let found = read(
            "pg_stat_database",
            r#"{"datid":5,"xact_commit":7,"numbackends":2,"stats_reset":"then","x":null}"#,
        );
        assert_eq!(found.counters.len(), 1);
        assert_eq!((found.counters["xact_commit"], found.gauges["numbackends"]), (7.0, 2.0));
        assert_eq!(found.epoch, "100 then");
    }

    #[test]
    fn means_are_left_out_and_the_text_is_kept() {
        let found = read("pg_stat_statements", r#"{"calls":7,"mean_exec_time":2.5,"query":"SELECT 1"}"#);
        assert_eq!(found.counters.keys().collect::<Vec<_>>(), ["calls"]);
        assert_eq!(found.facts["query"], "SELECT 1");
    }

    #[test]
    fn settings_are_words() {
        assert_eq!(read("settings", r#"{"fsync":"on"}"#).facts["fsync"], "on");
    }
}
