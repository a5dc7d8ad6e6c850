//! Marked regions of a page: `<!-- generated: NAME -->` … `<!-- end -->`, each on a line of its own.

const BEGIN: &str = "<!-- generated: ";
const CLOSE: &str = " -->";
const END: &str = "<!-- end -->";

/// The line with which a region begins.
pub fn begin(name: &str) -> String {
    format!("{BEGIN}{name}{CLOSE}")
}

/// Replaces what stands in each region by what `content` makes of its name and of what stands there now.
///
/// # Errors
/// What `content` said, or a region that is not closed.
pub fn rewrite(page: &str, content: impl Fn(&str, &str) -> Result<String, String>) -> Result<String, String> {
    let mut out = String::with_capacity(page.len());
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        out.push_str(line);
        out.push('\n');
        let Some(name) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(CLOSE)) else { continue };
        let mut old = String::new();
        loop {
            match lines.next() {
                Some(END) => break,
                Some(line) => old.extend([line, "\n"]),
                None => return Err(format!("the region {name:?} is not closed by {END}")),
            }
        }
        out.push_str(&content(name, &old)?);
        out.push_str(END);
        out.push('\n');
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regions_change() {
        let page = "a\n<!-- generated: x -->\nold\n<!-- end -->\nb\n";
        let new = rewrite(page, |name, old| Ok(format!("{name} was {old}"))).expect("a page");
        assert_eq!(new, "a\n<!-- generated: x -->\nx was old\n<!-- end -->\nb\n");
        assert!(rewrite("<!-- generated: x -->\n", |_, _| Ok(String::new())).is_err());
    }
}
