//! CPU time and memory of a process, from `/proc`.

use std::{collections::BTreeMap, fs, time::Duration};

use anyhow::{Context, bail};

/// `USER_HZ`: the unit of the times in `/proc/<pid>/stat`, part of Linux' interface to programs.
const TICKS_PER_SECOND: u64 = 100;
/// How far the two ways of counting may differ by the second one's coarse ticks alone.
const TICK_ERROR: Duration = Duration::from_millis(30);

/// What a process had used of the CPU at one moment, user and kernel together.
#[derive(Debug)]
pub(crate) struct CpuSample {
    /// By the scheduler, in nanoseconds, of each thread that lives.
    threads: BTreeMap<u32, Duration>,
    /// Of all threads that ever were, in ticks.
    process: Duration,
}

impl CpuSample {
    /// Reads the counters of a running process.
    pub(crate) fn of(pid: u32) -> anyhow::Result<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("the server ended")?;
        let mut threads = BTreeMap::new();
        for entry in fs::read_dir(format!("/proc/{pid}/task"))? {
            let entry = entry?;
            let Some(thread) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse().ok())
            else {
                continue;
            };
            // A thread may end between the listing and the reading.
            if let Ok(text) = fs::read_to_string(entry.path().join("schedstat")) {
                threads.insert(thread, on_cpu(&text)?);
            }
        }
        Ok(Self {
            threads,
            process: user_and_system(&stat)?,
        })
    }

    /// The CPU time used between an earlier sample and this one. The scheduler's count, unless
    /// threads came and went with time that it no longer shows.
    pub(crate) fn since(&self, earlier: &Self) -> Duration {
        let exact: Duration = self
            .threads
            .iter()
            .map(|(thread, now)| {
                now.saturating_sub(earlier.threads.get(thread).copied().unwrap_or_default())
            })
            .sum();
        let coarse = self.process.saturating_sub(earlier.process);
        if coarse.abs_diff(exact) > TICK_ERROR {
            coarse
        } else {
            exact
        }
    }
}

/// CPU time of the calling thread.
pub(crate) fn this_thread() -> anyhow::Result<Duration> {
    on_cpu(
        &fs::read_to_string("/proc/thread-self/schedstat")
            .context("failed to read this thread's CPU time")?,
    )
}

/// Memory of a process that is in RAM, in megabytes.
pub(crate) fn resident(pid: u32) -> anyhow::Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("the server ended")?;
    let kibibytes: u32 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.trim().strip_suffix(" kB"))
        .context("no VmRSS in the process's status")?
        .trim()
        .parse()?;
    Ok(f64::from(kibibytes) * 1024.0 / 1e6)
}

/// First field of `schedstat`: nanoseconds on a CPU.
fn on_cpu(schedstat: &str) -> anyhow::Result<Duration> {
    let nanoseconds = schedstat
        .split_whitespace()
        .next()
        .context("empty schedstat")?;
    Ok(Duration::from_nanos(nanoseconds.parse()?))
}

/// Fields 14 and 15 of `stat`, counted behind the program's name, which may hold anything.
fn user_and_system(stat: &str) -> anyhow::Result<Duration> {
    let (_, fields) = stat.rsplit_once(')').context("no name in stat")?;
    let mut fields = fields.split_whitespace().skip(11);
    let (Some(user), Some(system)) = (fields.next(), fields.next()) else {
        bail!("too few fields in stat");
    };
    let ticks = user.parse::<u64>()?.saturating_add(system.parse()?);
    Ok(Duration::from_millis(
        ticks.saturating_mul(1000 / TICKS_PER_SECOND),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_and_system_time_are_found_behind_a_name_with_brackets() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 250 50 0 0 20";
        assert_eq!(user_and_system(stat).unwrap(), Duration::from_secs(3));
    }

    #[test]
    fn a_thread_that_works_uses_cpu_time() {
        let (process, thread) = (
            CpuSample::of(std::process::id()).unwrap(),
            this_thread().unwrap(),
        );
        let mut sum = 0_u64;
        while this_thread().unwrap() < thread + Duration::from_millis(50) {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        let used = CpuSample::of(std::process::id()).unwrap().since(&process);
        assert!(used >= Duration::from_millis(45), "{used:?}");
    }
}
