//! What a guard says, to databases, to people, and to the next daemon.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The first word of every guard. PostgreSQL reads at most 63 bytes up to a blank as its version.
pub const FIRST_WORD: &str = "0-SEAWALL-holds-unreplayed-WAL:run-seawall-recover";
const _: () = assert!(FIRST_WORD.len() < 64);

/// Longer than any guard's text: paths end at 4096 bytes.
const HEAD_BYTES: u64 = 32 << 10;

/// What there is room for at once: nearly all of them.
const LONGEST: usize = 4 << 10;

const UUID: &str = "pool-uuid: ";
const POOL: &str = "pool: ";

/// The pool a guard is raised for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// UUID of the pool.
    pub uuid: u128,
    /// Its path.
    pub pool: PathBuf,
}

impl Claim {
    /// The whole text of a guard.
    pub fn text(&self, what: &str) -> String {
        let pool = self.pool.display();
        format!(
            "{FIRST_WORD}\n\
             {POOL}{pool}\n\
             {UUID}{:032x}\n\
             \n\
             {what}\n\
             \n\
             Commits that were acknowledged are in Seawall's log and perhaps not yet in these files.\n\
             Started without Seawall, the database would lose them. Therefore:\n\
             \n\
             \x20   seawall recover --pool {pool}     brings the files up to date and removes this guard\n\
             \x20   seawall run --pool {pool} -- ...  does so too, and starts the database with Seawall\n\
             \x20   seawall guard DIRECTORY  says whether this is a copy, whose guard may be lowered, and what it lacks\n\
             \n\
             Do not remove this by hand.\n",
            self.uuid
        )
    }

    /// Reads a guard's text back. `None`: this is not a guard.
    pub fn parse(text: &str) -> Option<Self> {
        if text.lines().next() != Some(FIRST_WORD) {
            return None;
        }
        let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
        let uuid = value(UUID).and_then(|hex| u128::from_str_radix(hex, 16).ok());
        Some(Self { uuid: uuid.unwrap_or(0), pool: value(POOL).unwrap_or("(unnamed)").into() })
    }

    /// The claim in the file at `path`, if it is a guard's text. Of a large file only the head is read.
    pub fn read(path: &Path) -> Option<Self> {
        let mut bytes = Vec::with_capacity(LONGEST);
        let head = |file: File| file.take(HEAD_BYTES).read_to_end(&mut bytes);
        File::open(path).and_then(head).ok()?;
        Self::parse(&String::from_utf8_lossy(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_guard_can_be_read_back_and_nothing_else_is_one() {
        let claim = Claim { uuid: 7 << 100 | 3, pool: "/mnt/pm em/pool".into() };
        assert_eq!(Claim::parse(&claim.text("PostgreSQL")), Some(claim));
        assert_eq!(Claim::parse("15\n"), None);
        assert_eq!(Claim::parse(""), None);
    }
}
