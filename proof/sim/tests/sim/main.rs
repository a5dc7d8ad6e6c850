//! Short campaigns of crash points, and planted bugs that they notice. One program, so that campaigns run side by side.

mod block;
mod common;
mod crash_points;
mod guests;
mod mirror;
mod mutation;
mod names;
mod names_planted;
mod spill;
