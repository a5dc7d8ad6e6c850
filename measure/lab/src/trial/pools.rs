//! A configuration's pool, on the medium that it asks for.

use anyhow::{Context, Result};
use seawall_awr::placement::Placement;
use seawall_load::write::parse_bytes;

use super::decoy::refuse_decoy;
use crate::case::{Configuration, Medium};
use crate::keepers::Keepers;
use crate::lab::Lab;
use crate::pool::Pool;

const POOL: u64 = 256 << 20;

/// It, if it asks for one.
///
/// # Errors
/// Why it cannot be had on this machine.
pub fn pool(lab: &Lab, configuration: &Configuration, keepers: Option<&Keepers>) -> Result<Option<Pool>> {
    let Some(medium) = configuration.medium else { return Ok(None) };
    let size = match &configuration.pool {
        Some(text) => parse_bytes(text).map_err(anyhow::Error::msg)?,
        None => POOL,
    };
    let name = &configuration.name;
    let pool = match medium {
        Medium::Emulated => Pool::create(&lab.tools, &lab.identity, size, &format!("-{name}"))?,
        Medium::File => {
            let dir = lab.work.data("pools");
            lab.identity.create_dir(&dir)?;
            Pool::durable(&lab.tools, &lab.identity, size, dir.join(format!("{name}.pool")))?
        }
        Medium::Block | Medium::Replicated => {
            let dir = lab.work.data("pools");
            lab.identity.create_dir(&dir)?;
            let path = dir.join(format!("{name}.log"));
            match keepers {
                None => Pool::on_block(&lab.tools, &lab.identity, size, path)?,
                Some(keepers) => {
                    let addresses: Vec<_> = keepers.addresses().collect();
                    Pool::on_keepers(&lab.tools, &lab.identity, size, path, (&addresses, keepers.shape.acks))?
                }
            }
        }
        Medium::Dax => {
            let mounts = seawall_media::dax_mounts();
            let mount = mounts.first().context("no file system of this machine is mounted with DAX")?;
            refuse_decoy(&Placement::of(mount)?)?;
            let file = format!("seawall-lab-{}-{name}.pool", std::process::id());
            Pool::durable(&lab.tools, &lab.identity, size, mount.join(file))?
        }
    };
    let cache = configuration.cache.as_deref().map(parse_bytes).transpose().map_err(anyhow::Error::msg)?;
    Ok(Some(pool.with_cache(cache.unwrap_or(0))))
}
