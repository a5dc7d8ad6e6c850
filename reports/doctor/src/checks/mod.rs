//! The checks. Each is a pure function of a [`View`]; one small file a subject.

mod alignment;
mod atomic;
mod btrfs;
mod clock;
mod container;
mod controllers;
mod cxl;
mod dax;
mod ephemeral;
mod exports;
mod flush;
mod mariadb;
mod memory;
mod mount_options;
mod network;
mod numa;
mod pmem;
mod pmem_media;
mod postgres;
mod preloaded;
mod processor;
mod queues;
mod redis;
mod sqlite;
mod stack;
mod tmpfs;
mod unseen;

pub use unseen::unseen;

use crate::finding::Finding;
use crate::view::View;

/// All of them, in the order of the page that lists them.
const CHECKS: [fn(&View<'_>) -> Vec<Finding>; 26] = [
    postgres::check,
    mariadb::check,
    redis::check,
    sqlite::check,
    preloaded::check,
    tmpfs::check,
    mount_options::check,
    flush::check,
    stack::check,
    btrfs::check,
    network::check,
    ephemeral::check,
    exports::check,
    container::check,
    pmem::check,
    pmem_media::check,
    dax::check,
    cxl::check,
    atomic::check,
    alignment::check,
    queues::check,
    controllers::check,
    numa::check,
    memory::check,
    processor::check,
    clock::check,
];

/// Everything that is found: durability first, then speed, then what is good to know.
pub fn findings(view: &View<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = CHECKS.iter().flat_map(|check| check(view)).collect();
    found.sort_by_key(|finding| finding.kind);
    found
}
