//! What the spill thread has come to.

use std::sync::Mutex;

use seawall_core::spill::Spilling;
use seawall_media::locks::lock;

/// Its numbers, and why it gave up.
#[derive(Default)]
pub(crate) struct Spill(Mutex<State>);

#[derive(Default)]
struct State {
    numbers: Spilling,
    trouble: Option<String>,
}

impl Spill {
    /// The numbers after a step.
    pub fn note(&self, numbers: Spilling) {
        lock(&self.0).numbers = numbers;
    }

    /// The area failed.
    pub fn fail(&self, why: String) {
        lock(&self.0).trouble = Some(why);
    }

    /// Slots that hold what the files may lack; bytes that were copied; why nothing is copied any more.
    pub fn now(&self) -> (u32, u64, Option<String>) {
        let state = lock(&self.0);
        (state.numbers.used, state.numbers.bytes, state.trouble.clone())
    }
}
