//! File contents as a whole directory holds them.

use std::collections::BTreeMap;
use std::path::Path;

/// Regular files directly in `directory`, by name.
pub fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries =
        std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            Some((name, std::fs::read(entry.path()).ok()?))
        })
        .collect()
}

/// Everything below `directory` by its path, with kind, mode, links and content; without guards.
pub fn tree(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    collect(directory, "", &mut found);
    found
}

fn collect(directory: &Path, above: &str, found: &mut BTreeMap<String, Vec<u8>>) {
    use std::os::unix::ffi::OsStringExt as _;
    use std::os::unix::fs::MetadataExt as _;
    let entries =
        std::fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    for entry in entries.filter_map(Result::ok) {
        let name = entry.file_name().into_string().expect("cases' names are text");
        if name == "SEAWALL-UNREPLAYED" || entry.path().join(".seawall").exists() {
            continue;
        }
        let (path, name) = (entry.path(), format!("{above}{name}"));
        let meta = entry.metadata().expect("it is there");
        let mut what = match meta.is_dir() {
            true => format!("directory, mode {:o}: ", meta.mode()).into_bytes(),
            false => format!("mode {:o}, links {}: ", meta.mode(), meta.nlink()).into_bytes(),
        };
        if meta.is_dir() {
            collect(&path, &format!("{name}/"), found);
        } else if meta.is_symlink() {
            what.extend(std::fs::read_link(&path).expect("a link").into_os_string().into_vec());
        } else if meta.is_file() {
            what.extend(std::fs::read(&path).expect("readable"));
        }
        found.insert(name, what);
    }
}

/// What changed from one state to another, a line per file.
pub fn changed(before: &BTreeMap<String, Vec<u8>>, after: &BTreeMap<String, Vec<u8>>) -> Vec<String> {
    let names: std::collections::BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    names
        .into_iter()
        .filter_map(|name| match (before.get(name), after.get(name)) {
            (Some(old), Some(new)) if old == new => None,
            (Some(old), Some(new)) => Some(format!("{name}: {}", first_difference(old, new))),
            (Some(_), None) => Some(format!("{name}: gone")),
            _ => Some(format!("{name}: appeared")),
        })
        .collect()
}

/// Where two contents part.
pub fn first_difference(expected: &[u8], found: &[u8]) -> String {
    let at = expected.iter().zip(found).take_while(|(one, other)| one == other).count();
    let around = |bytes: &[u8]| {
        bytes.iter().skip(at).take(16).map(|byte| byte.escape_ascii().to_string()).collect::<String>()
    };
    format!(
        "{} bytes against {}, first difference at {at}: `{}` against `{}`",
        expected.len(),
        found.len(),
        around(expected),
        around(found)
    )
}
