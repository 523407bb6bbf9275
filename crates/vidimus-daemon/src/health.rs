//! Named checks, and the three HTTP pages that show them.

use std::{
    collections::BTreeMap,
    fmt::{self, Debug, Formatter},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use axum::{Json, Router, extract::State, http::StatusCode, routing::get};
use serde::Serialize;

const READY_BUDGET: Duration = Duration::from_secs(5);
const HEALTH_BUDGET: Duration = Duration::from_secs(10);

type CheckFuture = Pin<Box<dyn Future<Output = Result<(), String>> + Send>>;
type CheckFn = dyn Fn() -> CheckFuture + Send + Sync;

/// The checks of one process. Cloning shares them.
#[derive(Clone, Default)]
pub struct Checks {
    checks: Arc<Mutex<BTreeMap<String, Check>>>,
    cache: Duration,
}

#[derive(Clone)]
struct Check {
    run: Arc<CheckFn>,
    last: Option<(Instant, CheckReport)>,
}

/// What all checks together say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// `healthy` or `unhealthy`.
    pub status: &'static str,
    /// Each check by its name.
    pub checks: BTreeMap<String, CheckReport>,
    /// The counts.
    pub summary: Summary,
}

/// What one check says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckReport {
    /// `healthy` or `unhealthy`.
    pub status: &'static str,
    /// What is wrong; empty if nothing is.
    pub message: String,
}

/// How many checks there are and how they went.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// All of them.
    pub total: usize,
    /// Those that passed.
    pub healthy: usize,
    /// Those that failed or took too long.
    pub unhealthy: usize,
}

impl Checks {
    /// No checks; a process without any is healthy.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// As [`Self::new`], but a passed or failed check is not run again before `cache` has passed:
    /// for checks that cost something, behind a page that anybody may ask for.
    #[must_use]
    pub fn cached(cache: Duration) -> Self {
        Self {
            cache,
            ..Self::default()
        }
    }

    /// Adds a check, or replaces the one of this name. It says what is wrong by its error.
    pub fn add<F>(&self, name: impl Into<String>, check: impl Fn() -> F + Send + Sync + 'static)
    where
        F: Future<Output = Result<(), String>> + Send + 'static,
    {
        let run: Arc<CheckFn> = Arc::new(move || Box::pin(check()));
        self.lock().insert(name.into(), Check { run, last: None });
    }

    /// Runs every check; one that isn't done within `budget` has failed.
    pub async fn report(&self, budget: Duration) -> Report {
        let deadline = tokio::time::Instant::now() + budget;
        let mut checks = BTreeMap::new();
        let planned = self.lock().clone();
        for (name, check) in planned {
            let report = match check.last {
                Some((at, report)) if at.elapsed() < self.cache => report,
                _ => self.run(&name, &check.run, deadline, budget).await,
            };
            checks.insert(name, report);
        }
        let total = checks.len();
        let healthy = checks
            .values()
            .filter(|check| check.status == HEALTHY)
            .count();
        Report {
            status: if healthy == total { HEALTHY } else { UNHEALTHY },
            checks,
            summary: Summary {
                total,
                healthy,
                unhealthy: total - healthy,
            },
        }
    }

    async fn run(
        &self,
        name: &str,
        run: &Arc<CheckFn>,
        deadline: tokio::time::Instant,
        budget: Duration,
    ) -> CheckReport {
        let report = match tokio::time::timeout_at(deadline, run()).await {
            Ok(Ok(())) => CheckReport {
                status: HEALTHY,
                message: String::new(),
            },
            Ok(Err(message)) => CheckReport {
                status: UNHEALTHY,
                message,
            },
            Err(_) => CheckReport {
                status: UNHEALTHY,
                message: format!("no answer within {budget:?}"),
            },
        };
        if let Some(check) = self.lock().get_mut(name) {
            check.last = Some((Instant::now(), report.clone()));
        }
        report
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Check>> {
        self.checks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

const HEALTHY: &str = "healthy";
const UNHEALTHY: &str = "unhealthy";

impl Report {
    /// True if every check passed.
    #[must_use]
    pub fn is_healthy(&self) -> bool {
        self.status == HEALTHY
    }
}

impl Debug for Checks {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.lock().keys()).finish()
    }
}

/// `/healthz`: always 200 `ok`, as long as the process answers. `/readyz`: 200 `ready`, or 503
/// `not ready`. `/health`: the [`Report`] as JSON, with 200 or 503.
pub fn router(checks: Checks) -> Router {
    Router::new()
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .route("/health", get(health))
        .with_state(checks)
}

async fn ready(State(checks): State<Checks>) -> (StatusCode, &'static str) {
    if checks.report(READY_BUDGET).await.is_healthy() {
        (StatusCode::OK, "ready")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "not ready")
    }
}

async fn health(State(checks): State<Checks>) -> (StatusCode, Json<Report>) {
    let report = checks.report(HEALTH_BUDGET).await;
    let status = if report.is_healthy() {
        StatusCode::OK
    } else {
        StatusCode::SERVICE_UNAVAILABLE
    };
    (status, Json(report))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[tokio::test]
    async fn one_failed_check_makes_the_whole_unhealthy_and_is_named() {
        let checks = Checks::new();
        checks.add("disk", || async { Ok(()) });
        assert!(checks.report(READY_BUDGET).await.is_healthy());
        checks.add("database", || async { Err("locked".to_owned()) });
        let report = checks.report(READY_BUDGET).await;
        assert!(!report.is_healthy());
        assert_eq!(report.checks["database"].message, "locked");
        assert_eq!(
            report.summary,
            Summary {
                total: 2,
                healthy: 1,
                unhealthy: 1
            }
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_check_that_hangs_has_failed_when_its_budget_is_over() {
        let checks = Checks::new();
        checks.add("stuck", || async {
            std::future::pending::<()>().await;
            Ok(())
        });
        let report = checks.report(Duration::from_secs(5)).await;
        assert_eq!(report.checks["stuck"].message, "no answer within 5s");
    }

    #[tokio::test]
    async fn a_cached_check_is_not_run_for_every_question() {
        for (cache, runs) in [(Duration::from_secs(3600), 1), (Duration::ZERO, 2)] {
            let count = Arc::new(AtomicUsize::new(0));
            let checks = Checks::cached(cache);
            let counter = Arc::clone(&count);
            checks.add("costly", move || {
                counter.fetch_add(1, Ordering::Relaxed);
                async { Ok(()) }
            });
            checks.report(READY_BUDGET).await;
            checks.report(READY_BUDGET).await;
            assert_eq!(count.load(Ordering::Relaxed), runs);
        }
    }
}
