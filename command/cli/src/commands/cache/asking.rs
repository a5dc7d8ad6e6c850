//! Whose cache is meant, and its daemon.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use seawall_daemon::cache::{Asked, Listed};
use seawall_daemon::control::Control;
use seawall_wire::message::Kind;

use crate::commands::ask::{Ask, connect};
use crate::daemons::Named;
use crate::user;

/// Which cache is meant.
#[derive(clap::Args)]
pub struct Which {
    /// The pool; without it your default pool
    #[arg(long, conflicts_with = "service")]
    pub(super) pool: Option<PathBuf>,
    /// An attached service, whose pool is used
    #[arg(long)]
    pub(super) service: Option<String>,
    /// JSON instead of text
    #[arg(long)]
    pub(super) json: bool,
}

impl Which {
    pub(super) fn pool_asked_for(&self) -> Ask {
        let named = Named { what: self.service.clone().map(Into::into), pool: self.pool.clone() };
        Ask { named, json: self.json }
    }
}

/// How PostgreSQL is asked.
#[derive(clap::Args)]
pub struct Asking {
    /// How to call psql, for example "sudo -u postgres psql". Without it root calls psql as the owner of the directory
    #[arg(long, value_name = "COMMAND", default_value = super::postgres::PSQL)]
    pub(super) psql: String,
}

#[derive(clap::Args)]
pub struct Choose {
    /// Files, directories including everything that is later put into them, or tables and indexes: DB.SCHEMA.TABLE for
    /// PostgreSQL, DB.TABLE for MariaDB
    #[arg(required = true, value_name = "PATH|TABLE")]
    pub(super) what: Vec<String>,
    #[command(flatten)]
    pub(super) asking: Asking,
    #[command(flatten)]
    pub(super) which: Which,
}

/// The daemon, and what holds now.
pub(super) fn ask(which: &Which) -> Result<(Control, Listed)> {
    let (pool, control) = connect(&which.pool_asked_for())?;
    let Some(control) = control else {
        bail!(nobody_answers(&pool));
    };
    let listed = control.request(Kind::Cache, &Asked::List)?;
    Ok((control, listed))
}

/// Why there is nobody to ask.
pub(super) fn nobody_answers(pool: &Path) -> String {
    let (me, pool_name) = (rustix::process::geteuid().as_raw(), pool.display());
    match std::fs::metadata(pool).map(|stat| stat.uid()) {
        Ok(owner) if me != 0 && owner != me => format!(
            "the pool {pool_name} belongs to {0}, and its daemon answers only that user and root: `sudo -u \
             {0} seawall cache …`",
            user::name(owner)
        ),
        _ => format!(
            "no daemon serves {pool_name}, and only a daemon has a block cache: start the database first, \
             with `seawall run --cache SIZE` or, if it is attached, by its service"
        ),
    }
}
