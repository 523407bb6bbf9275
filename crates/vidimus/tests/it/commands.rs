//! Each command with its answers, its refusals and its exit codes.

mod audit;
mod ca;
mod config;
mod policy;
mod provider;
mod published;
mod revocation;
mod roots;
mod tls;
