//! The manifest of an append-only file of several parts (Redis 7): which files it is made of, in which order.
//!
//! ```text
//! file appendonly.aof.2.base.rdb seq 2 type b
//! file appendonly.aof.7.incr.aof seq 7 type i
//! ```
//!
//! Types: `b` the base, `i` an increment, `h` a file that a rewrite has made superfluous and that is removed soon.

use anyhow::{Context, Result, bail, ensure};

/// A file of the append-only file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Its name in the directory of the append-only file.
    pub name: String,
    /// Increments count on, one by one.
    pub sequence: u64,
}

/// What a load reads, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifest {
    /// The state that the increments go on from.
    pub base: Option<Part>,
    /// The commands since.
    pub increments: Vec<Part>,
}

impl Manifest {
    /// Reads a manifest's text.
    ///
    /// # Errors
    /// If a line is none of a manifest: a guard has such lines, too.
    pub fn parse(text: &str) -> Result<Self> {
        let mut found = Self::default();
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            let (part, kind) =
                parse_line(line).with_context(|| format!("cannot read a line of the manifest: {line:?}"))?;
            match kind {
                "b" => ensure!(found.base.replace(part).is_none(), "the manifest names two bases"),
                "i" => {
                    let last = found.increments.last();
                    ensure!(
                        last.is_none_or(|last| last.sequence < part.sequence),
                        "the manifest's increments are out of order"
                    );
                    found.increments.push(part);
                }
                "h" => {}
                other => bail!("the manifest has a file of type {other:?}"),
            }
        }
        Ok(found)
    }

    /// The names of all files that a load reads.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.base.iter().chain(&self.increments).map(|part| part.name.as_str())
    }
}

fn parse_line(line: &str) -> Result<(Part, &str)> {
    let line = line.strip_prefix("file ").context("it does not begin with `file`")?;
    // A name with unusual characters is in quotes; numbers and type come behind it in any case.
    let (line, kind) = line.rsplit_once(" type ").context("it has no type")?;
    let (name, sequence) = line.rsplit_once(" seq ").context("it has no number")?;
    let name = name.trim();
    ensure!(!name.contains(['/', '"', '\\']), "its name has characters that Redis puts into quotes");
    let sequence = sequence.trim().parse().context("its number is not valid")?;
    Ok((Part { name: name.to_owned(), sequence }, kind.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_and_increments_are_found_and_history_is_not() {
        let text = "file a.aof.2.base.rdb seq 2 type b\nfile a.aof.1.base.rdb seq 1 type h\n\
                    file a.aof.6.incr.aof seq 6 type i\nfile a.aof.7.incr.aof seq 7 type i\n";
        let found = Manifest::parse(text).expect("a manifest");
        assert_eq!(
            found.names().collect::<Vec<_>>(),
            ["a.aof.2.base.rdb", "a.aof.6.incr.aof", "a.aof.7.incr.aof"]
        );
        assert_eq!(found.increments[1].sequence, 7);
    }

    #[test]
    fn what_is_no_manifest_is_refused() {
        for text in [
            "SEAWALL-holds-unreplayed-WAL",
            "file a seq x type i",
            "file a seq 1 type z",
            "file a seq 1 type b\nfile b seq 2 type b",
            "file a seq 2 type i\nfile b seq 2 type i",
            "file ../a seq 2 type i",
        ] {
            assert!(Manifest::parse(text).is_err(), "{text}");
        }
        assert_eq!(Manifest::parse("").expect("nothing yet"), Manifest::default());
    }
}
