//! Many runs, until so many crash points were explored: `campaign --points N --seed S`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use seawall_sim::{Counts, Plan, run};

fn argument(name: &str, default: u64) -> u64 {
    let mut arguments = std::env::args().skip_while(|a| a != name);
    arguments.nth(1).and_then(|v| v.replace('_', "").parse().ok()).unwrap_or(default)
}

fn main() {
    let points = argument("--points", 100_000);
    let first = argument("--seed", 1);
    let threads = argument("--threads", 2);
    let (next, done, failed) = (AtomicU64::new(first), AtomicU64::new(0), AtomicBool::new(false));
    let total = Mutex::new(Counts::default());
    let begin = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while done.load(Relaxed) < points && !failed.load(Relaxed) {
                    let plan = Plan::of(next.fetch_add(1, Relaxed));
                    let outcome = run(&plan);
                    done.fetch_add(outcome.counts.points, Relaxed);
                    total.lock().expect("numbers").add(&outcome.counts);
                    if let Some(what) = outcome.violation {
                        failed.store(true, Relaxed);
                        println!("{what}");
                        for line in run(&Plan { trace: true, ..plan }).story {
                            println!("    {line}");
                        }
                    }
                }
            });
        }
    });
    let seconds = begin.elapsed().as_secs_f64();
    let points = done.load(Relaxed);
    println!("{:#?}", total.into_inner().expect("numbers"));
    println!("{points} points in {seconds:.1} s: {:.0} a second", points as f64 / seconds);
    std::process::exit(i32::from(failed.load(Relaxed)));
}
