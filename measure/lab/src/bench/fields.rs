//! An object of `bench.json`: named values in a fixed order.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::Value;

use crate::spread::Spread;

/// A row being built, or an object of something else than figures.
#[derive(Clone, Debug)]
pub struct Fields<V = Value>(Vec<(String, V)>);

impl<V> Default for Fields<V> {
    fn default() -> Self {
        Fields(Vec::new())
    }
}

impl<V> Fields<V> {
    /// Adds a value.
    pub fn with(mut self, name: &str, value: impl Into<V>) -> Self {
        self.0.push((name.to_owned(), value.into()));
        self
    }
}

impl Fields {
    /// Adds a median under `name`, its extremes under `name_min` and `name_max`; nulls for what was not measured.
    pub fn with_spread(self, name: &str, spread: impl Into<Option<Spread>>) -> Self {
        let spread = spread.into();
        let figure = |of: fn(&Spread) -> f64| spread.as_ref().map_or(Value::Null, |s| round(of(s)).into());
        self.with(name, figure(|s| s.median))
            .with(&format!("{name}_min"), figure(|s| s.min))
            .with(&format!("{name}_max"), figure(|s| s.max))
    }

    /// Adds a ratio; one that cannot be formed is null.
    pub fn with_ratio(self, name: &str, dividend: f64, divisor: f64) -> Self {
        let ratio = dividend / divisor;
        self.with(name, if ratio.is_finite() { Value::from(round(ratio)) } else { Value::Null })
    }
}

#[cfg(test)]
impl Fields {
    /// Asserts that it has the keys that the page has of this section, and no others.
    pub fn assert_keys(&self, section: &str) {
        let mut wanted = super::keys::of(section);
        let mut found: Vec<String> = self.0.iter().map(|(name, _)| name.clone()).collect();
        wanted.sort();
        found.sort();
        assert_eq!(found, wanted);
    }
}

impl<V: Serialize> Serialize for Fields<V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Three decimals: more would claim a precision nobody has.
fn round(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_has_its_extremes_beside_it() -> anyhow::Result<()> {
        let spread = Spread { median: 2.0, min: 1.0, max: 3.00049 };
        let row = Fields::default().with("bs", 8192).with_spread("x_us", spread).with_ratio("r", 1.0, 0.0);
        let json = serde_json::to_string(&row)?;
        assert_eq!(json, r#"{"bs":8192,"x_us":2.0,"x_us_min":1.0,"x_us_max":3.0,"r":null}"#);
        Ok(())
    }
}
