//! What the drivers share: work directories, the two sides, time limits, and cleaning up.

pub mod bounded;
pub mod cases;
pub mod crash;
pub mod disk;
pub mod files;
pub mod mount;
pub mod processes;
pub mod seawall;
pub mod trace;
pub mod work;
