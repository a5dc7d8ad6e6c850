//! What is meant: a path, or a table by its name, and which files that has now.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use seawall_daemon::cache::{Covers, Directory};

use super::postgres;

/// What a policy is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A file or directory.
    Path(PathBuf),
    /// A table or index of PostgreSQL.
    Postgres(Table),
    /// A table of MariaDB.
    Mariadb(Table),
}

/// A table's name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// As it was given.
    pub name: String,
    /// The database.
    pub database: String,
    /// The schema, where there are any.
    pub schema: String,
    /// The table.
    pub table: String,
}

impl What {
    /// What a word of the command line means: whatever has a slash, or is there, is a path.
    pub fn of(word: &str) -> Self {
        let parts: Vec<&str> = word.split('.').collect();
        let is_path =
            word.contains('/') || Path::new(word).exists() || parts.iter().any(|part| part.is_empty());
        let table = |schema: &str, table: &str| Table {
            name: word.into(),
            database: parts[0].into(),
            schema: schema.into(),
            table: table.into(),
        };
        match parts.as_slice() {
            [_, schema, name] if !is_path => Self::Postgres(table(schema, name)),
            [_, name] if !is_path => Self::Mariadb(table("", name)),
            _ => Self::Path(word.into()),
        }
    }

    /// The table's name, if it is one.
    pub fn table(&self) -> Option<&str> {
        match self {
            Self::Path(_) => None,
            Self::Postgres(table) | Self::Mariadb(table) => Some(&table.name),
        }
    }
}

/// Files that are meant: a path, and what belongs to it.
pub type Found = Vec<(PathBuf, Covers)>;

/// Finds files.
pub struct Resolver<'a> {
    /// How to call psql.
    pub psql: &'a str,
    /// The databases that run with the daemon.
    pub directories: &'a [Directory],
}

impl Resolver<'_> {
    /// The files that are meant.
    ///
    /// # Errors
    /// If there are none, or nobody could be asked.
    pub fn resolve(&self, what: &What) -> Result<Found> {
        match (self.find(what)?, what) {
            (Some(found), _) => Ok(found),
            (None, What::Path(path)) => bail!(
                "there is no {}: name a file or directory that exists (for files that do not exist yet, \
                 their directory), or a table as DB.SCHEMA.TABLE (PostgreSQL) or DB.TABLE (MariaDB)",
                path.display()
            ),
            (None, What::Postgres(table)) => bail!(
                "the database {} has no table or index {}.{}, or it has no files of its own, like a view or \
                 a foreign table",
                table.database,
                table.schema,
                table.table
            ),
            (None, What::Mariadb(table)) => bail!("{}", self.no_file(table)),
        }
    }

    /// The files that are meant; `None` if there is no such thing.
    ///
    /// # Errors
    /// If nobody could be asked.
    pub fn find(&self, what: &What) -> Result<Option<Found>> {
        match what {
            What::Path(path) => match std::fs::canonicalize(path) {
                Ok(path) => Ok(Some(vec![(path, Covers::Tree)])),
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
                Err(e) => Err(e).with_context(|| path.display().to_string()),
            },
            What::Postgres(table) => self.relations(table),
            What::Mariadb(table) => self.tablespaces(table),
        }
    }

    fn of_preset(&self, preset: &str) -> impl Iterator<Item = &Path> {
        self.directories.iter().filter(move |dir| dir.preset == preset).map(|dir| dir.data.as_path())
    }

    fn relations(&self, table: &Table) -> Result<Option<Found>> {
        let servers: Vec<&Path> = self.of_preset("postgres").collect();
        if servers.is_empty() {
            bail!(
                "{}: there is no such file here, and no PostgreSQL server that could have such a table runs \
                 with this daemon; --pool names another daemon",
                table.name
            );
        }
        let paths = postgres::relations(self.psql, table, &servers)?;
        let found: Result<Found> = paths.iter().map(|path| Ok((real(path)?, Covers::Relation))).collect();
        found.map(|found| Some(found).filter(|found| !found.is_empty()))
    }

    /// A table's own file, or those of its partitions.
    fn tablespaces(&self, table: &Table) -> Result<Option<Found>> {
        if self.of_preset("mariadb").next().is_none() {
            bail!(
                "{0}: there is no such file here, and no MariaDB server that could have such a table runs \
                 with this daemon (a table of PostgreSQL is DB.SCHEMA.TABLE); --pool names another daemon",
                table.name
            );
        }
        let mut found = Found::new();
        for data in self.of_preset("mariadb") {
            let dir = data.join(&table.database);
            let entries = match std::fs::read_dir(&dir) {
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => continue,
                entries => entries.with_context(|| dir.display().to_string())?,
            };
            let names = entries.flatten().map(|entry| entry.file_name());
            let mine = names.filter(|name| is_of(&table.table, &name.to_string_lossy()));
            found.extend(mine.map(|name| (dir.join(name), Covers::Tree)));
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(Some(found).filter(|found| !found.is_empty()))
    }

    fn no_file(&self, table: &Table) -> String {
        let at: Vec<_> = self
            .of_preset("mariadb")
            .map(|data| data.join(&table.database).join(format!("{}.ibd", table.table)).display().to_string())
            .collect();
        format!(
            "there is no {}: does the table {} exist, with a file of its own (innodb_file_per_table)? \
             MariaDB writes a name with characters other than letters, digits and _ differently in file \
             names: name such a table by its path",
            at.join(", "),
            table.name
        )
    }
}

/// True for a tablespace of this table, whole or of a partition.
fn is_of(table: &str, file: &str) -> bool {
    let Some(name) = file.strip_suffix(".ibd").and_then(|file| file.strip_prefix(table)) else {
        return false;
    };
    name.is_empty() || name.to_ascii_uppercase().starts_with("#P#")
}

/// The real path of a relation's file, which may be in a tablespace, behind a link.
fn real(path: &Path) -> Result<PathBuf> {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else {
        bail!("{} is not a file", path.display())
    };
    let dir = std::fs::canonicalize(dir).with_context(|| {
        format!("cannot find {}, where PostgreSQL says that a file of the table is", dir.display())
    })?;
    Ok(dir.join(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_dots_are_tables_unless_they_are_paths() {
        let kind = |word| match What::of(word) {
            What::Path(_) => "path",
            What::Postgres(_) => "postgres",
            What::Mariadb(_) => "mariadb",
        };
        assert_eq!(kind("shop.public.orders"), "postgres");
        assert_eq!(kind("shop.orders"), "mariadb");
        for path in ["/srv/a.b.c", "./a.b", "orders", ".", "..", "a.b.c.d", "base/5", "a..b", ".hidden"] {
            assert_eq!(kind(path), "path", "{path}");
        }
        let What::Postgres(table) = What::of("d.s.t") else { panic!("a table") };
        assert_eq!((&*table.database, &*table.schema, &*table.table), ("d", "s", "t"));
    }

    #[test]
    fn tablespaces_of_a_table_and_its_partitions() {
        for file in ["t.ibd", "t#P#p0.ibd", "t#p#p0.ibd", "t#P#p0#SP#s0.ibd"] {
            assert!(is_of("t", file), "{file}");
        }
        for file in ["t.frm", "tt.ibd", "t2.ibd", "#sql-ib12.ibd", "t#.ibd"] {
            assert!(!is_of("t", file), "{file}");
        }
    }
}
