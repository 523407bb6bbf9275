//! What every long-running program shares: signals, supervised tasks, admin endpoint, telemetry, clock.
