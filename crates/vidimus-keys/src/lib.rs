//! Signer implementations: the encrypted key file.
