//! The drop-in: what attaching adds to a service, and where detaching reads what was attached.
//!
//! ```text
//! seawalld@POOL.service    recovers, then serves and stays
//!       ▲ Wants, After
//! SERVICE.service          ExecStartPre   the pool is served and the data registered, or the start fails
//!                          the preload is in the environment
//!                          ExecStartPost  the preload is in the process, or a warning in systemd's journal
//!                          ExecStopPost   drained, guards down
//! ```
//!
//! `Wants=`, not `Requires=`: systemd restarts a daemon that was killed, and would restart everything that
//! requires it too. The database needs no restart: until the new daemon has taken over, its syncs go to the
//! disk. A step whose failure must keep the database from starting is an ExecStartPre.
//!
//! Where keepers on other hosts keep the log, both wait for the network, and the daemon may use it.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use seawall_wire::shm::Policy;

use super::choice::{Cached, Near};
use super::machine::Machine;
use super::unit::{drop_in, escape_path, follower, pacer, parse, short_name};

/// The warning for a database that goes back from `atomic`.
pub const TORN_AGAIN: &str = "Without the policy atomic a power cut can tear its pages again: switch on what protected them \
     before (PostgreSQL: full_page_writes = on; MariaDB: innodb_doublewrite = ON) BEFORE its next start";

/// What a unit that needs other hosts says of its start.
const NETWORK: &str = "Wants=network-online.target\nAfter=network-online.target\n";
/// What the daemon's own unit, which needs no network, keeps from it.
const REACHES_KEEPERS: &str = "\n[Service]\n# Its log is kept by other hosts.\nPrivateNetwork=no\n\
     RestrictAddressFamilies=AF_INET AF_INET6\n";

/// A service that is attached, or is to be.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Attached {
    /// The unit's full name.
    pub unit: String,
    /// The pool's real path.
    pub pool: PathBuf,
    /// The preset.
    pub preset: String,
    /// The policy.
    pub policy: String,
    /// The data directory.
    pub data: PathBuf,
    /// The program that the drop-in calls.
    pub program: PathBuf,
    /// LD_PRELOAD's value.
    pub preload: String,
    /// The daemon's socket.
    pub socket: PathBuf,
    /// The file the environment goes to; `None`: into the drop-in.
    pub environment: Option<PathBuf>,
    /// The unit restricts its address families, and Unix sockets are not among them.
    pub needs_unix_sockets: bool,
    /// The area behind the pool: without it the daemon recovers nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub area: Option<PathBuf>,
    /// Keepers on other hosts keep the log.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_keepers: bool,
    /// The block cache that its daemon has.
    pub cache: Option<Cached>,
    /// The user who follows tables through rewrites.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follower: Option<String>,
    /// How long its recovery may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub near: Option<Near>,
}

impl Attached {
    /// Whether its pages cannot be torn, so that the database's own protection may be off.
    pub fn protects_pages(&self) -> bool {
        self.policy == Policy::Atomic.name()
    }

    /// The daemon's unit.
    pub fn daemon(&self) -> String {
        format!("seawalld@{}.service", escape_path(&self.pool))
    }

    /// What the daemon's unit gets: the data must be mounted before it recovers, and the area; its keepers must be within
    /// reach; and its block cache.
    pub fn daemon_drop_in(&self) -> (PathBuf, String) {
        let name = format!("{}.conf", short_name(&self.unit));
        let path = Path::new("/etc/systemd/system").join(format!("{}.d", self.daemon())).join(name);
        let mut text = format!(
            "# Written by `seawall attach`, removed by `seawall detach {}`.\n[Unit]\nRequiresMountsFor={}\n",
            short_name(&self.unit),
            self.data.display()
        );
        if let Some(area) = &self.area {
            text += &format!("RequiresMountsFor={}\n", area.display());
        }
        if self.has_keepers {
            text += NETWORK;
        }
        if let Some(cached) = &self.cache {
            text += &format!(
                "RequiresMountsFor={}\n\n[Service]\nExecStart=\nExecStart={} daemon --service --pool %f {}\n",
                cached.path.display(),
                self.program.display(),
                cached.arguments()
            );
        }
        if self.has_keepers {
            text += REACHES_KEEPERS;
        }
        (path, text)
    }

