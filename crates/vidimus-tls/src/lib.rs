//! Reloadable mutual TLS for tonic, hyper and axum servers and clients.
