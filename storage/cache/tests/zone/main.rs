//! One process and a zone: what is served, what is not, and what is found again.

#[path = "../common/mod.rs"]
mod common;
mod damage;
mod entered;
mod restart;
mod served;
mod steps;
