//! A cluster's `environment` file (Debian's PostgreSQL): our lines at its end, everything else untouched.
//!
//! In: the file's text. Out: the text with our block, or without it. The last setting of a variable wins
//! there, so what stood in LD_PRELOAD before is put behind our library.

const BEGIN: &str = "# seawall: begin (written by `seawall attach`, removed by `seawall detach`)\n";
const END: &str = "# seawall: end\n";

/// The text without our block.
pub fn without(text: &str) -> String {
    let Some((before, rest)) = text.split_once(BEGIN) else { return text.to_owned() };
    let after = rest.split_once(END).map_or("", |(_, after)| after);
    format!("{before}{after}")
}

/// The text with our block at its end.
pub fn with(text: &str, variables: &[(&str, String)]) -> String {
    let mut text = without(text);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text += BEGIN;
    for (name, value) in variables {
        text += &format!("{name} = '{value}'\n");
    }
    text + END
}

/// A variable's value outside our block.
pub fn get(text: &str, name: &str) -> Option<String> {
    let text = without(text);
    let mut values = text.lines().filter_map(|line| {
        let rest = line.trim_start().strip_prefix(name)?;
        let value = rest.trim_start().strip_prefix('=').or_else(|| rest.strip_prefix(' '))?.trim();
        Some(value.split('#').next().unwrap_or(value).trim().trim_matches('\'').to_owned())
    });
    values.next_back().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEBIAN: &str = "# environment variables for postgres processes\n# VAR = simple_word1\n";

    #[test]
    fn our_block_comes_and_goes() {
        let variables = [("LD_PRELOAD", "/x.so:/y.so".to_owned())];
        for original in ["", DEBIAN, "A = 'b'\n"] {
            let changed = with(original, &variables);
            assert!(changed.starts_with(original) && changed.contains("LD_PRELOAD = '/x.so:/y.so'\n"));
            assert_eq!(with(&changed, &variables), changed, "once is enough");
            assert_eq!(without(&changed), original);
        }
        assert_eq!(without(&with("A = b", &variables)), "A = b\n");
    }

    #[test]
    fn what_others_set_is_found() {
        let text = with("LD_PRELOAD = '/j.so' # jemalloc\n", &[("LD_PRELOAD", "/x.so".into())]);
        assert_eq!(get(&text, "LD_PRELOAD").as_deref(), Some("/j.so"));
        assert_eq!(get(DEBIAN, "LD_PRELOAD"), None);
    }
}
