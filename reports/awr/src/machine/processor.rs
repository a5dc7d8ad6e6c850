//! CPU time by what it was spent on, in clock ticks, and context switches.

use crate::model::Reading;

/// In the order of the first line of `/proc/stat`.
const STATES: [&str; 8] = ["user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"];

/// `/proc/stat` as a reading. Time of guests is in `user` and `nice` already.
pub fn reading(stat: &str, boot: &str) -> Reading {
    let mut reading = Reading::new("cpu", "", boot);
    for line in stat.lines() {
        let mut words = line.split_ascii_whitespace();
        match (words.next(), &mut words) {
            (Some("cpu"), values) => {
                for (name, value) in STATES.iter().zip(values) {
                    reading = reading.counter(name, value.parse().unwrap_or(0.0));
                }
            }
            (Some(name @ ("ctxt" | "processes")), values) => {
                let value = values.next().and_then(|v| v.parse().ok()).unwrap_or(0.0);
                reading = reading.counter(name, value);
            }
            _ => {}
        }
    }
    reading
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_first_line_is_the_sum_of_all_cpus() {
        let stat = "cpu  10 1 5 80 3 0 1 0 0 0\ncpu0 5 1 2 40 3 0 1 0 0 0\nctxt 77\nbtime 1\nprocesses 9\n";
        let reading = super::reading(stat, "b");
        assert_eq!((reading.counters["user"], reading.counters["idle"]), (10.0, 80.0));
        assert_eq!((reading.counters["ctxt"], reading.counters["processes"]), (77.0, 9.0));
    }
}
