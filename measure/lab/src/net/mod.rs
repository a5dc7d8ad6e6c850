//! Other hosts on this machine: network namespaces, a way there that takes its time, and what a round trip on it takes.

mod host;
mod ping;
mod relay;

pub use host::Host;
pub use ping::{Ends, ping, ping_all, pong};
pub use relay::Relay;
