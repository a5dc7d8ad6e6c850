//! The shell's way of writing `KEY=value`, as far as a `slob.conf` uses it.
//!
//! Several assignments may share a line; `#` at the beginning of a word starts a comment; values may be quoted;
//! `export` may stand before an assignment or alone before names. Nothing is ever expanded or executed: a value
//! with `$` or a backtick outside single quotes is refused where it is used.

/// What a line of the file is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Assignments; none in an empty line, a comment, or `export` with bare names.
    Settings(Vec<Setting>),
    /// A shell would run this as a command.
    Command,
}

/// One assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// What is assigned to.
    pub key: String,
    /// What is assigned.
    pub value: String,
    /// A quote was opened and not closed: the value was taken to end with the line.
    pub is_unclosed: bool,
    /// A shell would have replaced a part of it.
    pub wants_expansion: bool,
}

/// Reads a line.
pub fn read(line: &str) -> Line {
    let mut words = words(line);
    let exported = words.first().is_some_and(|word| word.text == "export");
    if exported {
        words.remove(0);
        // Bare names only say which variables programs that are started will see.
        words.retain(|word| word.key().is_some());
    }
    let settings: Option<Vec<Setting>> = words.into_iter().map(Word::setting).collect();
    settings.map_or(Line::Command, Line::Settings)
}

#[derive(Default)]
struct Word {
    text: String,
    is_unclosed: bool,
    wants_expansion: bool,
}

impl Word {
    fn key(&self) -> Option<&str> {
        let (key, _) = self.text.split_once('=')?;
        let first_is_right = key.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let is_name = key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        (first_is_right && is_name).then_some(key)
    }

    fn setting(self) -> Option<Setting> {
        let key = self.key()?.to_owned();
        let value = self.text[key.len() + 1..].to_owned();
        Some(Setting { key, value, is_unclosed: self.is_unclosed, wants_expansion: self.wants_expansion })
    }
}

fn words(line: &str) -> Vec<Word> {
    let mut words = Vec::new();
    let mut characters = line.chars().peekable();
    loop {
        while characters.next_if(|c| c.is_whitespace() || *c == ';').is_some() {}
        match characters.peek() {
            None | Some('#') => return words,
            Some(_) => words.push(word(&mut characters)),
        }
    }
}

fn word(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Word {
    let mut word = Word::default();
    while let Some(c) = characters.next_if(|c| !c.is_whitespace() && *c != ';') {
        match c {
            '\'' | '"' => quoted(characters, c, &mut word),
            '\\' => word.text.extend(characters.next()),
            _ => {
                word.wants_expansion |= matches!(c, '$' | '`');
                word.text.push(c);
            }
        }
    }
    word
}

fn quoted(characters: &mut std::iter::Peekable<std::str::Chars<'_>>, quote: char, word: &mut Word) {
    while let Some(c) = characters.next() {
        match c {
            _ if c == quote => return,
            '\\' if quote == '"' => word.text.extend(characters.next()),
            _ => {
                word.wants_expansion |= quote == '"' && matches!(c, '$' | '`');
                word.text.push(c);
            }
        }
    }
    word.is_unclosed = true;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(line: &str) -> Vec<(String, String)> {
        match read(line) {
            Line::Settings(all) => all.into_iter().map(|s| (s.key, s.value)).collect(),
            Line::Command => panic!("{line:?} was taken for a command"),
        }
    }

    fn pair(key: &str, value: &str) -> (String, String) {
        (key.to_owned(), value.to_owned())
    }

    #[test]
    fn assignments_as_a_shell_reads_them() {
        assert_eq!(pairs("A=1"), [pair("A", "1")]);
        assert_eq!(pairs("  A=1 B=x#y # C=3"), [pair("A", "1"), pair("B", "x#y")]);
        assert_eq!(pairs("A='b c'\"d e\"f"), [pair("A", "b cd ef")]);
        assert_eq!(pairs("A=\"say \\\"so\\\"\""), [pair("A", "say \"so\"")]);
        assert_eq!(pairs("A="), [pair("A", "")]);
        assert_eq!(pairs("export A=1 B; C=2"), [pair("A", "1"), pair("C", "2")]);
        for nothing in ["", "   ", "# A=1", "export A B C"] {
            assert_eq!(pairs(nothing), [], "{nothing:?}");
        }
    }

    #[test]
    fn what_a_shell_would_execute_sets_nothing() {
        for command in ["rm -rf x", "A =1", "- # text", "cmd A=1", "A=1 cmd", "1A=2"] {
            assert_eq!(read(command), Line::Command, "{command:?}");
        }
    }

    #[test]
    fn an_unclosed_quote_and_an_expansion_are_noticed() {
        let Line::Settings(all) = read("A=\"b $C") else { panic!("a setting") };
        assert_eq!((all[0].value.as_str(), all[0].is_unclosed, all[0].wants_expansion), ("b $C", true, true));
        let Line::Settings(all) = read("A='$C'") else { panic!("a setting") };
        assert!(!all[0].wants_expansion);
    }
}