    /// The variables of the service.
    pub fn variables(&self) -> [(&'static str, String); 2] {
        [("LD_PRELOAD", self.preload.clone()), ("SEAWALL_SOCKET", self.socket.display().to_string())]
    }

    /// The drop-in's text.
    pub fn render(&self) -> String {
        format!("{}\n{}\n{}", self.unit_section(), self.service_section(), self.own_section())
    }

    fn unit_section(&self) -> String {
        let (service, daemon) = (short_name(&self.unit), self.daemon());
        let mut text = format!(
            "# Written by `seawall attach`, removed by `seawall detach {service}`. Do not edit it: attach again.\n\
             [Unit]\nWants={daemon}\nAfter={daemon}\n"
        );
        if self.has_keepers {
            text += NETWORK;
        }
        if self.follower.is_some() {
            text += &format!("Wants={}\n", follower(&self.unit));
        }
        if self.near.as_ref().is_some_and(|near| near.user.is_some()) {
            text += &format!("Wants={}\n", pacer(&self.unit));
        }
        text
    }

    fn service_section(&self) -> String {
        let (program, pool, data) = (self.program.display(), self.pool.display(), self.data.display());
        let (preset, policy) = (&self.preset, &self.policy);
        let recovery =
            self.near.as_ref().map_or_else(String::new, |near| format!(" --recovery {}", near.time));
        let learn = self.near.as_ref().map_or_else(String::new, |near| {
            let settings = near.file.display();
            format!(" --preset {preset} --data {data}{recovery} --settings {settings}")
        });
        let brief = if self.near.is_some() { " --back-soon" } else { "" };
        let mut text = String::from("[Service]\n");
        match &self.environment {
            Some(file) => text += &format!("# Its environment comes from {}.\n", file.display()),
            None => {
                for (name, value) in self.variables() {
                    text += &format!("Environment={name}={value}\n");
                }
            }
        }
        if self.needs_unix_sockets {
            text += "# The preload talks to its daemon.\nRestrictAddressFamilies=AF_UNIX\n";
        }
        text += &format!(
            "# Recovered and served, or not started.\n\
             ExecStartPre=+{program} service start --pool {pool} --preset {preset} --policy {policy} --data {data}{recovery}\n\
             ExecStartPost=-+{program} service check --pool {pool}{learn}\n\
             ExecStopPost=-+{program} service stop --pool {pool}{brief}\n"
        );
        text
    }

    /// What systemd does not read, and [`Attached::load`] does.
    fn own_section(&self) -> String {
        let mut text = format!(
            "[X-Seawall]\nPool={}\nPreset={}\nPolicy={}\nData={}\nProgram={}\nPreload={}\nSocket={}\n",
            self.pool.display(),
            self.preset,
            self.policy,
            self.data.display(),
            self.program.display(),
            self.preload,
            self.socket.display(),
        );
        if let Some(file) = &self.environment {
            text += &format!("EnvironmentFile={}\n", file.display());
        }
        if let Some(area) = &self.area {
            text += &format!("Area={}\n", area.display());
        }
        text += &self.cache.as_ref().map(Cached::settings).unwrap_or_default();
        if let Some(user) = &self.follower {
            text += &format!("Follower={user}\n");
        }
        if let Some(near) = &self.near {
            text += &format!("Recovery={}\nRecoverySettings={}\n", near.time, near.file.display());
            text += &near.user.as_ref().map_or_else(String::new, |user| format!("Pacer={user}\n"));
        }
        text
    }

    /// What is attached to a unit now.
    ///
    /// # Errors
    /// If the drop-in was edited beyond recognition.
    pub fn load(machine: &Machine, unit: &str) -> Result<Option<Self>> {
        let path = drop_in(unit);
        let Some(text) = machine.read(&path)? else { return Ok(None) };
        let Some((service, ours)) = text.split_once("[X-Seawall]") else {
            bail!(
                "{} is not as `seawall attach` wrote it: its section [X-Seawall] is missing",
                path.display()
            );
        };
        let settings = parse(ours);
        let get = |key: &str| settings.iter().find(|(k, _)| k == key).map(|(_, value)| value.clone());
        let need = |key: &str| {
            get(key).ok_or_else(|| {
                anyhow::anyhow!("{} is not as `seawall attach` wrote it: {key}= is missing", path.display())
            })
        };
        Ok(Some(Self {
            unit: unit.to_owned(),
            pool: need("Pool")?.into(),
            preset: need("Preset")?,
            // Drop-ins of before there were policies do not name one.
            policy: get("Policy").unwrap_or_else(|| Policy::Tail.name().into()),
            data: need("Data")?.into(),
            program: need("Program")?.into(),
            preload: need("Preload")?,
            socket: need("Socket")?.into(),
            environment: get("EnvironmentFile").map(PathBuf::from),
            needs_unix_sockets: service.contains("RestrictAddressFamilies=AF_UNIX"),
            area: get("Area").map(PathBuf::from),
            has_keepers: service.contains(NETWORK),
            cache: Cached::of(get),
            follower: get("Follower"),
            near: get("Recovery").zip(get("RecoverySettings")).map(|(time, file)| Near {
                time,
                file: file.into(),
                user: get("Pacer"),
            }),
        }))
    }
}

/// A path that can stand in a unit as it is.
///
/// # Errors
/// If it cannot.
pub fn check_plain(path: &Path) -> Result<()> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@,=~".contains(c);
    if !path.to_string_lossy().chars().all(plain) {
        bail!("{}: a path in a unit may contain only letters, digits and /._-+:@,=~", path.display());
    }
    Ok(())
}

#[cfg(test)]
pub mod tests;
