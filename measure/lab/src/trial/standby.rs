//! PostgreSQL's own answer: a synchronous standby, here on another host whose disk is memory.
//!
//! A commit waits until the standby has written its redo (`synchronous_commit = remote_write`), and until it is on the
//! server's own disk. The standby syncs nothing: another host's disk would not be the disk under test.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};

use super::server::PORT;
use crate::lab::Lab;
use crate::net::Relay;
use crate::pg::Cluster;
use crate::process::{self, Running, run};

const NAME: &str = "standby";
const STANDBY_PORT: &str = "5441";
const PATIENCE: Duration = Duration::from_secs(30);

/// A standby that takes part in every commit. Fields drop in this order.
pub struct Standby {
    _server: Running,
    _way: Relay,
    data: PathBuf,
}

impl Standby {
    /// Copies a running server, starts the copy, and has commits wait for it.
    ///
    /// # Errors
    /// If it does not become synchronous.
    pub fn start(lab: &Lab, bin: &Path, primary: &Cluster<'_>, delay_us: u64) -> Result<Self> {
        let data = PathBuf::from(format!("/dev/shm/seawall-lab-{}-standby", std::process::id()));
        lab.fresh_dir(&data)?;
        fs::set_permissions(&data, fs::Permissions::from_mode(0o700))?;
        let at: SocketAddr = format!("127.0.0.1:{PORT}").parse()?;
        let way = Relay::to(at, Duration::from_micros(delay_us))?;
        let (address, name) = (way.address(), NAME);
        let mut copy = primary.client("pg_basebackup");
        copy.arg("-D").arg(&data).args(["-X", "stream", "--no-sync", "--checkpoint=fast"]);
        run(copy, "pg_basebackup")?;
        fs::write(data.join("standby.signal"), "")?;
        lab.identity.own(&data.join("standby.signal"))?;
        let mut command = lab.command(bin.join("postgres"));
        command.arg("-D").arg(&data);
        let mut set = |name: &str, value: &str| {
            command.args(["-c", &format!("{name}={value}")]);
        };
        set("port", STANDBY_PORT);
        set("listen_addresses", "");
        set("unix_socket_directories", &lab.work.sockets().to_string_lossy());
        set("fsync", "off");
        // At least what its primary has.
        set("max_connections", "50");
        let way_there =
            format!("host={} port={} user=postgres application_name={name}", address.ip(), address.port());
        set("primary_conninfo", &way_there);
        let log = fs::File::create(Cluster::log_of(lab, "of-the-standby"))?;
        command.stdout(log.try_clone()?).stderr(log);
        let server = process::start(command, "the standby", libc::SIGINT)?;
        let standby = Standby { _server: server, _way: way, data };
        let wait_for = |state: &str| -> Result<()> {
            let asked = "SELECT state || ' ' || sync_state FROM pg_stat_replication WHERE application_name = 'standby'";
            process::wait_until(&format!("the standby is {state:?}"), PATIENCE, || {
                Ok(primary.query(asked)? == state)
            })
        };
        // As a turn before left it.
        primary.sql("ALTER SYSTEM RESET synchronous_standby_names")?;
        primary.sql("SELECT pg_reload_conf()")?;
        wait_for("streaming async").context("the standby does not follow its primary")?;
        primary.sql("ALTER SYSTEM SET synchronous_standby_names = 'standby'")?;
        primary.sql("SELECT pg_reload_conf()")?;
        wait_for("streaming sync").context("the standby does not become synchronous")?;
        Ok(standby)
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        process::signal(self._server.pid(), libc::SIGQUIT);
        let _ = fs::remove_dir_all(&self.data);
    }
}
