use std::{process::Command, time::Duration};

use tokio::time::timeout;
use vidimus_daemon::signal;

const DEADLINE: Duration = Duration::from_secs(20);

fn send(signal: &str) {
    let us = std::process::id().to_string();
    assert!(
        Command::new("kill")
            .args([signal, &us])
            .status()
            .unwrap()
            .success()
    );
}

/// The handlers are this process's own, so that the signals end none of the other tests.
#[tokio::test]
async fn the_first_signal_asks_for_the_end_and_the_second_one_does_not_wait() {
    let shutdown = signal::shutdown().unwrap();
    assert_eq!(shutdown.run(async { "done" }).await, Some("done"));

    send("-TERM");
    timeout(DEADLINE, shutdown.token().cancelled())
        .await
        .unwrap();
    assert!(!shutdown.immediate().is_cancelled());

    send("-INT");
    let stubborn = shutdown.run(std::future::pending::<()>());
    assert_eq!(timeout(DEADLINE, stubborn).await.unwrap(), None);
}
