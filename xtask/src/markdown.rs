//! Markdown, as far as the pages use it: what is code, links, the text that a reader sees, and headings as links name them.

/// The lines of a page with their numbers; those of a code block as its fence alone.
pub fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut in_code = false;
    text.lines().enumerate().map(move |(i, line)| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        (i + 1, if in_code || fence { "```" } else { line })
    })
}

/// `(text, target)` of each link in a line.
pub fn links_of(line: &str) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("](") {
        let Some((target, behind)) = after.split_once(')') else { break };
        if let Some(start) = before.rfind('[') {
            found.push((&before[start + 1..], target));
        }
        rest = behind;
    }
    found
}

/// A line as a reader sees it: of a link its text.
pub fn seen(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line;
    while let Some((before, after)) = rest.split_once("](") {
        let (ahead, text) = before.rsplit_once('[').unwrap_or((before, ""));
        out.extend([ahead, text]);
        rest = after.split_once(')').map_or("", |(_, behind)| behind);
    }
    out + rest
}

/// A heading as it is linked to: lower case, blanks as hyphens, punctuation left out.
pub fn anchor(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    text.chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_headings_are_taken_apart() {
        let line = "see [`Engine::write()`](a.rs) and [the page](b.md#two-words).";
        assert_eq!(links_of(line), [("`Engine::write()`", "a.rs"), ("the page", "b.md#two-words")]);
        assert_eq!(seen(line), "see `Engine::write()` and the page.");
        assert_eq!(
            seen("a [note] and [a link](b.md) that [is not closed](c.md"),
            "a [note] and a link that is not closed"
        );
        assert_eq!(anchor("## What it's worth, in words"), "what-its-worth-in-words");
    }
}
