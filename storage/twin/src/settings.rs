//! What a `redis-server` command will find in its configuration: the file, those it includes, and its arguments.
//!
//! Read here, and not asked of the server: that would need a password, and rights that a supervisor need not have.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::log::Place;

/// Configurations that include each other.
const DEEPEST: usize = 10;
/// Commands that a supervisor gives to the twin.
const NEEDED: [&str; 5] = ["config", "replicaof", "info", "acl", "auth"];

/// Settings by their names in lower case.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The last value counts.
    values: BTreeMap<String, String>,
    renamed: Vec<String>,
}

impl Settings {
    /// Reads the settings of a command's arguments.
    ///
    /// # Errors
    /// If a file cannot be read, or the configuration comes from standard input.
    pub fn of(arguments: &[OsString]) -> Result<Self> {
        let mut found = Self::default();
        let words: Vec<&str> = arguments
            .iter()
            .map(|word| word.to_str().context("an argument is not text"))
            .collect::<Result<_>>()?;
        let mut rest = &words[..];
        if let [first, more @ ..] = rest
            && !first.starts_with("--")
        {
            ensure!(
                *first != "-",
                "only one server can read a configuration from standard input: use a file"
            );
            found.file(Path::new(first), 0)?;
            rest = more;
        }
        while let [option, more @ ..] = rest {
            let name = option
                .strip_prefix("--")
                .with_context(|| format!("{option} is not an option of redis-server"))?;
            let values = more.iter().take_while(|word| !word.starts_with("--")).count();
            found.set(name, more[..values].iter().map(|word| (*word).to_owned()).collect(), 0)?;
            rest = &more[values..];
        }
        Ok(found)
    }

    fn file(&mut self, path: &Path, depth: usize) -> Result<()> {
        ensure!(depth < DEEPEST, "these configurations include each other: {}", path.display());
        ensure!(
            !path.to_string_lossy().contains(['*', '?', '[']),
            "include {}: a twin needs the name of each included file",
            path.display()
        );
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let mut words = words(line).with_context(|| format!("{}: {line}", path.display()))?.into_iter();
            let name = words.next().unwrap_or_default();
            self.set(&name, words.collect(), depth + 1)?;
        }
        Ok(())
    }

    fn set(&mut self, name: &str, values: Vec<String>, depth: usize) -> Result<()> {
        match name.to_ascii_lowercase().as_str() {
            "include" => values.iter().try_for_each(|file| self.file(Path::new(file), depth)),
            "rename-command" => {
                self.renamed.extend(values.first().map(|name| name.to_ascii_lowercase()));
                Ok(())
            }
            name => {
                let mut value = values.join(" ");
                // Each line of `save` adds to those before it.
                if let Some(before) = self.values.get(name).filter(|_| name == "save" && !value.is_empty()) {
                    value = format!("{before} {value}").trim().to_owned();
                }
                self.values.insert(name.to_owned(), value);
                Ok(())
            }
        }
    }

    /// A setting, if it is set and not empty.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str).filter(|value| !value.is_empty())
    }

    /// A setting as it is, empty or not; `None`: the server's own default.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.values.get(name).map(String::as_str)
    }

    fn is_on(&self, name: &str) -> bool {
        self.value(name).is_some_and(|value| value.eq_ignore_ascii_case("yes"))
    }

    /// A port; 0: none.
    ///
    /// # Errors
    /// If it is no number.
    pub fn port(&self, name: &str, default: u16) -> Result<u16> {
        self.value(name).map_or(Ok(default), |port| port.parse().with_context(|| format!("{name} {port}")))
    }

    /// The server's directory.
    ///
    /// # Errors
    /// If it is not there.
    pub fn directory(&self) -> Result<PathBuf> {
        let dir = self.value("dir").unwrap_or(".");
        std::fs::canonicalize(dir).with_context(|| format!("dir {dir}"))
    }

    /// The append-only file of a server whose directory this is.
    pub fn place(&self, directory: &Path) -> Place {
        Place {
            directory: directory.join(self.value("appenddirname").unwrap_or("appendonlydir")),
            name: self.value("appendfilename").unwrap_or("appendonly.aof").to_owned(),
        }
    }

    /// Can such a server have a twin?
    ///
    /// # Errors
    /// Why not, and what to do.
    pub fn check(&self) -> Result<()> {
        if !self.is_on("appendonly") {
            bail!("a twin follows the append-only file, and the server has none: set `appendonly yes`");
        }
        if self.is_on("cluster-enabled") {
            bail!(
                "a node of a cluster has an identity that a twin cannot take over: use the cluster's replicas"
            );
        }
        if let Some(of) = ["replicaof", "slaveof"].iter().find_map(|name| self.value(name)) {
            bail!(
                "the server is a replica of {of}: give the primary a twin, whose writes the append-only file has first"
            );
        }
        if self.value("aclfile").is_some() {
            bail!(
                "the twin needs a user of its own, and a file of users (`aclfile`) leaves no room for one: \
                 put the users into the configuration (`user …`)"
            );
        }
        if let Some(name) = self.renamed.iter().find(|name| NEEDED.contains(&name.as_str())) {
            bail!(
                "Seawall controls the twin with {name}, which `rename-command` takes away: take that right \
                 from users by ACL instead"
            );
        }
        Ok(())
    }
}

