//! The preload library: found, checked, and put into LD_PRELOAD beside what is there already.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use seawall_daemon::process::PRELOAD_NAME;

use super::elf;

/// Finds the library: SEAWALL_PRELOAD, beside `seawall`, in ../lib/seawall.
///
/// # Errors
/// If it is missing, unreadable for this user, or no library for this machine.
pub fn find() -> Result<PathBuf> {
    let path = match std::env::var_os("SEAWALL_PRELOAD") {
        Some(path) => PathBuf::from(path),
        None => installed()?,
    };
    check(&path)?;
    let path = std::fs::canonicalize(&path)?;
    // The loader splits LD_PRELOAD at these, and nothing escapes them.
    if path.as_os_str().as_encoded_bytes().iter().any(|byte| b" :".contains(byte)) {
        bail!("{}: the loader cannot preload from a path with a blank or a colon: move it", path.display());
    }
    Ok(path)
}

fn installed() -> Result<PathBuf> {
    let exe = std::env::current_exe().context("cannot find this program")?;
    let dir = exe.parent().unwrap_or(Path::new("/"));
    let places = [dir.join(PRELOAD_NAME), dir.join("../lib/seawall").join(PRELOAD_NAME)];
    let list: Vec<_> = places.iter().map(|p| p.display().to_string()).collect();
    places.into_iter().find(|path| path.symlink_metadata().is_ok()).with_context(|| {
        format!(
            "the library {PRELOAD_NAME} is missing (looked for {}): install it beside this program, or name it \
             in SEAWALL_PRELOAD. If it is there, this user may not see it: install Seawall where every user can \
             read it, for example /usr/local",
            list.join(", ")
        )
    })
}

fn check(path: &Path) -> Result<()> {
    let kind = elf::kind(path).with_context(|| {
        format!(
            "cannot read the preload library {} as {} (install Seawall where that user can read it, for \
             example /usr/local)",
            path.display(),
            crate::user::name(rustix::process::geteuid().as_raw())
        )
    })?;
    // A library names no loader, so it looks like a static program.
    if !matches!(kind, elf::Kind::Static | elf::Kind::Dynamic) {
        bail!(
            "{} is not a library for this machine: it must come from the build of this program",
            path.display()
        );
    }
    Ok(())
}

/// The value of LD_PRELOAD: ours first, so that its calls reach the next library's, and not the other way
/// round; then whatever was there.
pub fn variable(library: &Path) -> OsString {
    join(library, std::env::var_os("LD_PRELOAD").as_deref())
}

/// Our library, then those that are present.
pub fn join(library: &Path, present: Option<&OsStr>) -> OsString {
    let mut value = library.as_os_str().to_owned();
    for other in present.iter().flat_map(|p| p.as_encoded_bytes().split(|b| b" :".contains(b))) {
        // A `run` inside a `run`: once is enough.
        let other = String::from_utf8_lossy(other).into_owned();
        if !other.is_empty() && !other.ends_with(PRELOAD_NAME) {
            value.push(":");
            value.push(other);
        }
    }
    value
}

/// The value of ASAN_OPTIONS: what is there, and that the sanitizer's library need not be the first. Programs built with
/// gcc's would refuse to start behind ours.
pub fn asan_options(present: Option<&OsStr>) -> OsString {
    const ANY_ORDER: &str = "verify_asan_link_order";
    let mut value = present.unwrap_or_default().to_owned();
    if !value.to_string_lossy().contains(ANY_ORDER) {
        if !value.is_empty() {
            value.push(":");
        }
        value.push(format!("{ANY_ORDER}=0"));
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_sanitizer_was_told_stays() {
        let with = |present: &str| asan_options(Some(OsStr::new(present)));
        assert_eq!(asan_options(None), "verify_asan_link_order=0");
        assert_eq!(with("detect_leaks=0"), "detect_leaks=0:verify_asan_link_order=0");
        assert_eq!(with("verify_asan_link_order=1"), "verify_asan_link_order=1");
    }

    #[test]
    fn other_libraries_stay_behind_ours() {
        let ours = Path::new("/x/libseawall_preload.so");
        let joined = |present: &str| join(ours, Some(OsStr::new(present)));
        assert_eq!(join(ours, None), "/x/libseawall_preload.so");
        assert_eq!(joined("libjemalloc.so.2 /a/b.so"), "/x/libseawall_preload.so:libjemalloc.so.2:/a/b.so");
        assert_eq!(joined("/old/libseawall_preload.so:c.so"), "/x/libseawall_preload.so:c.so");
    }
}
