//! The settings that keep a server's checkpoints near, and how a command is given them.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

use anyhow::{Result, bail};
use seawall_wire::shm::Preset;

/// The smallest redo log that InnoDB takes, and the unit of its size, bytes.
const SMALLEST_LOG: u64 = 4 << 20;
const LOG_UNIT: u64 = 4096;
/// A segment of PostgreSQL's WAL, if there is none to look at, bytes.
const SEGMENT: u64 = 16 << 20;

/// A setting of the server.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Setting {
    pub name: &'static str,
    pub value: String,
    pub why: &'static str,
}

/// What holds the redo of a crash at so many bytes, as far as settings can. `data`: of a server that exists.
pub fn settings(preset: Preset, redo: u64, data: Option<&Path>) -> Vec<Setting> {
    let most = bound(preset, redo, data);
    match preset {
        Preset::Mariadb => innodb(most),
        _ => postgres(most),
    }
}

/// The redo that they hold it at, bytes: no less than the server knows how to.
pub fn bound(preset: Preset, redo: u64, data: Option<&Path>) -> u64 {
    match preset {
        Preset::Mariadb => redo.max(SMALLEST_LOG),
        // Less than two segments is refused.
        _ => redo.max(2 * data.and_then(segment).unwrap_or(SEGMENT)),
    }
}

fn postgres(most: u64) -> Vec<Setting> {
    let most = format!("{}MB", most >> 20);
    let set = |name, value: &str, why| Setting { name, value: value.to_owned(), why };
    vec![
        set(
            "max_wal_size",
            &most,
            "the server makes a checkpoint before there is more redo than it replays in that time. Under \
             --policy atomic with full_page_writes = off a checkpoint makes no page images and waits for no \
             disk",
        ),
        set("min_wal_size", &most, "the server reuses segments instead of making new ones"),
        set("checkpoint_warning", "0", "frequent checkpoints are intended"),
        set(
            "recovery_init_sync_method",
            "syncfs",
            "before it replays anything, the server syncs all files with one call instead of an fsync of \
             every single file: with thousands of tables those fsyncs take most of the time. PostgreSQL 14 \
             or later",
        ),
    ]
}

fn innodb(most: u64) -> Vec<Setting> {
    let size = most / LOG_UNIT * LOG_UNIT;
    vec![Setting {
        name: "innodb_log_file_size",
        value: size.to_string(),
        why: "the redo log holds what is replayed after a crash: InnoDB writes pages back before it is full",
    }]
}

/// The size of a segment of the WAL.
fn segment(data: &Path) -> Option<u64> {
    let mut entries = fs::read_dir(data.join("pg_wal")).ok()?.flatten();
    let is_one = |name: &str| name.len() == 24 && name.bytes().all(|byte| byte.is_ascii_hexdigit());
    entries.find_map(|entry| {
        is_one(entry.file_name().to_str()?).then(|| entry.metadata().ok()).flatten().map(|found| found.len())
    })
}

/// The command's arguments with these settings, which come last and so count.
///
/// # Errors
/// If the server is started in a way that takes no arguments from here. `inner`: its name and its own arguments.
pub fn with_settings(
    preset: Preset,
    arguments: &[OsString],
    inner: (&str, &[OsString]),
    settings: &[Setting],
) -> Result<Vec<OsString>> {
    let (name, own) = inner;
    let takes_ours = arguments.ends_with(own);
    let mut all = arguments.to_vec();
    match name {
        "postgres" | "postmaster" if takes_ours => {
            all.extend(settings.iter().flat_map(|set| ["-c".into(), pair("", set).into()]));
        }
        "pg_ctl" if takes_ours => {
            let words: Vec<String> = settings.iter().map(|set| format!("-c {}", pair("", set))).collect();
            all.extend([OsString::from("-o"), words.join(" ").into()]);
        }
        "mariadbd" | "mysqld" | "mariadbd-safe" | "mysqld_safe" if takes_ours => {
            all.extend(settings.iter().map(|set| OsString::from(pair("--", set))));
        }
        _ => bail!(
            "--recovery gives the server its settings as arguments, and COMMAND starts {} in a way that takes none: name \
             the server itself, or set by hand what `seawall tune {} --recovery` says",
            name,
            preset.name()
        ),
    }
    Ok(all)
}

fn pair(dashes: &str, set: &Setting) -> String {
    format!("{dashes}{}={}", set.name, set.value)
}

/// Of whoever starts a server, the directory of the server's other programs.
pub fn programs(path: &Path) -> Option<&Path> {
    let real = path.parent()?;
    real.join("psql").exists().then_some(real).filter(|dir| dir.as_os_str() != OsStr::new(""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::database::tests::args;

    fn given(command: &str, inner: &str, own: &str) -> Result<String> {
        let own = if own.is_empty() { Vec::new() } else { args(own) };
        let set = [Setting { name: "a", value: "1".into(), why: "" }];
        let all = with_settings(Preset::Postgres, &args(command), (inner, &own), &set)?;
        Ok(all.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn a_server_gets_its_settings_last() {
        let said = |command, inner, own| given(command, inner, own).expect("it takes arguments");
        assert_eq!(said("-D /d", "postgres", "-D /d"), "-D /d -c a=1");
        assert_eq!(said("-D /d start", "pg_ctl", "-D /d start"), "-D /d start -o -c a=1");
        assert_eq!(said("-u mysql mariadbd --x=2", "mariadbd", "--x=2"), "-u mysql mariadbd --x=2 --a=1");
        for (command, inner, own) in [("-c x", "postgres", "-D /d"), ("y.sh", "y.sh", "")] {
            assert!(given(command, inner, own).is_err(), "{command}");
        }
    }

    #[test]
    fn no_server_is_given_less_than_it_takes() {
        let value = |preset, redo, name: &str| {
            let all = settings(preset, redo, None);
            all.into_iter().find(|set| set.name == name).expect("set").value
        };
        assert_eq!(value(Preset::Postgres, 1, "max_wal_size"), "32MB");
        assert_eq!(value(Preset::Postgres, 100 << 20, "max_wal_size"), "100MB");
        assert_eq!(value(Preset::Mariadb, 1, "innodb_log_file_size"), "4194304");
        assert_eq!(value(Preset::Mariadb, (8 << 20) + 5, "innodb_log_file_size"), "8388608");
    }

    #[test]
    fn a_segment_is_as_large_as_those_that_are_there() {
        let data = tempfile::tempdir().expect("a directory");
        assert_eq!(segment(data.path()), None);
        let wal = data.path().join("pg_wal");
        fs::create_dir_all(wal.join("archive_status")).expect("made");
        let file = fs::File::create(wal.join("00000001000000000000000A")).expect("made");
        file.set_len(64 << 20).expect("sized");
        assert_eq!(segment(data.path()), Some(64 << 20));
        assert_eq!(bound(Preset::Postgres, 1, Some(data.path())), 128 << 20);
    }
}
