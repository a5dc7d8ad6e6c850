//! Power cuts by the campaign's own parts, and disks that refuse. One program, so that tests of all files run side by side.

mod common;
mod failed_commit;
mod powercut;
mod refused_sync;
mod slow_flush;
mod sqlite_alone;
