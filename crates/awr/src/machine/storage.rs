//! What a directory lies on: file system, device, whether it is mapped directly (DAX).

use crate::model::Reading;

/// The file system of `path` as a reading of facts; `what` is its role. Links are followed if we may.
pub fn storage(what: &str, path: &str) -> Option<Reading> {
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mount = mounts.lines().filter_map(parse).filter(|m| real.starts_with(&m.point));
    // Of two mounts on the same point the later one is seen.
    let mount = mount.max_by_key(|m| m.point.len())?;
    Some(
        Reading::new("storage", what, "")
            .fact("path", real.display().to_string())
            .fact("file system", mount.kind)
            .fact("device", mount.source)
            .fact("dax", if is_dax(&mount.options) { "yes" } else { "no" }),
    )
}

struct Mount {
    point: String,
    kind: String,
    source: String,
    options: String,
}

/// `ID PARENT MAJ:MIN ROOT POINT OPTIONS [TAGS] - KIND SOURCE SUPER`.
fn parse(line: &str) -> Option<Mount> {
    let (left, right) = line.split_once(" - ")?;
    let (left, right): (Vec<&str>, Vec<&str>) = (left.split(' ').collect(), right.split(' ').collect());
    let options = format!("{},{}", left.get(5)?, right.get(2).unwrap_or(&""));
    let unescaped = |word: &str| word.replace("\\040", " ");
    let (kind, source) = (right.first()?, right.get(1)?);
    Some(Mount { point: unescaped(left.get(4)?), kind: (*kind).into(), source: unescaped(source), options })
}

fn is_dax(options: &str) -> bool {
    options.split(',').any(|option| option == "dax" || option == "dax=always")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_mountinfo_is_understood() {
        let mount = parse("36 35 259:1 / /mnt/a\\040b rw,noatime shared:1 - ext4 /dev/pmem0 rw,dax=always")
            .expect("a mount");
        assert_eq!(
            (mount.point.as_str(), mount.kind.as_str(), mount.source.as_str()),
            ("/mnt/a b", "ext4", "/dev/pmem0")
        );
        assert!(is_dax(&mount.options) && !is_dax("rw,dax=never"));
    }

    #[test]
    fn shared_memory_is_no_disk() {
        let found = storage("log", "/dev/shm").expect("a file system");
        assert_eq!(found.facts["file system"], "tmpfs");
    }
}
