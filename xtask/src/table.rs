//! A struct's table: offset and size come from the code, the sentence stays what the page says.

use std::collections::BTreeMap;

use crate::fields::Struct;

/// The table of `of`, with the sentences of the table in `old`.
///
/// # Errors
/// The first field that has no sentence there.
pub fn render(of: &Struct, old: &str) -> Result<String, &'static str> {
    let sentences = sentences(old);
    let mut out = String::from("| offset | bytes | field | |\n|---:|---:|---|---|\n");
    for field in of.fields() {
        let sentence = sentences.get(field.name).ok_or(field.name)?;
        out.push_str(&format!("| {} | {} | `{}` | {sentence} |\n", field.at, field.bytes, field.name));
    }
    Ok(out)
}

/// Field name to sentence, from rows `| … | … | `name` | sentence |`.
fn sentences(old: &str) -> BTreeMap<&str, &str> {
    old.lines().filter_map(row).filter(|(_, sentence)| !sentence.is_empty()).collect()
}

fn row(line: &str) -> Option<(&str, &str)> {
    let mut cells = line.strip_prefix('|')?.strip_suffix('|')?.splitn(4, '|').map(str::trim);
    let name = cells.nth(2)?.strip_prefix('`')?.strip_suffix('`')?;
    Some((name, cells.next()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_survive_and_may_hold_bars() {
        let old = "| offset | bytes | field | |\n|---:|---:|---|---|\n| 0 | 8 | `a` | One or 1 \\| 2. |\n";
        assert_eq!(sentences(old), BTreeMap::from([("a", "One or 1 \\| 2.")]));
    }
}
