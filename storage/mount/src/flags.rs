//! The flags that mount(8) knows for every file system, and that the kernel itself heeds.

use fuser::MountOption;

/// One of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flag {
    /// Nothing can be changed through the mount.
    ReadOnly,
    /// Set-user-id and set-group-id bits mean nothing.
    NoSuid,
    /// Device files cannot be opened.
    NoDev,
    /// Programs cannot be started.
    NoExec,
    /// Reading is no access that the kernel notes on the mount.
    NoAtime,
}

impl Flag {
    /// All.
    pub const ALL: [Self; 5] = [Self::ReadOnly, Self::NoSuid, Self::NoDev, Self::NoExec, Self::NoAtime];

    /// As mount(8) writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "ro",
            Self::NoSuid => "nosuid",
            Self::NoDev => "nodev",
            Self::NoExec => "noexec",
            Self::NoAtime => "noatime",
        }
    }

    /// The one with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|flag| flag.name() == name)
    }

    fn option(self) -> MountOption {
        match self {
            Self::ReadOnly => MountOption::RO,
            Self::NoSuid => MountOption::NoSuid,
            Self::NoDev => MountOption::NoDev,
            Self::NoExec => MountOption::NoExec,
            Self::NoAtime => MountOption::NoAtime,
        }
    }
}

/// As the library wants them. Root's mounts have set-user-id bits and devices unless it says otherwise, as on any file
/// system; the library, and fusermount3 for everybody else, would leave them out.
pub fn options(wanted: &[Flag]) -> Vec<MountOption> {
    let mut options: Vec<_> =
        Flag::ALL.into_iter().filter(|flag| wanted.contains(flag)).map(Flag::option).collect();
    if rustix::process::geteuid().is_root() {
        let unless = |flag, option| (!wanted.contains(&flag)).then_some(option);
        options.extend(unless(Flag::NoSuid, MountOption::Suid));
        options.extend(unless(Flag::NoDev, MountOption::Dev));
    }
    options
}
