//! The database's own command, behind those that start it: `gosu mysql mariadbd`, `su postgres -c "postgres -D /d"`,
//! an official image's `docker-entrypoint.sh redis-server`.
//!
//! In: the command. Out: the words of the database's program, and whether somebody before it changes the user. It does
//! not look into scripts.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

/// Programs that start another one as another user.
const CHANGERS: [&str; 12] = [
    "gosu",
    "su-exec",
    "setpriv",
    "su",
    "runuser",
    "sudo",
    "doas",
    "chpst",
    "setuidgid",
    "s6-setuidgid",
    "capsh",
    "docker-entrypoint.sh",
];

/// A name behind these is a user's: `gosu postgres …`, `runuser -u postgres …`.
const BEFORE_A_USER: [&str; 14] = [
    "gosu",
    "su-exec",
    "su",
    "runuser",
    "doas",
    "setuidgid",
    "s6-setuidgid",
    "-",
    "-l",
    "-u",
    "--user",
    "--reuid",
    "--regid",
    "--login",
];

/// A database's program as it is called in the end.
#[derive(Debug, PartialEq, Eq)]
pub struct Inner {
    /// Its name, without a directory.
    pub name: String,
    /// What it is given.
    pub arguments: Vec<OsString>,
    /// It is another program than the one we start.
    pub is_behind: bool,
    /// It is started by one that changes the user.
    pub changes_user: bool,
}

/// The database's program in a command. One that nobody knows is taken as it is: the first one.
pub fn find(name: &str, arguments: &[OsString], is_known: impl Fn(&str) -> bool) -> Inner {
    let mut before = vec![name.to_owned()];
    let itself = |changes_user| Inner {
        name: name.to_owned(),
        arguments: arguments.to_vec(),
        is_behind: false,
        changes_user,
    };
    if is_known(name) {
        return itself(false);
    }
    for (i, argument) in arguments.iter().enumerate() {
        // One word, or a shell's command line.
        let words = words(argument);
        let is_user = |at: usize| {
            let former = if at == 0 { before.last() } else { None };
            former.is_some_and(|name| BEFORE_A_USER.contains(&name.as_str()))
        };
        if let Some(at) = (0..words.len()).find(|at| is_known(&base(&words[*at])) && !is_user(*at)) {
            before.extend(words[..at].iter().map(|word| base(word)));
            let rest = words[at + 1..].iter().cloned();
            return Inner {
                name: base(&words[at]),
                // Behind a command line are its own arguments, which it may take up ("$@").
                arguments: rest.chain(arguments[i + 1..].iter().cloned()).collect(),
                is_behind: true,
                changes_user: changes_user(&before),
            };
        }
        before.extend(words.iter().map(|word| base(word)));
    }
    itself(changes_user(&before))
}

fn changes_user(before: &[String]) -> bool {
    before.iter().any(|name| CHANGERS.contains(&name.as_str()))
}

fn base(word: &OsStr) -> String {
    Path::new(word).file_name().unwrap_or(word).to_string_lossy().into_owned()
}

/// As a shell would split it, but for what it would replace.
fn words(text: &OsStr) -> Vec<OsString> {
    let words = text.as_bytes().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    let plain = |word: &[u8]| word.iter().copied().filter(|byte| !b"\"'".contains(byte)).collect();
    words.map(|word| OsString::from_vec(plain(word))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::database::tests::args;
    use super::*;

    fn found(words: &[&str]) -> Inner {
        let arguments: Vec<OsString> = words[1..].iter().map(OsString::from).collect();
        find(words[0], &arguments, |name| ["postgres", "mariadbd"].contains(&name))
    }

    #[test]
    fn the_database_is_found_behind_those_that_start_it() {
        for words in [
            &["gosu", "postgres", "/usr/bin/mariadbd", "-D", "/d"][..],
            &["su-exec", "mysql", "mariadbd", "-D", "/d"],
            &["setpriv", "--reuid", "mysql", "--", "mariadbd", "-D", "/d"],
            &["su", "mysql", "-s", "/bin/sh", "-c", "exec mariadbd -D '/d'"],
            &["docker-entrypoint.sh", "mariadbd", "-D", "/d"],
            &["nice", "-n", "5", "gosu", "mysql", "mariadbd", "-D", "/d"],
        ] {
            let inner = found(words);
            assert_eq!(inner.name, "mariadbd", "{words:?}: a user may have a program's name");
            assert!(inner.arguments.ends_with(&args("-D /d")), "{words:?}");
            assert!(inner.is_behind && inner.changes_user, "{words:?}");
        }
        let nice = found(&["nice", "postgres", "-D", "/d"]);
        assert!(nice.is_behind && !nice.changes_user);
        let itself = found(&["postgres", "-c", "x=sudo"]);
        assert_eq!((itself.is_behind, itself.changes_user), (false, false));
        assert!(!found(&["myapp", "--fast"]).is_behind);
    }
}
