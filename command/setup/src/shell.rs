//! What is written for a shell, for systemd and for udev to read.

use std::path::Path;

/// A word, quoted where the shell would take it apart.
pub fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A command as one types it.
pub fn line(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

/// The name of a mount point's unit (systemd.unit(5), "String escaping for inclusion in unit names").
pub fn unit_of(mount: &Path) -> String {
    let path = mount.to_string_lossy();
    let path = path.trim_matches('/');
    if path.is_empty() {
        return "-.mount".to_owned();
    }
    let mut name = String::new();
    for (at, byte) in path.bytes().enumerate() {
        match byte {
            b'/' => name.push('-'),
            b'.' if at == 0 => name += "\\x2e",
            _ if byte.is_ascii_alphanumeric() || b":_.".contains(&byte) => name.push(byte.into()),
            _ => name += &format!("\\x{byte:02x}"),
        }
    }
    name + ".mount"
}

/// A path in /etc/fstab, where blanks end a field.
pub fn in_fstab(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "\\134").replace(' ', "\\040").replace('\t', "\\011")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_they_must_be() {
        assert_eq!(line(&["a".into(), "b c".into(), "it's".into(), String::new()]), r"a 'b c' 'it'\''s' ''");
        assert_eq!(quoted("--size=64G"), "--size=64G");
    }

    #[test]
    fn mount_units_are_called_as_systemd_calls_them() {
        // As systemd-escape --path --suffix=mount says.
        assert_eq!(unit_of(Path::new("/mnt/pmem")), "mnt-pmem.mount");
        assert_eq!(unit_of(Path::new("/srv/my-data/.x")), r"srv-my\x2ddata-.x.mount");
        assert_eq!(unit_of(Path::new("/.hidden")), r"\x2ehidden.mount");
        assert_eq!(unit_of(Path::new("/")), "-.mount");
    }

    #[test]
    fn blanks_of_a_path_do_not_end_a_field() {
        assert_eq!(in_fstab(Path::new("/mnt/a b")), r"/mnt/a\040b");
    }
}
