//! `seawall keeper cert`: a small CA, and certificates of keepers and of logs' owners.

use std::path::{Path, PathBuf};

use anyhow::Result;
use seawall_keeper::tls::files::{self, CA, CERTIFICATE, Who};
use seawall_keeper::tls::making::{self, CA_KEY, For, Validity};
use seawall_keeper::tls::utc;

/// Make the certificates by which keepers and database hosts recognize each other
#[derive(clap::Args)]
pub struct Cert {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Make the CA that signs all other certificates, in a directory on a safe host
    Ca {
        /// Where to make it
        directory: PathBuf,
        #[command(flatten)]
        how: How,
    },
    /// Make a keeper's certificate
    Keeper {
        /// The CA's directory
        directory: PathBuf,
        /// The keeper's host: its names and IP addresses, as in `--keeper`, without the port
        #[arg(required = true)]
        names: Vec<String>,
        #[command(flatten)]
        how: How,
    },
    /// Make the certificate of an owner of logs: for a database's host, and for hosts that may take its logs over
    Owner {
        /// The CA's directory
        directory: PathBuf,
        /// The owner's name: its logs are open to certificates of this name, and to no others
        name: String,
        #[command(flatten)]
        how: How,
    },
    /// Show what a host's directory contains, and what is wrong with it
    Show {
        /// The directory given to `--tls`
        directory: PathBuf,
    },
}

/// The validity, and whether to renew.
#[derive(clap::Args)]
struct How {
    /// Days for which it is valid; without it 3650 for a CA and 730 for the certificates that it signs
    #[arg(long, value_parser = clap::value_parser!(i64).range(1..=36500))]
    days: Option<i64>,
    /// Make a new certificate for the existing key
    #[arg(long)]
    renew: bool,
}

/// Does it, and says what to copy where.
pub fn make(cert: &Cert) -> Result<()> {
    match &cert.what {
        What::Ca { directory, how } => ca(directory, how),
        What::Keeper { directory, names, how } => leaf(directory, &For::Keeper(names.clone()), how),
        What::Owner { directory, name, how } => leaf(directory, &For::Owner(name.clone()), how),
        What::Show { directory } => show(directory),
    }
}

fn ca(directory: &Path, how: &How) -> Result<()> {
    let validity = Validity::days(how.days.unwrap_or(3650));
    let made = making::ca(directory, validity, how.renew)?;
    let shown = directory.display();
    outln!("made {}, valid until {}", made.display(), utc(validity.until));
    if how.renew {
        outln!("copy it to every keeper's and every database's host, in place of the {CA} there");
        outln!("certificates that were signed before stay valid; new connections use it, without a restart");
    } else {
        outln!(
            "{shown}/{CA_KEY} signs certificates that all hosts trust: keep it only here and in your backup"
        );
        outln!("next: seawall keeper cert keeper {shown} HOST…, once for each keeper");
        outln!("      seawall keeper cert owner {shown} NAME, once for each database");
    }
    Ok(())
}

fn leaf(ca: &Path, whose: &For, how: &How) -> Result<()> {
    let validity = Validity::days(how.days.unwrap_or(730));
    let made = making::certificate(ca, whose, validity, how.renew)?;
    let shown = made.display();
    if how.renew {
        outln!("made {shown}/{CERTIFICATE}, valid until {}", utc(validity.until));
        outln!(
            "copy it to its host, in place of the {CERTIFICATE} there: new connections use it, without a \
             restart"
        );
        return Ok(());
    }
    outln!("made {shown}, valid until {}", utc(validity.until));
    match whose {
        For::Keeper(names) => {
            outln!(
                "copy the directory to {}, readable only by the user that the keeper runs as, and run there:",
                names[0]
            );
            outln!("    seawall keeper serve … --tls DIRECTORY");
        }
        For::Owner(_) => {
            outln!(
                "copy the directory to the database's host, readable only by the user that the database runs \
                 as, and"
            );
            outln!("to each host that may take its logs over; run there:");
            outln!("    seawall init … --keeper HOST:PORT … --tls DIRECTORY");
        }
    }
    Ok(())
}

fn show(directory: &Path) -> Result<()> {
    let said = files::look(directory)?;
    match said.who {
        Who::Keeper(name) => outln!("keeper {name}"),
        Who::Owner(name) => outln!("owner {name}"),
    }
    outln!("valid from {} until {}", utc(said.valid_from), utc(said.valid_until));
    Ok(())
}
