//! The time-stamp counter, and what one tick of it is worth.

#[cfg(feature = "std")]
use std::sync::OnceLock;
#[cfg(feature = "std")]
use std::time::{Duration, Instant};

/// The counter's present value. Monotone on one CPU; close enough between CPUs for histograms.
#[inline]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: RDTSC exists on every x86-64 CPU and touches no memory.
    return unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(target_arch = "aarch64")]
    {
        let count: u64;
        // SAFETY: CNTVCT_EL0 is readable at EL0 under Linux.
        unsafe { core::arch::asm!("mrs {}, cntvct_el0", out(reg) count, options(nomem, nostack)) };
        count
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    0
}

/// Nanoseconds per tick, as a fixed-point factor that fits into shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clock {
    /// Nanoseconds per 2³² ticks.
    pub ns_per_ticks32: u64,
}

impl Clock {
    /// Nanoseconds of `ticks`, saturating.
    #[inline]
    pub fn ns(self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.ns_per_ticks32)) >> 32).min(u128::from(u64::MAX)) as u64
    }

    /// Begins to measure the counter, for [`calibrate`](Self::calibrate), which then need not wait as long.
    #[cfg(feature = "std")]
    pub fn begin() -> (Instant, u64) {
        static BEGUN: OnceLock<(Instant, u64)> = OnceLock::new();
        *BEGUN.get_or_init(|| (Instant::now(), ticks()))
    }

    /// Measures the counter against the monotonic clock for at least 20 ms.
    #[cfg(feature = "std")]
    pub fn calibrate() -> Self {
        let (start, first) = Self::begin();
        std::thread::sleep(Duration::from_millis(20).saturating_sub(start.elapsed()));
        let (elapsed, passed) = (start.elapsed().as_nanos() as u64, ticks().wrapping_sub(first));
        if passed == 0 {
            return Self { ns_per_ticks32: 0 };
        }
        Self { ns_per_ticks32: ((u128::from(elapsed) << 32) / u128::from(passed)) as u64 }
    }
}
