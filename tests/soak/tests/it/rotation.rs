//! The soak itself, and what it says at the end.

use std::env;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use vidimus_testkit::wait_until_async;

use crate::calls::Calls;
use crate::memory::{mebibytes, resident};
use crate::service::Published;
use crate::streams::{Streams, Tally};
use crate::world::World;

/// One form of the soak.
#[derive(Clone, Copy, Debug)]
struct Form {
    connections: usize,
    streams_each: usize,
    rotations: u32,
    /// After which rotation memory is measured for the first time; the second time is at the end.
    warm: u32,
    /// How long streams may go on when their peer is no longer trusted.
    grace: Duration,
    /// The time over which a fleet connects anew.
    jitter: Duration,
    /// The time between two numbers.
    beat: Duration,
}

const SHORT: Form = Form {
    connections: 10,
    streams_each: 20,
    rotations: 6,
    warm: 2,
    grace: Duration::from_millis(300),
    jitter: Duration::from_millis(50),
    beat: Duration::from_millis(50),
};

const MANY_STREAMS: Form = Form {
    connections: 100,
    streams_each: 100,
    rotations: 100,
    warm: 10,
    grace: Duration::from_secs(1),
    jitter: Duration::from_millis(250),
    beat: Duration::from_secs(2),
};

const MANY_CONNECTIONS: Form = Form {
    connections: 2000,
    streams_each: 5,
    jitter: Duration::from_secs(2),
    ..MANY_STREAMS
};

/// What came of one form.
#[derive(Debug)]
struct Outcome {
    form: Form,
    took: Duration,
    calls: u64,
    failures: Vec<String>,
    numbers: u64,
    received: u64,
    reopened: u64,
    refused: u64,
    lost: u64,
    /// Resident memory, in KiB.
    warm: u64,
    end: u64,
}

/// V10, V14. No unary call fails; streams end with `UNAVAILABLE` alone and miss no number; memory doesn't grow.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rotations_lose_no_call_and_no_number() {
    let asked = env::var("VIDIMUS_SOAK").unwrap_or_default();
    let forms = match asked.as_str() {
        "" => &[SHORT][..],
        "full" => &[MANY_STREAMS, MANY_CONNECTIONS],
        "streams" => &[MANY_STREAMS],
        "connections" => &[MANY_CONNECTIONS],
        other => panic!("VIDIMUS_SOAK is {other:?}; accepted: full, streams, connections"),
    };
    let full = !asked.is_empty();
    let mut outcomes = Vec::new();
    for form in forms {
        outcomes.push(soak(*form).await);
    }
    for outcome in &outcomes {
        println!("{}", table(outcome));
    }
    for outcome in &outcomes {
        let failures = &outcome.failures;
        assert!(
            failures.is_empty(),
            "{} failed: {failures:#?}",
            failures.len()
        );
        assert_eq!(outcome.lost, 0, "{outcome:?}");
        let streams = (outcome.form.connections * outcome.form.streams_each) as u64;
        let ended = u64::from(outcome.form.rotations) * streams;
        assert!(
            outcome.reopened >= ended,
            "each stream ends in each rotation: {outcome:?}"
        );
        // The short form is over before anything could leak that shows beside what a moment holds by chance.
        let grown = outcome.end * 10 > outcome.warm * 11;
        assert!(
            !full || !grown,
            "memory grew by more than a tenth: {outcome:?}"
        );
    }
}

async fn soak(form: Form) -> Outcome {
    let began = Instant::now();
    let mut world = World::start(form.connections, form.grace, form.jitter).await;
    let mut streams = Streams::start(&world.channels, form.streams_each);
    let calls = Calls::start(&world.channels);
    let mut beating = JoinSet::new();
    let (numbers, beat) = (world.numbers.clone(), form.beat);
    beating.spawn(async move {
        let mut beats = tokio::time::interval(beat);
        loop {
            beats.tick().await;
            numbers.send_modify(|published| published.last += 1);
        }
    });
    all_open(&mut streams).await;
    let mut warm = 0;
    for rotation in 1..=form.rotations {
        let start = Instant::now();
        world.rotate().await;
        all_open(&mut streams).await;
        if rotation == form.warm {
            warm = resident();
        }
        let reopened = Tally::of(&streams.tally.reopened);
        println!(
            "{} x {}: rotation {rotation}/{} in {:.1} s: {} calls, {} failed, {reopened} streams opened again, {} resident",
            form.connections,
            form.streams_each,
            form.rotations,
            start.elapsed().as_secs_f64(),
            calls.count(),
            calls.failures().len(),
            mebibytes(resident()),
        );
    }
    let end = resident();
    let (calls, failures) = calls.finish().await;
    beating.abort_all();
    while beating.join_next().await.is_some() {}
    world.numbers.send_modify(|published| published.done = true);
    let Published { last, .. } = *world.numbers.borrow();
    let tally = std::sync::Arc::clone(&streams.tally);
    let finished = tokio::time::timeout(Duration::from_secs(300), streams.finish(last));
    let lost = finished.await.expect("all streams end").expect("no fault");
    world.stop().await;
    Outcome {
        form,
        took: began.elapsed(),
        calls,
        failures,
        numbers: last,
        received: Tally::of(&tally.received),
        reopened: Tally::of(&tally.reopened),
        refused: Tally::of(&tally.refused),
        lost,
        warm,
        end,
    }
}

/// Waits until every stream has its headers.
async fn all_open(streams: &mut Streams) {
    let count = streams.count();
    let tally = std::sync::Arc::clone(&streams.tally);
    wait_until_async(Duration::from_secs(300), || {
        let fault = streams.fault();
        let open = Tally::of(&tally.open);
        async move {
            assert_eq!(fault, None);
            if open == count {
                Ok(())
            } else {
                Err(format!("{open} of {count} streams are open"))
            }
        }
    })
    .await;
}

fn table(outcome: &Outcome) -> String {
    let form = &outcome.form;
    let growth = outcome.end * 1000 / outcome.warm.max(1);
    [
        ("connections", form.connections.to_string()),
        (
            "streams",
            (form.connections * form.streams_each).to_string(),
        ),
        ("rotations", form.rotations.to_string()),
        ("seconds", outcome.took.as_secs().to_string()),
        ("unary calls", outcome.calls.to_string()),
        ("unary calls failed", outcome.failures.len().to_string()),
        ("streams opened again", outcome.reopened.to_string()),
        ("attempts at it that failed", outcome.refused.to_string()),
        ("numbers for each stream", outcome.numbers.to_string()),
        ("numbers received", outcome.received.to_string()),
        ("numbers lost", outcome.lost.to_string()),
        (
            &format!("memory after {}", form.warm),
            mebibytes(outcome.warm),
        ),
        (
            &format!("memory after {}", form.rotations),
            mebibytes(outcome.end),
        ),
        ("ratio", format!("{}.{:03}", growth / 1000, growth % 1000)),
    ]
    .iter()
    .map(|(what, value)| format!("{what:<28}{value}\n"))
    .collect()
}
