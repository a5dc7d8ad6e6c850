//! The file: found or made, of the right version, and every piece of work in it with errors that say where and what to do.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::error::{Raw, RepositoryError};
use super::schema;

pub(super) type Result<T> = std::result::Result<T, RepositoryError>;

/// How long one program waits for another one's transaction.
const PATIENCE: Duration = Duration::from_secs(10);

/// An open repository.
#[derive(Debug)]
pub struct Repository {
    connection: Connection,
    path: PathBuf,
}

impl Repository {
    /// Opens a repository that exists.
    ///
    /// # Errors
    /// If there is none, or it is of another version, or damaged.
    pub fn open(path: &Path) -> Result<Self> {
        if !path.exists() {
            return Err(RepositoryError::Missing(path.into()));
        }
        let this = Self::connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
        this.run(|c| schema::check(c, path))?;
        Ok(this)
    }

    /// Opens it, and makes it first if there is none.
    ///
    /// # Errors
    /// As [`Repository::open`], or if it cannot be made.
    pub fn open_or_create(path: &Path) -> Result<Self> {
        if path.exists() {
            return Self::open(path);
        }
        if let Some(directory) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
            std::fs::create_dir_all(directory)
                .map_err(|e| RepositoryError::Directory(directory.into(), e))?;
        }
        Self::make(path)?;
        Self::open(path)
    }

    /// Nobody ever sees half of a new repository: it is made beside its place, and linked there when it is whole.
    fn make(path: &Path) -> Result<()> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(format!(".new-{}", std::process::id()));
        let beside = PathBuf::from(beside);
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        // Closing it puts everything into the one file.
        let made = Self::connect(&beside, flags).and_then(|new| new.run(schema::create));
        let linked = made.map(|()| std::fs::hard_link(&beside, path));
        let _ = std::fs::remove_file(&beside);
        match linked? {
            // Another program was quicker.
            Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
                Err(RepositoryError::Directory(path.into(), e))
            }
            _ => Ok(()),
        }
    }

    fn connect(path: &Path, flags: OpenFlags) -> Result<Self> {
        let connection =
            Connection::open_with_flags(path, flags).map_err(|e| RepositoryError::of(path, &e))?;
        let this = Self { connection, path: path.into() };
        this.run(|c| Ok(c.busy_timeout(PATIENCE)?))?;
        Ok(this)
    }

    /// Does something with the connection; SQLite's errors come back with the path and what to do.
    pub(super) fn run<T>(&self, work: impl FnOnce(&Connection) -> std::result::Result<T, Raw>) -> Result<T> {
        work(&self.connection).map_err(|raw| raw.at(&self.path))
    }

    /// The same as one transaction.
    pub(super) fn change<T>(
        &mut self,
        work: impl FnOnce(&Connection) -> std::result::Result<T, Raw>,
    ) -> Result<T> {
        let changed = |connection: &mut Connection| {
            let transaction = connection.transaction()?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        };
        changed(&mut self.connection).map_err(|raw: Raw| raw.at(&self.path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
