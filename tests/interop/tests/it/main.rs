//! Shows that grpc-go, which VirtRigaud is made of, and this house understand one another: its
//! client calls our provider, our manager calls its server, and neither loses a call when the other
//! rotates or stops. And that our TLS server and our channel meet every other program as they should: served, or refused
//! with an alert that is heard.
//!
//! The Go programs are under `go/`; their stubs are generated from our `.proto` files by the test.

#[cfg(test)]
mod curl;
#[cfg(test)]
mod go_client;
#[cfg(test)]
mod go_matrix;
#[cfg(test)]
mod go_server;
#[cfg(test)]
mod golang;
#[cfg(test)]
mod grpcio;
#[cfg(test)]
mod haproxy;
#[cfg(test)]
mod matrix;
#[cfg(test)]
mod nginx;
#[cfg(test)]
mod openssl;
#[cfg(test)]
mod scanners;
#[cfg(test)]
mod stunnel;
#[cfg(test)]
mod support;
