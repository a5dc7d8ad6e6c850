//! The sub-commands but `run`: each asks the daemon, or works on a pool nobody uses.

pub mod ask;
pub mod awr;
pub mod cache;
mod command_line;
pub mod daemon;
pub mod disk;
pub mod doctor;
pub mod freeze;
pub mod generate;
pub mod guard;
pub mod init;
pub mod inspect;
pub mod keeper;
pub mod lab;
pub mod layout;
pub mod mirror;
pub mod mount;
mod planned;
pub mod provision;
pub mod recover;
mod recover_all;
mod serving;
pub mod status;
pub mod takeover;
pub mod tier;
pub mod tune;
pub mod twin;
