//! The files of an image, below a directory: nothing there runs.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use super::{SEAWALL, Said};

/// The service of its PostgreSQL.
pub const POSTGRES: &str = "postgresql@15-main";
/// Its drop-in.
pub const DROP_IN: &str = "etc/systemd/system/postgresql@15-main.service.d/seawall.conf";
/// Where its starter gets the environment from.
pub const ENVIRONMENT: &str = "etc/postgresql/15/main/environment";
/// The unit of daemons.
pub const UNIT: &str = include_str!("../../../../../packaging/systemd/seawalld@.service");
/// The unit that follows its tables.
pub const FOLLOWER: &str = "etc/systemd/system/seawall-follow-postgresql@15-main.service";

/// An image with a PostgreSQL as Debian installs it, another service, and Seawall.
pub struct Image {
    pub root: tempfile::TempDir,
}

impl Image {
    pub fn new() -> Self {
        Self::below("/dev/shm")
    }

    pub fn below(directory: &str) -> Self {
        let image = Self { root: tempfile::tempdir_in(directory).expect("a directory") };
        image.file("usr/bin/seawall", "");
        image.file("usr/lib/seawall/libseawall_preload.so", "");
        image.file("usr/lib/systemd/system/seawalld@.service", &UNIT.replace("@BINDIR@", "/bin"));
        image.file(
            "lib/systemd/system/postgresql@.service",
            "[Service]\nType=forking\nExecStart=-/bin/true %i\n",
        );
        image.file("lib/systemd/system/postgresql.service", "[Service]\nExecStart=/bin/true\n");
        image.file("etc/postgresql/15/main/postgresql.conf", "data_directory = '/srv/pg' # here\n");
        image.file(ENVIRONMENT, "# for postgres\nLD_PRELOAD = '/usr/lib/libjemalloc.so'\n");
        image.file("srv/pg/PG_VERSION", "15\n");
        image.file("srv/pg/pg_wal/.keep", "");
        image.file(
            "lib/systemd/system/app.service",
            "[Service]\nExecStart=/bin/true\nRestrictAddressFamilies=AF_INET\nEnvironment=LD_PRELOAD=/j.so\n",
        );
        image.file("srv/app/app.db", "");
        image.pool("mnt/a.pool");
        image
    }

    pub fn at(&self, path: &str) -> PathBuf {
        self.root.path().join(path.trim_start_matches('/'))
    }

    pub fn file(&self, path: &str, text: &str) {
        let at = self.at(path);
        fs::create_dir_all(at.parent().expect("a parent")).expect("a directory");
        fs::write(at, text).expect("written");
    }

    pub fn pool(&self, path: &str) {
        let at = self.at(path);
        fs::create_dir_all(at.parent().expect("a parent")).expect("a directory");
        let made = Command::new(SEAWALL).arg("init").arg(at).args(["--size", "16M", "--emulated"]).output();
        Said::from(made.expect("seawall starts")).succeeds();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.at(path)).unwrap_or_default()
    }

    pub fn seawall(&self, arguments: &[&str]) -> Said {
        let mut command = Command::new(SEAWALL);
        command.args(arguments).arg("--root").arg(self.root.path());
        command.output().expect("seawall starts").into()
    }

    pub fn attach(&self, arguments: &[&str]) -> Said {
        self.seawall(&[&["attach"], arguments].concat())
    }

    /// Does it, and asserts that this changes what a dry run said before, and nothing else.
    #[track_caller]
    pub fn as_the_dry_run_says(&self, words: &[&str]) {
        let before = self.paths();
        let says = self.seawall(&[words, &["--dry-run", "--json"]].concat()).json();
        assert_eq!(self.paths(), before, "a dry run changes nothing");
        self.seawall(words).succeeds();
        let after = self.paths();
        let paths = |key: &str| {
            let said = says[key].as_array().expect("a list").iter();
            said.map(|path| self.at(path.as_str().expect("a path"))).collect::<Vec<_>>()
        };
        let mut expected = before.clone();
        expected.retain(|path, _| !paths("removed").contains(path));
        for file in says["files"].as_array().expect("files") {
            let text = |key: &str| file[key].as_str().expect("text").to_owned();
            expected.insert(self.at(&text("path")), Some(text("text")));
        }
        let made = paths("made");
        expected
            .extend(made.iter().filter(|path| path.exists()).map(|path| (path.clone(), after[path].clone())));
        assert_eq!(after, expected, "{words:?}: the right one is what the dry run said");
        // The dry run named nothing in vain.
        let wrong =
            [made.iter().find(|path| before.contains_key(*path)), made.iter().find(|path| !path.exists())];
        assert_eq!(wrong, [None, None], "{words:?}");
        assert!(paths("removed").iter().all(|path| before.contains_key(path)), "{words:?}: {says}");
        let text = self.seawall(&[words, &["--dry-run"]].concat()).succeeds().out.clone();
        assert!(!text.contains("would write") && !text.contains("would remove"), "{words:?}, again:\n{text}");
    }

    /// Every file with its text, if it has one, and every directory that is in none of systemd's.
    fn paths(&self) -> BTreeMap<PathBuf, Option<String>> {
        let mut all = BTreeMap::new();
        let mut dirs = vec![self.root.path().to_owned()];
        while let Some(dir) = dirs.pop() {
            let entries = fs::read_dir(dir).expect("a directory").flatten().map(|e| e.path());
            for entry in entries.filter(|entry| !entry.is_symlink()) {
                if entry.is_dir() {
                    dirs.push(entry.clone());
                }
                if !entry.is_dir() || !entry.starts_with(self.at("etc/systemd")) {
                    all.insert(entry.clone(), fs::read_to_string(&entry).ok());
                }
            }
        }
        all
    }

    /// Every file but pools, and its text.
    pub fn all(&self) -> Vec<(PathBuf, String)> {
        let mut all = Vec::new();
        let mut dirs = vec![self.root.path().to_owned()];
        while let Some(dir) = dirs.pop() {
            for entry in fs::read_dir(dir).expect("a directory").flatten().map(|e| e.path()) {
                match fs::read_to_string(&entry) {
                    _ if entry.is_dir() => dirs.push(entry),
                    Ok(text) => all.push((entry, text)),
                    Err(_) => {}
                }
            }
        }
        all.sort();
        all
    }

    /// A file that begins as a block cache does.
    pub fn zone(&self, path: &str) {
        let layout = seawall_cache::shared::Layout::for_zone(64 << 20, 8192).expect("a layout");
        let header = seawall_cache::shared::Header::new(layout, [7; 16], false);
        fs::write(self.at(path), zerocopy::IntoBytes::as_bytes(&header)).expect("written");
    }
}
