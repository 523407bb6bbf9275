//! The public API of the mutual TLS runtime, tried with clients and certificates that are not its own.

#[cfg(test)]
mod accept;
#[cfg(test)]
mod bad_material;
#[cfg(test)]
mod busy;
#[cfg(test)]
mod channel;
#[cfg(test)]
mod child;
#[cfg(test)]
mod crl;
#[cfg(test)]
mod crypto;
#[cfg(test)]
mod drain;
#[cfg(test)]
mod events;
#[cfg(test)]
mod examples;
#[cfg(test)]
mod foreign;
#[cfg(test)]
mod http1;
#[cfg(test)]
mod limits;
#[cfg(test)]
mod listen;
#[cfg(test)]
mod local;
#[cfg(test)]
mod material;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod metrics;
#[cfg(test)]
mod names;
#[cfg(test)]
mod overseer;
#[cfg(test)]
mod peers;
#[cfg(test)]
mod pinned;
#[cfg(test)]
mod policy;
#[cfg(test)]
mod policy_entries;
#[cfg(test)]
mod policy_file;
#[cfg(test)]
mod policy_methods;
#[cfg(test)]
mod policy_reload;
#[cfg(test)]
mod posture;
#[cfg(test)]
mod proxy;
#[cfg(test)]
mod raw;
#[cfg(test)]
mod serving;
#[cfg(test)]
mod shrink;
#[cfg(test)]
mod shrink_paths;
#[cfg(test)]
mod sources;
#[cfg(test)]
mod support;
#[cfg(test)]
mod watch;
#[cfg(test)]
mod writers;
#[cfg(test)]
mod writes;
