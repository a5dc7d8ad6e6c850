//! `seawall-lab`: the demo and the benchmarks.
fn main() {}
