//! What a daemon is made of: each part has its own state, and the verbs that change it.
//!
//! None of them knows the daemon. It owns them all ([`state`](crate::state)), and functions that need several of them at
//! once stand above it. So a part can be read, tested and moved by itself.

pub(crate) mod ahead;
pub(crate) mod crowding;
pub(crate) mod files;
pub(crate) mod fill;
pub(crate) mod freeze;
pub(crate) mod guards;
pub(crate) mod held_out;
pub(crate) mod kept;
pub(crate) mod left_out;
pub(crate) mod lent;
pub(crate) mod lifetime;
pub(crate) mod namers;
pub(crate) mod rebuilding;
pub(crate) mod refused;
pub(crate) mod registering;
pub(crate) mod roots;
pub(crate) mod spill;
pub(crate) mod stillness;
pub(crate) mod survives;
pub(crate) mod synced;
pub(crate) mod watch;