/// The words of a line, as Redis splits it: quotes, and escapes within double ones.
fn words(line: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = line.trim_start();
    while !rest.is_empty() {
        let mut word = Vec::new();
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let mut chars = rest[quote.map_or(0, char::len_utf8)..].char_indices();
        let end = loop {
            match (chars.next(), quote) {
                (None, None) => break rest.len(),
                (None, Some(_)) => bail!("a quoted string does not end"),
                (Some((at, c)), None) if c.is_whitespace() => break at,
                (Some((at, c)), Some(quote)) if c == quote => break at + 2,
                (Some((_, '\\')), Some('"')) => escaped(&mut chars, &mut word)?,
                (Some((_, c)), _) => word.extend(c.encode_utf8(&mut [0; 4]).bytes()),
            }
        };
        found.push(String::from_utf8(word).context("a value is not text")?);
        rest = rest[end..].trim_start();
    }
    Ok(found)
}

fn escaped(chars: &mut std::str::CharIndices<'_>, word: &mut Vec<u8>) -> Result<()> {
    let (_, c) = chars.next().context("a quoted string does not end")?;
    match c {
        'n' => word.push(b'\n'),
        'r' => word.push(b'\r'),
        't' => word.push(b'\t'),
        'x' => {
            let digits: String = chars.by_ref().take(2).map(|(_, c)| c).collect();
            word.push(u8::from_str_radix(&digits, 16).with_context(|| format!("\\x{digits}"))?);
        }
        c => word.extend(c.encode_utf8(&mut [0; 4]).bytes()),
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Settings> {
        Settings::of(&text.split(' ').map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn arguments_come_after_files_and_the_last_one_counts() {
        let dir = tempfile::tempdir().expect("a directory");
        let at = |name: &str| dir.path().join(name).to_str().expect("text").to_owned();
        std::fs::write(at("more"), "Port 2\nappendonly yes\n").expect("written");
        let text = format!(
            "# port 9\nport 1\ninclude {}\ndir \"/var/lib/re \\x64is\"\nsave 1 2\nsave 3 4\n",
            at("more")
        );
        std::fs::write(at("conf"), text).expect("written");
        let found = of(&at("conf")).expect("read");
        assert_eq!((found.port("port", 6379).ok(), found.value("dir")), (Some(2), Some("/var/lib/re dis")));
        assert_eq!(found.value("save"), Some("1 2 3 4"));
        let found = of(&format!("{} --port 3 --save  --appendfsync always", at("conf"))).expect("read");
        assert_eq!((found.port("port", 6379).ok(), found.value("save")), (Some(3), None));
        assert_eq!(found.value("appendfsync"), Some("always"));
        found.check().expect("it may have a twin");
        assert!(of("- --port 3").is_err() && of("/no/such/file").is_err());
    }

    #[test]
    fn what_cannot_have_a_twin_is_told_what_to_do() {
        for (text, says) in [
            ("--port 1", "appendonly yes"),
            ("--appendonly yes --cluster-enabled yes", "replicas"),
            ("--appendonly yes --replicaof 10.0.0.1 6379", "primary"),
            ("--appendonly yes --aclfile /f", "user"),
            ("--appendonly yes --rename-command CONFIG x", "ACL"),
        ] {
            let error = of(text).and_then(|found| found.check()).expect_err("refused").to_string();
            assert!(error.contains(says), "{error}");
        }
    }
}
