//! X.509 rules: CSR, key policy, profile, issuing, chain and the Signer trait; no I/O, no clock.
