//! The fuzz targets without a fuzzer: the committed corpora and a few seconds of changed copies of them, on any
//! toolchain. `make test` and `make fuzz` also run them under libFuzzer where nightly Rust is at hand.

use std::{
    collections::hash_map::RandomState,
    hash::BuildHasher as _,
    path::Path,
    time::{Duration, Instant},
};

use crate::repository;

#[expect(
    unreachable_pub,
    reason = "the file is the fuzz package's library, where these are public"
)]
#[path = "../../../../fuzz/src/lib.rs"]
mod parsers;

/// How long each parser is fed with changed inputs.
const BUDGET: Duration = Duration::from_secs(3);

#[test]
fn certificate_parser_stands_its_corpus_and_changed_copies_of_it() {
    feed("certificate", parsers::certificate);
}

#[test]
fn crl_parser_stands_its_corpus_and_changed_copies_of_it() {
    feed("crl", parsers::crl);
}

#[test]
fn csr_parser_stands_its_corpus_and_changed_copies_of_it() {
    feed("csr", parsers::csr);
}

#[test]
fn pem_parser_stands_its_corpus_and_changed_copies_of_it() {
    feed("pem", parsers::pem);
}

#[test]
fn machine_config_parser_stands_its_corpus_and_changed_copies_of_it() {
    feed("machine_config", parsers::machine_config);
}

#[test]
fn policy_parser_stands_its_corpus_and_changed_copies_of_it() {
    feed("policy", parsers::policy);
}

#[test]
fn proxy_header_parser_stands_its_corpus_and_changed_copies_of_it() {
    feed("proxy_header", parsers::proxy_header);
}

#[expect(
    clippy::print_stdout,
    reason = "the seed of a failed run is what one needs to see it again"
)]
fn feed(target: &str, parse: fn(&[u8])) {
    let corpus = corpus(&repository::root().join("fuzz/corpus").join(target));
    for input in &corpus {
        parse(input);
    }
    let seed = match std::env::var("VIDIMUS_FUZZ_SEED") {
        Ok(seed) => seed.parse().expect("VIDIMUS_FUZZ_SEED is a number"),
        Err(_) => RandomState::new().hash_one(target),
    };
    println!("{target}: VIDIMUS_FUZZ_SEED={seed}");
    let mut random = Random(seed | 1);
    let start = Instant::now();
    let mut runs = 0_u64;
    while start.elapsed() < BUDGET {
        parse(&random.changed(&corpus));
        runs += 1;
    }
    println!(
        "{target}: {} inputs as they are, {runs} changed",
        corpus.len()
    );
    assert!(runs > 20, "{target}: only {runs} inputs in {BUDGET:?}");
}

fn corpus(folder: &Path) -> Vec<Vec<u8>> {
    let mut names: Vec<_> = std::fs::read_dir(folder)
        .unwrap_or_else(|error| repository::fail(folder, &error))
        .map(|entry| entry.expect("an input").path())
        .collect();
    names.sort();
    assert!(
        names.len() > 4,
        "{} has {} inputs",
        folder.display(),
        names.len()
    );
    names
        .iter()
        .map(|name| std::fs::read(name).expect("an input that was just listed"))
        .collect()
}

/// Xorshift: the same inputs for the same seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or(usize::MAX) % bound.max(1)
    }

    /// One input of the corpus with a few changes.
    fn changed(&mut self, corpus: &[Vec<u8>]) -> Vec<u8> {
        let mut input = corpus[self.below(corpus.len())].clone();
        for _ in 0..=self.below(4) {
            let at = self.below(input.len());
            match self.below(6) {
                0 => input.truncate(at),
                1 => input.insert(
                    at.min(input.len()),
                    u8::try_from(self.below(256)).unwrap_or(0),
                ),
                2 => {
                    let piece = input[at..].iter().take(64).copied().collect::<Vec<_>>();
                    input.splice(at..at, piece);
                }
                3 => {
                    let other = &corpus[self.below(corpus.len())];
                    let from = self.below(other.len());
                    input.truncate(at);
                    input.extend_from_slice(&other[from..]);
                }
                4 if !input.is_empty() => drop(input.remove(at)),
                _ => {
                    if let Some(byte) = input.get_mut(at) {
                        *byte ^= 1 << self.below(8);
                    }
                }
            }
        }
        input
    }
}
