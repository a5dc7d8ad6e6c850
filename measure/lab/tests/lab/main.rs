//! The cases with small loads, and databases that are killed under the lab's eyes. One program, so that tests of all files run side by side.

mod browser;
mod cases;
mod common;
mod endure;
mod generators_killed;
mod mariadb_killed;
mod mount_killed;
mod package;
mod postgres_killed;
mod redis_killed;
mod sqlite_killed;
mod stores_killed;
