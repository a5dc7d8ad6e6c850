//! A database's setting, as a case says it.

use serde::Deserialize;

/// A value of a setting: a word, a number, or true and false.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(untagged)]
pub enum Setting {
    Word(String),
    Number(i64),
    Switch(bool),
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Setting::Word(word) => f.write_str(word),
            Setting::Number(number) => number.fmt(f),
            Setting::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
        }
    }
}
