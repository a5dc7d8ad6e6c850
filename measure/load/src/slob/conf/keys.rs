//! The table of SLOB's parameters: name, meaning, how a value is read and shown.

use super::{Conf, RedoStress};

/// One parameter.
pub struct Key {
    /// SLOB's name.
    pub name: &'static str,
    /// What it does here, for people.
    pub meaning: &'static str,
    pub(super) set: fn(&mut Conf, &str) -> Result<(), String>,
    /// The value as it would stand in a file.
    pub show: fn(&Conf) -> String,
}

macro_rules! key {
    ($name:literal, $field:ident, $read:expr, $meaning:literal) => {
        key!($name, $field, $read, ToString::to_string, $meaning)
    };
    ($name:literal, $field:ident, $read:expr, $show:expr, $meaning:literal) => {
        Key {
            name: $name,
            meaning: $meaning,
            set: |conf, text| {
                conf.$field = $read(text)?;
                Ok(())
            },
            show: |conf| $show(&conf.$field),
        }
    };
}

/// All parameters that mean something here, in the order of the manual.
pub const SETTINGS: &[Key] = &[
    key!("UPDATE_PCT", update_pct, percent, "Percent of operations that are updates."),
    key!("SCAN_PCT", scan_pct, percent, "Percent of the other operations that read the whole scan table."),
    key!("RUN_TIME", run_time, |text| number(text, 0, 1 << 31), "Seconds of a run; 0: until WORK_LOOP."),
    key!(
        "WORK_LOOP",
        work_loop,
        |text| number(text, 0, 1 << 39),
        "Operations of each session; 0: until RUN_TIME. Whichever comes first ends the run."
    ),
    key!("SCALE", scale, str::parse, "Size of each schema's table: blocks of the database, or M, G, T."),
    key!("SCAN_TABLE_SZ", scan_table_sz, str::parse, "Size of each schema's scan table, in the same units."),
    key!(
        "WORK_UNIT",
        work_unit,
        |text| number(text, 2, 0xffff),
        "An operation touches the rows strictly between r - WORK_UNIT and r: 63 rows, thus blocks, for 64."
    ),
    key!(
        "REDO_STRESS",
        redo_stress,
        redo_stress,
        |stress: &RedoStress| format!("{stress:?}").to_uppercase(),
        "`LITE`: an update changes c2 and c20; `HEAVY`: c2 to c20. Every value really changes."
    ),
    key!("LOAD_PARALLEL_DEGREE", load_parallel_degree, |text| small(text, 1, 1024), "Connections that load."),
    key!("THREADS_PER_SCHEMA", threads_per_schema, |text| small(text, 1, 0xffff), "Sessions of each schema."),
    key!(
        "DO_HOTSPOT",
        do_hotspot,
        truth,
        |is_on: &bool| is_on.to_string().to_uppercase(),
        "Whether a part of each table is hotter than the rest."
    ),
    key!("HOTSPOT_MB", hotspot_mb, |text| number(text, 1, 1 << 30), "Its size in MB."),
    key!("HOTSPOT_OFFSET_MB", hotspot_offset_mb, |text| number(text, 0, 1 << 30), "Where it begins, in MB."),
    key!(
        "HOTSPOT_FREQUENCY",
        hotspot_frequency,
        |text| number(text, 1, 1 << 31),
        "Every so many operations of a session, one goes to the hot spot."
    ),
    key!(
        "HOT_SCHEMA_FREQUENCY",
        hot_schema_frequency,
        |text| number(text, 0, 1 << 31),
        "Every so many operations of a session, one goes to schema 1; 0: never."
    ),
    key!(
        "THINK_TM_FREQUENCY",
        think_tm_frequency,
        |text| number(text, 0, 1 << 31),
        "Every so many operations of a session, it rests; 0: never."
    ),
    key!("THINK_TM_MIN", think_tm_min, seconds, "The shortest rest, in seconds."),
    key!("THINK_TM_MAX", think_tm_max, seconds, "The longest rest, in seconds."),
    key!(
        "EXTERNAL_SCRIPT",
        external_script,
        text,
        |path: &String| format!("'{path}'"),
        "A program called with `pre` before a run, `post` after its last operation, `end` when its figures are there."
    ),
];

/// Parameters of SLOB's that say something about Oracle or its tools: accepted, and without meaning here.
pub const NO_MEANING: &[&str] = &[
    "ADMIN_SQLNET_SERVICE",
    "SQLNET_SERVICE_BASE",
    "SQLNET_SERVICE_MAX",
    "DBA_PRIV_USER",
    "SYSDBA_PASSWD",
    "DATABASE_STATISTICS_TYPE",
    "STATSPACK_LEVEL",
    "OBFUSCATE_COLUMNS",
    "ARCHIVER",
    "NO_OS_PERF_DATA",
];

/// A parameter by its name.
pub(super) fn find(name: &str) -> Option<&'static Key> {
    SETTINGS.iter().find(|key| key.name == name)
}

/// Whether a name belongs to Oracle: listed, or of one of its families.
pub(super) fn is_oracles(name: &str) -> bool {
    const FAMILIES: [&str; 4] = ["SQLNET_", "STATSPACK", "ARCHIVE", "AWR_"];
    NO_MEANING.contains(&name) || FAMILIES.iter().any(|family| name.starts_with(family))
}

fn number(text: &str, first: u64, last: u64) -> Result<u64, String> {
    let number = text.parse().ok().filter(|number| (first..=last).contains(number));
    number.ok_or_else(|| format!("a whole number from {first} to {last}"))
}

fn small(text: &str, first: u32, last: u32) -> Result<u32, String> {
    number(text, first.into(), last.into()).map(|number| number as u32)
}

fn text(text: &str) -> Result<String, String> {
    Ok(text.to_owned())
}

fn percent(text: &str) -> Result<u32, String> {
    small(text, 0, 100)
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds = text.parse().ok().filter(|seconds| (0.0..=86_400.0).contains(seconds));
    seconds.ok_or_else(|| "seconds, from 0 to 86400".to_owned())
}

fn truth(text: &str) -> Result<bool, String> {
    match text.to_ascii_uppercase().as_str() {
        "TRUE" => Ok(true),
        "FALSE" => Ok(false),
        _ => Err("TRUE or FALSE".to_owned()),
    }
}

fn redo_stress(text: &str) -> Result<RedoStress, String> {
    match text.to_ascii_uppercase().as_str() {
        "LITE" => Ok(RedoStress::Lite),
        "HEAVY" => Ok(RedoStress::Heavy),
        _ => Err("LITE or HEAVY".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_that_is_shown_can_be_read() {
        let conf = Conf { external_script: String::new(), ..Conf::default() };
        for key in SETTINGS {
            let mut again = conf.clone();
            let shown = (key.show)(&conf);
            (key.set)(&mut again, shown.trim_matches('\'')).unwrap_or_else(|e| panic!("{}: {e}", key.name));
            assert_eq!(again, conf, "{}", key.name);
        }
    }
}
