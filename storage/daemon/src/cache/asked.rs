//! What a client may ask of the cache.

use serde::{Deserialize, Serialize};

use super::policies::Wanted;
use super::prewarm::Prewarm;
use super::resize::Resize;

/// The body of a [`Kind::Cache`](seawall_wire::message::Kind::Cache).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Asked {
    /// What holds: [`Listed`](super::Listed).
    List,
    /// Something else is to hold: [`Listed`](super::Listed).
    Set(Wanted),
    /// A part of a file is to be brought: [`Prewarmed`](super::Prewarmed).
    Prewarm(Prewarm),
    /// It is to have another size: [`Resized`](super::Resized).
    Resize(Resize),
}
