//! Running as somebody else: databases refuse root, and a pool is its owner's.

use std::ffi::CString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use nix::unistd::{
    Gid, Uid, User, geteuid, getgid, getgroups, getresuid, initgroups, setgid, setgroups, setresgid,
    setresuid, setuid,
};

/// What a command's environment must say after the switch.
#[derive(Default)]
pub struct Environment {
    user: Option<User>,
}

impl Environment {
    /// Tells a command who it runs as.
    pub fn apply(&self, command: &mut Command) {
        let Some(user) = &self.user else { return };
        command.env("HOME", &user.dir).env("USER", &user.name).env("LOGNAME", &user.name);
        command.env("SHELL", &user.shell);
        // The former user's session is not this one's.
        command.env_remove("XDG_RUNTIME_DIR").env_remove("MAIL");
        if std::fs::read_dir(".").is_err() {
            command.current_dir(if user.dir.is_dir() { &user.dir } else { Path::new("/") });
        }
    }
}

/// The user `name`; `None` for oneself.
///
/// # Errors
/// If there is no such user, or we may not become that one: only root may.
pub fn other(name: &str) -> Result<Option<User>> {
    let user = User::from_name(name)
        .with_context(|| format!("cannot look up the user {name}"))?
        .with_context(|| format!("--user {name}: there is no such user"))?;
    if user.uid == geteuid() {
        return Ok(None);
    }
    if !geteuid().is_root() {
        bail!("--user {name}: only root can run a command as another user; use sudo for `seawall` itself");
    }
    Ok(Some(user))
}

/// As root, becomes this user, for good.
///
/// # Errors
/// If we may not.
pub fn become_user(user: User) -> Result<Environment> {
    switch(&user)?;
    Ok(Environment { user: Some(user) })
}

/// As root, becomes the owner of a pool: what is made beside it must be that user's.
///
/// # Errors
/// If the owner is unknown.
pub fn become_owner(of: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let Ok(found) = std::fs::metadata(of) else { return Ok(()) };
    if !geteuid().is_root() || found.uid() == 0 {
        return Ok(());
    }
    let user = User::from_uid(Uid::from_raw(found.uid()))?
        .with_context(|| format!("{} belongs to the unknown user {}", of.display(), found.uid()))?;
    switch(&user)
}

/// We stand in for a user for a while: what is looked for and made meanwhile is that user's. Root again when dropped.
pub struct StandIn {
    groups: Vec<Gid>,
}

impl StandIn {
    /// As root, stands in for this user.
    ///
    /// # Errors
    /// If there is no such user, or we may not.
    pub fn of(uid: u32) -> Result<Self> {
        let user = User::from_uid(Uid::from_raw(uid))?;
        Self::for_user(&user.with_context(|| format!("the data belongs to the unknown user {uid}"))?)
    }

    /// The same for a user who is known.
    ///
    /// # Errors
    /// If we may not.
    pub fn for_user(user: &User) -> Result<Self> {
        let groups = getgroups().context("cannot get the groups of this process")?;
        let name = CString::new(user.name.as_bytes())?;
        initgroups(&name, user.gid).with_context(|| format!("cannot take on the groups of {}", user.name))?;
        let this = Self { groups };
        let root = Gid::from_raw(0);
        setresgid(user.gid, user.gid, root)
            .with_context(|| format!("cannot take on the group of {}", user.name))?;
        setresuid(user.uid, user.uid, Uid::from_raw(0))
            .with_context(|| format!("cannot stand in for {}", user.name))?;
        Ok(this)
    }
}

impl Drop for StandIn {
    fn drop(&mut self) {
        let (user, group) = (Uid::from_raw(0), Gid::from_raw(0));
        let back = setresuid(user, user, user)
            .and_then(|()| setresgid(group, group, group))
            .and_then(|()| setgroups(&self.groups));
        // The saved user is root all the time, so this cannot fail; going on half-way would be somebody else's rights.
        assert!(back.is_ok(), "cannot become root again: {back:?}");
    }
}

/// While we stand in for a user: makes `at` with root's rights, as that user's. `None`: we do not stand in.
///
/// Only where that user may not write: whoever may could put something else there meanwhile.
pub fn make_as_root(at: &Path, make: impl FnOnce() -> Result<()>) -> Option<Result<()>> {
    let ids = getresuid().ok().filter(|ids| ids.saved.is_root() && !ids.effective.is_root())?;
    let root = Uid::from_raw(0);
    if let Err(error) = setresuid(ids.real, root, root) {
        return Some(Err(error.into()));
    }
    let (uid, gid) = (ids.real.as_raw(), getgid().as_raw());
    let made = make().and_then(|()| {
        std::os::unix::fs::lchown(at, Some(uid), Some(gid))
            .with_context(|| format!("cannot give {} to {}", at.display(), name(uid)))
    });
    Some(setresuid(ids.real, ids.effective, ids.saved).map_err(Into::into).and(made))
}

fn switch(user: &User) -> Result<()> {
    let name = CString::new(user.name.as_bytes())?;
    initgroups(&name, user.gid).with_context(|| format!("cannot take on the groups of {}", user.name))?;
    setgid(user.gid).with_context(|| format!("cannot take on the group of {}", user.name))?;
    setuid(user.uid).with_context(|| format!("cannot become {}", user.name))
}

/// The name of a user id, or the number.
pub fn name(uid: u32) -> String {
    User::from_uid(Uid::from_raw(uid)).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name)
}

/// What root keeps for the whole machine.
pub const STATE_OF_ROOT: &str = "/var/lib/seawall";

/// Where what is to be known tomorrow is kept: of root for the whole machine, else of this user.
pub fn state_directory() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if geteuid().is_root() {
        return STATE_OF_ROOT.into();
    }
    let home = || Some(variable("HOME")?.join(".local/share"));
    variable("XDG_DATA_HOME").or_else(home).unwrap_or_else(|| "/var/tmp".into()).join("seawall")
}
