//! What people and files tell: sizes, command lines, the preload's environment, guards.
//!
//! The sources are taken from where they are: the preload has no std and the command line no library.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use seawall_daemon::guard::{Claim, FIRST_WORD};
use seawall_wire::shm::{Policy, Preset};

use crate::input::Input;

mod cli;
#[path = "../../../../storage/preload/src/environment/search.rs"]
mod search;
#[path = "../../../../command/cli/src/size.rs"]
#[allow(dead_code)] // Its own tests and the command line use the rest.
mod size;

/// The target.
pub fn target(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    match input.u8() % 4 {
        0 => a_size(input.rest()),
        1 => a_command_line(&mut input),
        2 => an_environment(input.rest()),
        _ => a_guard(input.rest()),
    }
}

fn a_size(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(size) = size::parse(&text) {
        assert_eq!(size::parse(&size.to_string()), Ok(size), "{text:?}");
        assert!(!size::human(size).is_empty());
    }
}

fn a_command_line(input: &mut Input<'_>) {
    let names = ["postgres", "pg_ctl", "sqlite3", "python3"];
    let program = cli::program::Program { name: (*input.pick(&names)).into() };
    // MariaDB's own program is asked what its option files say. Processes are not started here: for a moment each
    // has a copy of every descriptor, and with it the lock of the pool that another test has just closed.
    let named = Preset::ALL.into_iter().filter(|preset| *preset != Preset::Mariadb);
    let presets: Vec<_> = std::iter::once(None).chain(named.map(|preset| Some(preset.name()))).collect();
    let preset = *input.pick(&presets);
    let arguments: Vec<OsString> =
        input.rest().split(|byte| *byte == 0).map(|word| OsString::from_vec(word.to_vec())).collect();
    let has = |name: &[u8]| {
        arguments.iter().any(|word| word.as_encoded_bytes().windows(name.len()).any(|w| w == name))
    };
    if has(b"mariadbd") || has(b"mysqld") {
        return; // It is looked for behind other programs, too.
    }
    for policy in [Policy::Tail, Policy::Atomic] {
        if let Ok(found) = cli::database::find(preset, policy, &[], &program, &arguments) {
            assert!(found.becomes() != Some(0));
            assert!(found.roots.iter().all(|root| root.path.is_absolute() && root.data.is_absolute()));
        }
    }
}

/// The search, a byte at a time, against the plain way to say it.
fn an_environment(bytes: &[u8]) {
    let mut search = search::Search::default();
    let ended = bytes.iter().any(|byte| search.step(*byte));
    let variables: Vec<&[u8]> = bytes.split(|byte| *byte == 0).collect();
    let expected = variables.iter().find_map(|variable| variable.strip_prefix(search::NAME)).unwrap_or(b"");
    let cut = &expected[..expected.len().min(search::SOCKET_PATH_MAX)];
    assert_eq!(search.value(), cut);
    assert!(!ended || variables.len() > 1);
}

fn a_guard(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let claimed = format!("{}\n{text}", FIRST_WORD);
    let _ = Claim::parse(&text);
    let claim = Claim::parse(&claimed).expect("it begins like one");
    let again = Claim::parse(&claim.text("x")).expect("what we write we read");
    assert_eq!(again.uuid, claim.uuid);
}
