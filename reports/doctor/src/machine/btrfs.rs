//! btrfs file systems that are mounted: which devices each is over, and how many copies it keeps.

use crate::root::Root;

const AT: &str = "/sys/fs/btrfs";

/// One of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Btrfs {
    /// Its UUID.
    pub uuid: String,
    /// Its label, or nothing.
    pub label: String,
    /// The kernel's names of its devices: `sda1`, `dm-0`.
    pub devices: Vec<String>,
    /// Devices that are not there.
    pub missing: usize,
    /// What holds something: `data` or `metadata`, and its profile.
    pub profiles: Vec<(&'static str, String)>,
}

/// Reads them.
pub fn read(root: &Root) -> Vec<Btrfs> {
    let names = root.names(AT).into_iter();
    names.filter(|name| root.has(format!("{AT}/{name}/devices"))).map(|name| one(root, name)).collect()
}

fn one(root: &Root, uuid: String) -> Btrfs {
    let at = format!("{AT}/{uuid}");
    let is_missing = |id: &String| root.text(format!("{at}/devinfo/{id}/missing")).as_deref() == Some("1");
    let holds = |kind: &str, profile: &String| {
        root.number::<u64>(format!("{at}/allocation/{kind}/{profile}/used_bytes")).unwrap_or(0) > 0
    };
    let of_kind = |kind: &'static str| {
        let profiles = root.names(format!("{at}/allocation/{kind}")).into_iter();
        profiles.filter(move |profile| holds(kind, profile)).map(move |profile| (kind, profile))
    };
    Btrfs {
        label: root.text(format!("{at}/label")).unwrap_or_default(),
        devices: root.names(format!("{at}/devices")),
        missing: root.names(format!("{at}/devinfo")).iter().filter(|id| is_missing(id)).count(),
        profiles: ["data", "metadata"].into_iter().flat_map(of_kind).collect(),
        uuid,
    }
}
