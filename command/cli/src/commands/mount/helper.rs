//! `mount -t fuse.seawall`, `/etc/fstab`, systemd's mount units: the names by which mount(8) and umount(8) start us.
//!
//! Input: the words of a command line. Output: the same as seawall's own.
//!
//! ```text
//! mount.fuse.seawall BACKING AT -o pool=P,preset=sqlite,allow_other,rw   →  seawall mount BACKING AT --pool P …
//! umount.fuse.seawall AT                                                 →  seawall umount AT
//! ```

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use seawall_mount::Flag;

/// Options of ours that want a value.
const VALUES: [&str; 9] =
    ["pool", "block", "preset", "policy", "size", "cache", "cache_block", "cache_path", "fuse_uring"];
/// Options of ours that do not.
const WORDS: [&str; 2] = ["allow_other", "emulated"];
/// mount(8)'s own business, or what is so anyhow.
const IGNORED: [&str; 18] = [
    "rw",
    "defaults",
    "auto",
    "noauto",
    "nofail",
    "_netdev",
    "user",
    "nouser",
    "users",
    "group",
    "owner",
    "dev",
    "suid",
    "exec",
    "async",
    "atime",
    "relatime",
    "norelatime",
];

/// The command line as seawall's own.
///
/// # Errors
/// What was not understood.
pub fn words(given: impl Iterator<Item = OsString>) -> Result<Vec<OsString>, String> {
    let given: Vec<OsString> = given.collect();
    let name = given.first().and_then(|name| Path::new(name).file_name()).unwrap_or_default();
    match name.as_bytes() {
        b"mount.seawall" | b"mount.fuse.seawall" => mount(&given[1..]),
        b"umount.seawall" | b"umount.fuse.seawall" => umount(&given[1..]),
        _ => Ok(given),
    }
}

fn mount(given: &[OsString]) -> Result<Vec<OsString>, String> {
    let mut words: Vec<OsString> = ["seawall", "mount"].map(Into::into).into();
    let (places, lists) = split(given, b"o")?;
    let [backing, at] = places.as_slice() else {
        return Err("usage: mount -t fuse.seawall -o pool=POOL,preset=PRESET BACKING MOUNTPOINT".into());
    };
    words.extend([backing.clone(), at.clone(), "--quiet".into()]);
    for option in lists.iter().flat_map(|list| list.as_bytes().split(|byte| *byte == b',')) {
        translate(option, &mut words)?;
    }
    Ok(words)
}

fn umount(given: &[OsString]) -> Result<Vec<OsString>, String> {
    match split(given, b"")?.0.as_slice() {
        [at] => Ok(vec!["seawall".into(), "umount".into(), at.clone()]),
        _ => Err("usage: umount MOUNTPOINT".into()),
    }
}

/// Places, and the values of the option `wanted`. The other options that mount(8) and umount(8) pass on change
/// nothing for us.
fn split(given: &[OsString], wanted: &[u8]) -> Result<(Vec<OsString>, Vec<OsString>), String> {
    let (mut places, mut values) = (Vec::new(), Vec::new());
    let mut given = given.iter();
    while let Some(word) = given.next() {
        match word.as_bytes() {
            [b'-', letter @ (b'o' | b't' | b'N')] => {
                let value = given.next().ok_or_else(|| format!("-{} needs a value", char::from(*letter)))?;
                if wanted == [*letter] {
                    values.push(value.clone());
                }
            }
            [b'-', ..] => {}
            _ => places.push(word.clone()),
        }
    }
    Ok((places, values))
}

fn translate(option: &[u8], words: &mut Vec<OsString>) -> Result<(), String> {
    let text = String::from_utf8_lossy(option);
    let (name, value) = text.split_once('=').unwrap_or((text.as_ref(), ""));
    if VALUES.contains(&name) && !value.is_empty() {
        words.push(format!("--{}", name.replace('_', "-")).into());
        words.push(OsString::from_vec(option[name.len() + 1..].to_vec()));
    } else if WORDS.contains(&name) {
        words.push(format!("--{}", name.replace('_', "-")).into());
    } else if let Some(flag) = Flag::from_name(&text) {
        words.push(format!("--option={}", flag.name()).into());
    } else if !IGNORED.contains(&name) && !name.is_empty() && !name.starts_with("x-") {
        return Err(format!("mount option {text}: unknown or not supported"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> Result<String, String> {
        let words = words(line.split(' ').map(OsString::from))?;
        Ok(words.iter().map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn what_mount_says_is_understood() {
        let line = "/sbin/mount.fuse.seawall /srv/db /var/lib/db -o rw,nofail,x-systemd.after=a,pool=/p=1,\
                    preset=sqlite,preset=redis,allow_other -t fuse.seawall";
        let ours = "seawall mount /srv/db /var/lib/db --quiet --pool /p=1 --preset sqlite --preset redis --allow-other";
        assert_eq!(told(line).as_deref(), Ok(ours));
        let line = "mount.seawall /a /b -o preset=postgres,cache=1G,cache_path=/c";
        let ours = "seawall mount /a /b --quiet --preset postgres --cache 1G --cache-path /c";
        assert_eq!(told(line).as_deref(), Ok(ours));
        let line = "mount.seawall /a /b -o ro,nosuid,nodev,noexec,noatime,preset=sqlite";
        let ours = "seawall mount /a /b --quiet --option=ro --option=nosuid --option=nodev --option=noexec \
                    --option=noatime --preset sqlite";
        assert_eq!(told(line).as_deref(), Ok(ours));
        assert_eq!(told("umount.fuse.seawall /at -t fuse.seawall").as_deref(), Ok("seawall umount /at"));
        assert_eq!(told("seawall mount -o x").as_deref(), Ok("seawall mount -o x"));
    }

    #[test]
    fn what_is_not_understood_is_refused() {
        for line in [
            "mount.seawall /a /b -o ro=1",
            "mount.seawall /a /b -o nosymfollow",
            "mount.seawall /a /b -o preset",
            "mount.seawall /a -o preset=sqlite",
            "mount.seawall /a /b -o",
            "umount.seawall",
        ] {
            told(line).expect_err(line);
        }
    }
}
