//! The documents against the project: the status table, the reference pages, the crate map, the commands, the change
//! log, the links between pages, and the parsers against the committed fuzz corpora; and the verifiers of peers against the
//! suites that others wrote.

mod build;
mod documents;
mod fuzz_corpus;
mod how_to;
mod limbo;
mod links;
mod markdown;
mod pkits;
mod reference;
mod repository;
mod status;
mod verdicts;
