//! How much memory this process has, client and server together, with the program's own allocator.

use tikv_jemallocator::Jemalloc;

#[global_allocator]
static HEAP: Jemalloc = Jemalloc;

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
