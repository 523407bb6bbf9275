//! What the documents promise, held against the project: pure rules here, the project itself in `tests/it`.

pub mod runner;
pub mod status;
