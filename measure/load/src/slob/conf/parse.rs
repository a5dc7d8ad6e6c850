//! From a file's text to a [`Conf`].

use std::path::Path;

use anyhow::{Context, Result};

use super::lines::{self, Line, Setting};
use super::{Conf, keys};

/// What was read.
#[derive(Clone, Debug, Default)]
pub struct Parsed {
    /// The parameters.
    pub conf: Conf,
    /// What in the file has no effect, in words.
    pub warnings: Vec<String>,
}

/// A value that cannot be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{key}={value} is not valid: it takes {wanted}", .line.map(|line| format!("line {line}: ")).unwrap_or_default())]
pub struct Mistake {
    /// Where it stands; none on the command line.
    pub line: Option<usize>,
    /// The parameter.
    pub key: String,
    /// What it was to be.
    pub value: String,
    /// What it may be.
    pub wanted: String,
}

impl Conf {
    /// Reads a file.
    pub fn load(path: &Path) -> Result<Parsed> {
        let name = || format!("{}", path.display());
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", name()))?;
        Self::parse(&text).with_context(name)
    }

    /// Reads a file's text. What it does not set has its default.
    pub fn parse(text: &str) -> Result<Parsed, Mistake> {
        let mut parsed = Parsed::default();
        let mut not_settings = Vec::new();
        for (line, number) in text.lines().zip(1..) {
            match lines::read(line) {
                Line::Command => not_settings.push(number.to_string()),
                Line::Settings(all) => {
                    for setting in all {
                        parsed.take(setting, number)?;
                    }
                }
            }
        }
        if !not_settings.is_empty() {
            parsed
                .warnings
                .push(format!("ignored, neither a setting nor a comment: line {}", not_settings.join(", ")));
        }
        Ok(parsed)
    }

    /// Sets one parameter by its name, as the command line does. An unknown name is a mistake here.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Mistake> {
        let mistake = |wanted| Mistake { line: None, key: name.to_owned(), value: value.to_owned(), wanted };
        let key =
            keys::find(name).ok_or_else(|| mistake("no value: there is no such parameter".to_owned()))?;
        (key.set)(self, value).map_err(mistake)
    }
}

impl Parsed {
    fn take(&mut self, setting: Setting, line: usize) -> Result<(), Mistake> {
        let Setting { key: name, value, is_unclosed, wants_expansion } = setting;
        if is_unclosed {
            self.warnings.push(format!(
                "line {line}: the quote of {name} is not closed: it is taken to end with the line"
            ));
        }
        let Some(key) = keys::find(&name) else {
            self.warnings.push(no_effect(&name, line));
            return Ok(());
        };
        let mistake = |wanted| Mistake { line: Some(line), key: name.clone(), value: value.clone(), wanted };
        if wants_expansion {
            return Err(mistake("its value as it is: nothing is expanded here".to_owned()));
        }
        (key.set)(&mut self.conf, &value).map_err(mistake)
    }
}

fn no_effect(name: &str, line: usize) -> String {
    if keys::is_oracles(name) {
        return format!("line {line}: {name} has no meaning here: it is about Oracle");
    }
    let close = keys::SETTINGS.iter().find(|key| differ_by_one(key.name, name));
    let hint = close.map_or(String::new(), |key| format!("; did you mean {}?", key.name));
    format!("line {line}: {name} is not known, ignored{hint}")
}

/// Whether one character was replaced, as in RED0_STRESS.
fn differ_by_one(a: &str, b: &str) -> bool {
    a.len() == b.len() && a.bytes().zip(b.bytes()).filter(|(a, b)| a != b).count() == 1
}

#[cfg(test)]
mod tests {
    use super::super::{RedoStress, Size};
    use super::*;

    #[test]
    fn a_wrong_value_is_refused_with_its_line() {
        let wrong = |text: &str| Conf::parse(text).expect_err("refused").to_string();
        assert_eq!(
            wrong("# a comment\nUPDATE_PCT=101"),
            "line 2: UPDATE_PCT=101 is not valid: it takes a whole number from 0 to 100"
        );
        for text in ["SCALE=lots", "REDO_STRESS=SOME", "WORK_UNIT=1", "DO_HOTSPOT=maybe", "THINK_TM_MIN=-1"] {
            assert!(wrong(text).starts_with("line 1: "), "{text}");
        }
        assert!(wrong("RUN_TIME=$HOURS").contains("expanded"));
    }

    #[test]
    fn what_has_no_effect_is_said() {
        let parsed =
            Conf::parse("RED0_STRESS=HEAVY\nFOO=1\nSTATSPACK_LEVEL=5\nplease\nUPDATE_PCT=3").expect("read");
        assert_eq!(
            parsed.warnings,
            [
                "line 1: RED0_STRESS is not known, ignored; did you mean REDO_STRESS?",
                "line 2: FOO is not known, ignored",
                "line 3: STATSPACK_LEVEL has no meaning here: it is about Oracle",
                "ignored, neither a setting nor a comment: line 4",
            ]
        );
        assert_eq!(parsed.conf, Conf { update_pct: 3, ..Conf::default() });
    }

    #[test]
    fn the_last_of_several_counts_and_the_command_line_is_last() {
        let mut conf = Conf::parse("SCALE=5 SCALE=64G\nREDO_STRESS=heavy").expect("read").conf;
        assert_eq!((conf.scale, conf.redo_stress), (Size::Bytes(64 << 30), RedoStress::Heavy));
        conf.set("SCALE", "100").expect("set");
        assert_eq!(conf.scale, Size::Blocks(100));
        assert!(conf.set("SCALES", "100").is_err());
    }
}
