//! Settings with the place that each was read from.

use std::collections::BTreeMap;

/// The place of a setting that stands in no file.
pub const COMMAND_LINE: &str = "the server's command line";

/// A value, and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The value, without quotes.
    pub value: String,
    /// The file and line, or the command line.
    pub place: String,
}

/// All that were found. The last one of a name counts.
#[derive(Clone, Debug, Default)]
pub struct Settings(BTreeMap<String, Setting>);

impl Settings {
    /// Notes one. Names are compared without regard to case, and to `-` or `_`.
    pub fn set(&mut self, name: &str, value: &str, place: impl Into<String>) {
        let setting = Setting { value: value.to_owned(), place: place.into() };
        self.0.insert(name.to_ascii_lowercase().replace('-', "_"), setting);
    }

    /// The setting, if it is set.
    pub fn get(&self, name: &str) -> Option<&Setting> {
        self.0.get(name)
    }

    /// Its value, if it is set.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.get(name).map(|setting| setting.value.as_str())
    }

    /// The setting, if it is switched off in any spelling.
    pub fn off(&self, name: &str) -> Option<&Setting> {
        let words = ["off", "of", "false", "fals", "fal", "fa", "f", "no", "n", "0"];
        self.get(name).filter(|setting| words.contains(&setting.value.to_ascii_lowercase().as_str()))
    }

    /// The setting, if it is switched on in any spelling.
    pub fn on(&self, name: &str) -> Option<&Setting> {
        let words = ["on", "true", "tru", "tr", "t", "yes", "ye", "y", "1"];
        self.get(name).filter(|setting| words.contains(&setting.value.to_ascii_lowercase().as_str()))
    }

    /// The setting, if it has this value.
    pub fn is(&self, name: &str, value: &str) -> Option<&Setting> {
        self.get(name).filter(|setting| setting.value.eq_ignore_ascii_case(value))
    }
}
