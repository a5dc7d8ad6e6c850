//! The zone for whoever needs it: by a process that has not joined the log it is joined first.

use core::ffi::c_int;
use core::sync::atomic::Ordering::Acquire;

use seawall_cache::front::word::Word;
use seawall_cache::shared::{Cache, OperationOwner};

use super::table;
use super::zone::{Known, known};
use crate::{owner, session, sys};

/// The zone, for a use of `fd` that matters to it; joins the log if that has not been tried, and `fd` is a regular file.
#[inline]
pub fn zone_for(fd: c_int) -> Option<&'static Cache> {
    match known() {
        Known::No => None,
        Known::Yes(cache) => Some(cache),
        Known::NotYet => ask_for(fd),
    }
}

#[cold]
fn ask_for(fd: c_int) -> Option<&'static Cache> {
    if session::is_off() || table::get(fd).is_other() {
        return None;
    }
    if !sys::fstat(fd).is_ok_and(|stat| stat.regular) {
        table::set(fd, Word::OTHER);
        return None;
    }
    zone()
}

/// The zone, for a use of a path.
pub fn zone() -> Option<&'static Cache> {
    if matches!(known(), Known::NotYet) {
        session::engine()?;
    }
    match known() {
        Known::Yes(cache) => Some(cache),
        Known::No | Known::NotYet => None,
    }
}

/// The caller, for the zone: by this the daemon knows whether it lives.
#[inline]
pub fn who() -> Option<OperationOwner> {
    let engine = session::joined()?;
    let client = owner::current(engine)?.client();
    let generation = engine.shm().client(client)?.generation().load(Acquire);
    Some(OperationOwner::of_client(client, generation, (sys::thread_pointer() >> 6) as u32))
}
