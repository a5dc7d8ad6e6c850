//! Running as somebody else: databases refuse root, and a pool is its owner's.

use std::ffi::CString;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use nix::unistd::{Uid, User, geteuid, initgroups, setgid, setuid};

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

/// Becomes the user `name`, for good. Only root may; to become oneself changes nothing.
///
/// # Errors
/// If there is no such user, or we may not.
pub fn become_named(name: &str) -> Result<Environment> {
    let user = User::from_name(name)
        .with_context(|| format!("looking up the user {name}"))?
        .with_context(|| format!("--user {name}: there is no such user"))?;
    if user.uid == geteuid() {
        return Ok(Environment::default());
    }
    if !geteuid().is_root() {
        bail!("--user {name}: only root can run a command as another user; use sudo for `seawall` itself");
    }
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

fn switch(user: &User) -> Result<()> {
    let name = CString::new(user.name.as_bytes())?;
    initgroups(&name, user.gid).with_context(|| format!("taking the groups of {}", user.name))?;
    setgid(user.gid).with_context(|| format!("taking the group of {}", user.name))?;
    setuid(user.uid).with_context(|| format!("becoming {}", user.name))
}

/// The name of a user id, or the number.
pub fn name(uid: u32) -> String {
    User::from_uid(Uid::from_raw(uid)).ok().flatten().map_or_else(|| uid.to_string(), |user| user.name)
}
