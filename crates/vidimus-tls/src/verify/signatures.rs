//! What every verifier does with handshake signatures: TLS 1.3 ones are checked, others never occur.

/// The methods that rustls' two verifier traits have in common.
macro_rules! handshake_signatures {
    () => {
        /// TLS 1.2 is never negotiated; a signature of it means that a configuration was put together wrongly.
        fn verify_tls12_signature(
            &self,
            _message: &[u8],
            _cert: &rustls_pki_types::CertificateDer<'_>,
            _dss: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            Err(rustls::Error::General("TLS 1.2 is not accepted".to_owned()))
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &rustls_pki_types::CertificateDer<'_>,
            dss: &rustls::DigitallySignedStruct,
        ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
            crate::config::verify_signature(message, cert, dss)
        }

        fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
            crate::config::signature_schemes()
        }
    };
}

pub(super) use handshake_signatures;
