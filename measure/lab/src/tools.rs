//! The programs the lab needs, found or clearly missed.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

pub use seawall_load::installed::find_in_path;

use crate::identity::Identity;
use crate::workdir::WorkDir;

const PRELOAD: &str = "libseawall_preload.so";

/// Where our own programs are.
#[derive(Clone, Debug)]
pub struct Tools {
    pub seawall: PathBuf,
    pub load: PathBuf,
    /// Set when the preload library is not where `seawall` looks by itself.
    pub preload: Option<PathBuf>,
    /// Where `seawall` keeps what it learned of a database.
    pub state: PathBuf,
}

impl Tools {
    /// Finds our own programs, and copies them to `work` when another user has to run them.
    pub fn find(seawall: Option<&Path>, identity: &Identity, work: &WorkDir) -> Result<Self> {
        let own_dir = env::current_exe().context("cannot find this program")?;
        let own_dir = own_dir.parent().context("this program has no directory")?;
        let seawall = match seawall {
            Some(path) => path.to_owned(),
            None => Some(own_dir.join("seawall"))
                .filter(|beside| beside.is_file())
                .or_else(|| find_in_path("seawall"))
                .unwrap_or_else(|| own_dir.join("seawall")),
        };
        let beside = seawall.with_file_name("seawall-load");
        let load = if beside.is_file() { beside } else { own_dir.join("seawall-load") };
        for (program, hint) in [(&seawall, ", or name it with --seawall PATH"), (&load, "")] {
            ensure!(program.is_file(), "{} is missing: build it with `make build`{hint}", program.display());
        }
        let preload = env::var_os("SEAWALL_PRELOAD").map(PathBuf::from);
        let (seawall, load) = (fs::canonicalize(seawall)?, fs::canonicalize(load)?);
        let tools = Tools { seawall, load, preload, state: work.state() };
        // Another user may not reach our build directory (a checkout under /root, say).
        if identity.is_other() { tools.copied_to(&work.bin()) } else { Ok(tools) }
    }

    fn copied_to(&self, stage: &Path) -> Result<Self> {
        fs::create_dir_all(stage)?;
        let preload = self.preload.clone().or_else(|| preload_of(&self.seawall));
        let copy = |from: &Path, name: &str| -> Result<PathBuf> {
            let to = stage.join(name);
            fs::copy(from, &to)
                .with_context(|| format!("cannot copy {} to {}", from.display(), to.display()))?;
            Ok(to)
        };
        Ok(Tools {
            seawall: copy(&self.seawall, "seawall")?,
            load: copy(&self.load, "seawall-load")?,
            preload: preload.map(|path| copy(&path, PRELOAD)).transpose()?,
            state: self.state.clone(),
        })
    }
}

/// Where `seawall` itself looks: beside it, as built; or below `lib`, as installed.
fn preload_of(seawall: &Path) -> Option<PathBuf> {
    let installed = seawall.parent()?.with_file_name("lib").join("seawall").join(PRELOAD);
    [seawall.with_file_name(PRELOAD), installed].into_iter().find(|path| path.is_file())
}

/// The directory of PostgreSQL's programs: the newest of the distribution's, or the one in PATH.
pub fn postgres_bin() -> Result<PathBuf> {
    let mut versions: Vec<(u32, PathBuf)> = fs::read_dir("/usr/lib/postgresql")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin"))))
        .filter(|(_, bin)| bin.join("postgres").is_file())
        .collect();
    versions.sort();
    let bin =
        versions.pop().map(|(_, bin)| bin).or_else(|| find_in_path("postgres")?.parent().map(Path::to_owned));
    let Some(bin) = bin else {
        bail!("PostgreSQL is not installed: apt-get install postgresql postgresql-contrib");
    };
    for program in ["postgres", "initdb", "psql", "pgbench"] {
        ensure!(
            bin.join(program).is_file(),
            "{} is missing: apt-get install postgresql postgresql-contrib",
            bin.join(program).display()
        );
    }
    Ok(bin)
}

/// PostgreSQL's version, without the distribution's own: `15.4`.
pub fn postgres_version(bin: &Path) -> Result<String> {
    let said = Command::new(bin.join("postgres"))
        .arg("--version")
        .output()
        .context("cannot ask postgres for its version")?;
    let said = String::from_utf8_lossy(&said.stdout);
    let version = said.trim().trim_start_matches("postgres (PostgreSQL) ");
    Ok(version.split(" (").next().unwrap_or_default().to_owned())
}

/// A program's version, as `--version` says it: the first word that looks like one.
pub fn version_of(program: &Path) -> Result<String> {
    let said = Command::new(program).arg("--version").output();
    let said = said.with_context(|| format!("cannot ask {} for its version", program.display()))?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned() + &String::from_utf8_lossy(&said.stderr);
    let mut words = text.split_whitespace().map(|word| word.trim_start_matches("v="));
    let looks_like_one = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && word.contains('.');
    let found = words.find(looks_like_one).unwrap_or("?").split('-').next().unwrap_or_default();
    Ok(found.to_owned())
}

/// The eatmydata library itself: its wrapper script would hide the process we have to end.
pub fn eatmydata_library() -> Result<PathBuf> {
    let arch = env::consts::ARCH;
    let places = [
        format!("/usr/lib/{arch}-linux-gnu/libeatmydata.so"),
        "/usr/lib64/libeatmydata.so".to_owned(),
        "/usr/lib/libeatmydata/libeatmydata.so".to_owned(),
    ];
    let found = places.iter().map(PathBuf::from).find(|path| path.is_file());
    found.context("eatmydata is not installed: apt-get install eatmydata")
}
