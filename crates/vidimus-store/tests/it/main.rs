//! What the store promises: the suite of every back end, and what is peculiar to SQLite, files and
//! processes.

mod suite;
