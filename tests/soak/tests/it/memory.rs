//! How much memory this process has, client and server together.
//!
//! What tells a leak is what the program holds. What the kernel counts also has what the allocator keeps for later, which
//! grows with the largest overlap of old and new connections so far and says little about the program.

use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// What is allocated at present, in KiB.
pub(crate) fn held() -> u64 {
    (HEAP.current_usage() / 1024) as u64
}

/// Resident memory in KiB, as the kernel counts it.
pub(crate) fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("this process's status");
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    let number = line.and_then(|line| line.split_whitespace().nth(1));
    number
        .and_then(|text| text.parse().ok())
        .expect("a number of KiB")
}

/// The same in MiB, for people.
pub(crate) fn mebibytes(kibibytes: u64) -> String {
    format!("{}.{} MiB", kibibytes / 1024, kibibytes % 1024 * 10 / 1024)
}
