//! Pools: which one is meant, which options name one, and how one is made where there is none.

mod described;
mod find;
mod fit;
mod for_run;
mod keepers;
mod on_device;
mod wanted;

pub use described::{how_large, medium};
pub use find::{emulated_default, existing, is_served};
pub use for_run::for_run;
pub use keepers::Keepers;
pub use on_device::make_block;
pub use wanted::{Spill, Wanted};
