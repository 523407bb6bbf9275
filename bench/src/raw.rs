//! The least that issuing can cost: one request verified and one certificate signed, on one core,
//! with nothing around it.

use std::{fs, hint::black_box, path::Path, time::Duration};

use anyhow::Context;
use vidimus_keys::file::FileKey;
use vidimus_x509::{csr::VerifiedCsr, key::KeyAlgorithm, signer::Signer};

use crate::{cpu, drive::Run};

/// As long as a leaf's certificate is before it is signed.
const MESSAGE: [u8; 700] = [0x30; 700];
/// How much CPU time one run takes.
const RUN: Duration = Duration::from_millis(500);

/// The CA key and the request.
pub(crate) struct Raw {
    key: FileKey,
    request: Vec<u8>,
}

impl Raw {
    /// Reads a request and makes a P-384 key, as the CA has it.
    pub(crate) fn open(request: &Path) -> anyhow::Result<Self> {
        Ok(Self {
            key: FileKey::generate(KeyAlgorithm::EcdsaP384).context("failed to make a key")?,
            request: fs::read(request)?,
        })
    }

    /// One run; latency and CPU time are the same thing here.
    pub(crate) fn run(&self) -> anyhow::Result<Run> {
        let start = cpu::this_thread()?;
        let mut done = 0_u32;
        let used = loop {
            for _ in 0..50 {
                black_box(VerifiedCsr::parse(black_box(&self.request))?);
                black_box(self.key.sign(black_box(&MESSAGE))?);
            }
            done = done.saturating_add(50);
            let used = cpu::this_thread()?.saturating_sub(start);
            if used >= RUN {
                break used;
            }
        };
        let cpu = used.as_secs_f64() * 1e6 / f64::from(done);
        Ok(Run {
            cpu,
            rate: 1e6 / cpu,
            p50: cpu,
            p99: cpu,
        })
    }
}
