//! syncfs(2) does not reach a mount: Linux syncs the pages it keeps back itself, asks a FUSE file system nothing, and
//! says that all is durable. That is true of what the log holds, and false of what was never fsynced. So the mount
//! refuses a database whose settings rely on it.

use std::path::Path;

use anyhow::{Result, bail};

const SETTING: &str = "recovery_init_sync_method";
/// In the order in which PostgreSQL reads them; the last one counts.
const FILES: [&str; 2] = ["postgresql.conf", "postgresql.auto.conf"];

/// PostgreSQL's data directory must not say that syncfs is to be used after a crash.
///
/// # Errors
/// What to change, and why.
pub fn check(data: &Path) -> Result<()> {
    let read = |name: &&str| std::fs::read_to_string(data.join(name)).ok();
    let texts: Vec<(&str, String)> = FILES.iter().filter_map(|name| Some((*name, read(name)?))).collect();
    let found = texts.iter().filter_map(|(name, text)| Some((name, last_value(text)?))).next_back();
    match found {
        Some((name, "syncfs")) => bail!(
            "{}: {SETTING} = syncfs does nothing on a mount (Linux does not pass syncfs on to FUSE), so \
             after a crash PostgreSQL would rely on data that is not durable. Set it to fsync, the default",
            data.join(name).display()
        ),
        _ => Ok(()),
    }
}

fn last_value(text: &str) -> Option<&str> {
    let value = |line| -> Option<&str> {
        let line: &str = line;
        let rest = line.split('#').next()?.trim_start().strip_prefix(SETTING)?;
        Some(rest.trim_start_matches([' ', '\t', '=']).trim_end().trim_matches('\''))
    };
    text.lines().filter_map(value).next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_setting_counts() {
        let dir = tempfile::tempdir().expect("a directory");
        let set = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).expect("written");
        check(dir.path()).expect("no file");
        set("postgresql.conf", "port = 1\n#recovery_init_sync_method = syncfs\n");
        check(dir.path()).expect("a comment");
        set(
            "postgresql.conf",
            "recovery_init_sync_method = fsync\nrecovery_init_sync_method='syncfs' # fast\n",
        );
        let said = check(dir.path()).expect_err("syncfs").to_string();
        assert!(said.contains("postgresql.conf") && said.contains("Set it to fsync"), "{said}");
        set("postgresql.auto.conf", "recovery_init_sync_method = 'fsync'\n");
        check(dir.path()).expect("overridden");
    }
}
