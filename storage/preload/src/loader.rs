//! Whose dynamic loader has brought us in. Only glibc's: a child of another C library (musl, uClibc) inherits LD_PRELOAD
//! and loads us as well, with its own libc in the place of ours. There everything passes through, as without us.

use core::ffi::{c_char, c_int};

/// True if the process's C library is glibc, by a function that others do not have.
pub fn is_glibcs() -> bool {
    let at: usize;
    // SAFETY: a load from our own table of addresses: 0 where nobody defines the function.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!(
            ".weak gnu_get_libc_version",
            "mov {}, [rip + gnu_get_libc_version@GOTPCREL]",
            out(reg) at, options(nostack, readonly, preserves_flags),
        );
    }
    // SAFETY: as above.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!(
            ".weak gnu_get_libc_version",
            "adrp {0}, :got:gnu_get_libc_version",
            "ldr {0}, [{0}, :got_lo12:gnu_get_libc_version]",
            out(reg) at, options(nostack, readonly, preserves_flags),
        );
    }
    at != 0
}

/// True if a constructor got main's arguments, which lie one behind the other. glibc hands them over; what is found in
/// their place elsewhere means nothing, even where something imitates glibc.
pub fn are_mains(argc: c_int, argv: *const *const c_char, envp: *const *const c_char) -> bool {
    let end = usize::try_from(argc).ok().map(|n| argv.wrapping_add(n).wrapping_add(1));
    !argv.is_null() && argv.is_aligned() && end == Some(envp)
}
