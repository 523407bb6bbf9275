//! What the test bench makes is what openssl and gRPC say it is.

#[cfg(test)]
mod echo;
#[cfg(test)]
mod pki;
