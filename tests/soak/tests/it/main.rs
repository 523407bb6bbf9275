//! Our channel and our server through rotation after rotation of leaf and CA, under streams and calls.
//!
//! `VIDIMUS_SOAK=full` runs the long forms, which `make soak` does, `streams` or `connections` one of them; otherwise a short
//! one is run.

#[cfg(test)]
mod calls;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod rotation;
#[cfg(test)]
mod service;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod world;
