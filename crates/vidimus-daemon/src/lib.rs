//! What every long-running program shares: signals, supervised tasks, health and admin pages over
//! HTTP, telemetry and the clock.
//!
//! Nothing in here knows what a program does. Nothing prints, and nothing exits the process: a
//! program's `main` decides how it ends.

pub mod admin;
pub mod clock;
pub mod health;
pub mod http;
pub mod signal;
pub mod tasks;
pub mod telemetry;
