//! A mean ratio and how sure it is.
//!
//! Input: ratios of pairs, each of the same kind. Output: their geometric mean and an interval by Student's t, on
//! logarithms: twice as fast and half as fast are as far from equal.

/// Geometric mean of ratios, and its standard error as a logarithm.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    log_mean: f64,
    log_error: f64,
    count: usize,
}

impl Interval {
    /// Of ratios above 0; none of fewer than three: they say nothing about their spread.
    pub fn of(ratios: &[f64]) -> Option<Self> {
        let logs: Vec<f64> = ratios.iter().filter(|r| **r > 0.0).map(|r| r.ln()).collect();
        let count = logs.len();
        if count < 3 || count < ratios.len() {
            return None;
        }
        let log_mean = logs.iter().sum::<f64>() / count as f64;
        let squares: f64 = logs.iter().map(|log| (log - log_mean).powi(2)).sum();
        let log_error = (squares / (count - 1) as f64 / count as f64).sqrt();
        Some(Interval { log_mean, log_error, count })
    }

    /// How many ratios.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The geometric mean.
    pub fn mean(&self) -> f64 {
        self.log_mean.exp()
    }

    /// The lower end of the 95 % interval: the truth is below it in one case of forty.
    pub fn low(&self) -> f64 {
        (self.log_mean - t_975(self.count - 1) * self.log_error).exp()
    }

    /// Its upper end.
    pub fn high(&self) -> f64 {
        (self.log_mean + t_975(self.count - 1) * self.log_error).exp()
    }

    /// Whether it is farther from 1 than chance brings equals in one case of 370: three standard errors.
    pub fn is_off(&self) -> bool {
        self.log_mean.abs() > 3.0 * self.log_error
    }
}

/// Student's t at 97.5 %, by Cornish and Fisher's expansion about the normal distribution's 1.96.
fn t_975(freedom: usize) -> f64 {
    let (z, v) = (1.959_964_f64, freedom as f64);
    let (z3, z5, z7) = (z.powi(3), z.powi(5), z.powi(7));
    z + (z3 + z) / (4.0 * v)
        + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * v * v)
        + (3.0 * z7 + 19.0 * z5 + 17.0 * z3 - 15.0 * z) / (384.0 * v.powi(3))
}

#[cfg(test)]
mod tests {
    use seawall_load::random::Random;

    use super::*;

    #[test]
    fn students_t_is_that_of_the_tables() {
        for (freedom, t) in [(4, 2.776), (9, 2.262), (29, 2.045), (89, 1.987)] {
            assert!((t_975(freedom) - t).abs() < 0.01, "{freedom}: {} is not {t}", t_975(freedom));
        }
    }

    #[test]
    fn twice_and_half_cancel() {
        let found = Interval::of(&[2.0, 0.5, 1.0]).expect("three");
        assert!((found.mean() - 1.0).abs() < 1e-12 && (found.low() * found.high() - 1.0).abs() < 1e-12);
        assert!(!found.is_off());
        assert!(Interval::of(&[1.01, 1.01, 1.011]).expect("three").is_off());
        assert_eq!((Interval::of(&[1.0, 1.0]), Interval::of(&[1.0, 1.0, 0.0])), (None, None));
    }

    #[test]
    fn the_truth_is_inside_in_nineteen_of_twenty_cases() {
        let mut random = Random::new(7, 0);
        let mut bell = || (0..12).map(|_| random.fraction()).sum::<f64>() - 6.0;
        let mut trial = || (0..30).map(|_| 0.99 * (0.03 * bell()).exp()).collect::<Vec<_>>();
        let inside = |found: Interval| found.low() <= 0.99 && 0.99 <= found.high();
        let inside = (0..2000).filter(|_| inside(Interval::of(&trial()).expect("thirty"))).count();
        assert!((1870..=1930).contains(&inside), "{inside} of 2000");
    }
}
