//! What the public interface promises, with requests from the openssl program as input, and openssl
//! and Go's crypto/x509 as judges of what is issued.

#[cfg(test)]
mod accepted;
#[cfg(test)]
mod ca;
#[cfg(test)]
mod certificate;
#[cfg(test)]
mod chain;
#[cfg(test)]
mod crl;
#[cfg(test)]
mod judge;
#[cfg(test)]
mod names;
#[cfg(test)]
mod profile;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod refused;
#[cfg(test)]
mod request;
#[cfg(test)]
mod root;
#[cfg(test)]
mod shape;
#[cfg(test)]
mod subordinate;
#[cfg(test)]
mod validity;
