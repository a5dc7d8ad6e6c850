//! How a mount comes back after a restart: a unit of systemd, or a line of /etc/fstab.

use std::path::{Path, PathBuf};

use seawall_doctor::Root;

use crate::owner::Owner;
use crate::plan::{Act, Check, Step};
use crate::{shell, unit};

const FSTAB: &str = "/etc/fstab";

/// A mount that stays.
pub struct Wanted<'a> {
    /// Whose it is, in descriptions.
    pub name: &'a str,
    /// Where.
    pub point: &'a Path,
    /// The file system's UUID.
    pub uuid: &'a str,
    /// Its kind.
    pub kind: &'a str,
    /// Its options.
    pub options: &'a str,
    /// A line of /etc/fstab even where systemd runs.
    pub fstab: bool,
    /// What the plan puts there. Nothing is taken back while there is more.
    pub names: Vec<String>,
}

impl Wanted<'_> {
    /// The step that mounts it. Files that somebody put there meanwhile are seen only while it is mounted.
    fn mount(&self, act: Act, undo: Act) -> Step {
        let (directory, names) = (self.point.to_owned(), self.names.clone());
        Step::new("it is mounted", act)
            .undo(undo)
            .undo_if(Check::Mounted { directory: directory.clone(), uuid: self.uuid.to_owned() })
            .undo_needs(Check::HoldsOnly { directory, names })
    }
}

/// The steps to it, and to its owner.
pub fn steps(root: &Root, wanted: &Wanted<'_>, owner: Option<&Owner>) -> Vec<Step> {
    let point = wanted.point.to_string_lossy();
    let mut steps = Vec::new();
    // One that was there before stays when all is undone.
    if !root.has(wanted.point) {
        let made = Step::new("the mount point", Act::Directory { path: wanted.point.to_owned() });
        steps.push(made.undo(Act::RemoveDirectory { path: wanted.point.to_owned() }));
    }
    let by_systemd = unit::runs(root) && !wanted.fstab;
    steps.extend(if by_systemd { by_unit(wanted) } else { by_fstab(wanted, root) });
    if let Some(owner) = owner {
        let title = format!("it belongs to {}", owner.user);
        let chown = Act::run(["chown", &owner.both(), &point]);
        steps.push(Step::new(title, Act::All(vec![chown, Act::run(["chmod", "0750", &point])])));
    }
    steps
}

fn by_unit(wanted: &Wanted<'_>) -> Vec<Step> {
    let name = shell::unit_of(wanted.point);
    // Wanted, not required: a machine whose device has died still comes up, and the database's own unit
    // (RequiresMountsFor=) says what is missing.
    let text = format!(
        "[Unit]\nDescription={} (seawall provision)\n\n[Mount]\nWhat=/dev/disk/by-uuid/{}\nWhere={}\nType={}\nOptions={}\n\n\
         [Install]\nWantedBy=local-fs.target\n",
        wanted.name,
        wanted.uuid,
        wanted.point.display(),
        wanted.kind,
        wanted.options
    );
    let write = Step::file("a unit that mounts it, now and after each start", unit::path(&name), &text)
        .around([], [], [unit::reload()]);
    let start = Act::All(vec![unit::reload(), Act::run(["systemctl", "enable", "--now", &name])]);
    vec![write, wanted.mount(start, Act::run(["systemctl", "disable", "--now", &name]))]
}

fn by_fstab(wanted: &Wanted<'_>, root: &Root) -> Vec<Step> {
    let line = format!(
        "UUID={} {} {} {},nofail 0 2",
        wanted.uuid,
        shell::in_fstab(wanted.point),
        wanted.kind,
        wanted.options
    );
    let path = PathBuf::from(FSTAB);
    let added = Step::new(
        "a line that mounts it after each start",
        Act::AddLine { path: path.clone(), line: line.clone() },
    )
    .undo(Act::RemoveLine { path, line });
    let point = wanted.point.to_string_lossy();
    let mut mount = vec![Act::run(["mount", &point])];
    if unit::runs(root) {
        mount.insert(0, unit::reload());
    }
    vec![added, wanted.mount(Act::All(mount), Act::run(["umount", &point]))]
}
