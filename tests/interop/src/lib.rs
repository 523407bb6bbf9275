//! Our provider, our manager and our TLS against programs that nobody here wrote: nothing but tests, under `tests/it`.
