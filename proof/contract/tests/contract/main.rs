//! What every call does, on each front and medium, and whether it is what the bare file system does. One program, so that tests of all files run side by side.

mod asynchronous;
mod block;
mod common;
mod contract;
mod mount;
mod regression;
mod smoke;
mod uring;
