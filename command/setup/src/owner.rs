//! The owner of what was made.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::host::Host;

/// A user and a group, by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owner {
    /// The user.
    pub user: String,
    /// The group.
    pub group: String,
}

impl Owner {
    /// `USER` (with its own group) or `USER:GROUP`. Both must be known on this machine.
    ///
    /// # Errors
    /// One of them is not.
    pub fn parse(text: &str, host: &dyn Host) -> Result<Self, Error> {
        let (user, group) = text.split_once(':').unwrap_or((text, ""));
        let entry = entry(host, "/etc/passwd", 0, user)
            .ok_or_else(|| Error::refused(format!("there is no user {user} on this machine")))?;
        let (column, key) = if group.is_empty() { (2, entry[3].as_str()) } else { (0, group) };
        let found = entry_of_group(host, column, key)?;
        Ok(Self { user: user.to_owned(), group: found })
    }

    /// `USER:GROUP`
    pub fn both(&self) -> String {
        format!("{}:{}", self.user, self.group)
    }
}

fn entry_of_group(host: &dyn Host, column: usize, key: &str) -> Result<String, Error> {
    let entry = entry(host, "/etc/group", column, key)
        .ok_or_else(|| Error::refused(format!("there is no group {key} on this machine")))?;
    Ok(entry[0].clone())
}

/// The line of a table whose column has this value.
fn entry(host: &dyn Host, table: &str, column: usize, value: &str) -> Option<Vec<String>> {
    let text = host.root().read(table).ok()?;
    let lines = text.lines().map(|line| line.split(':').map(str::to_owned).collect::<Vec<_>>());
    lines.into_iter().find(|words| words.len() >= 4 && words[column] == value)
}
