//! A guest in this process: what QEMU and a guest's kernel do with a vhost-user-blk disk, without either. So a backend can be
//! killed at any step, hear nonsense, and be measured against another one, where there is no virtualization.
//!
//! Input: a backend's socket. Output: requests and their answers. The memory that a guest shares, and what it keeps of requests
//! in flight, outlive the backend: [`Guest::connect_again`] goes on with the next one, as QEMU does with `reconnect=1`.
//!
//! What it leaves out: interrupts other than by eventfd, packed rings.

#![deny(unsafe_code)]

mod front;
mod moving;
mod ring;
mod trouble;

pub use front::Guest;
pub use moving::{LOG_ALL, Move};
pub use ring::{BYTES as RING_BYTES, Done, Op, QUEUE, Raw, Ring, SLOT_BYTES, SLOTS};
pub use trouble::Trouble;
