//! Certificates and keys from files, for client and server.

use std::fmt;
use std::path::PathBuf;

use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::failure::{Failure, messages};

/// Authorities from a file; `key` is the setting that names it.
pub(crate) fn roots(key: &str, path: PathBuf) -> Result<RootCertStore, Failure> {
    let mut roots = RootCertStore::empty();
    for certificate in chain(key, path)? {
        // Of the many that a system trusts, some are of kinds that rustls does not take.
        let _ = roots.add(certificate);
    }
    if roots.is_empty() {
        return Err(messages::authorities_refused(key));
    }
    Ok(roots)
}

/// Certificates from a file; `key` is the setting that names it.
pub(crate) fn chain(key: &str, path: PathBuf) -> Result<Vec<CertificateDer<'static>>, Failure> {
    let wrong = |flaw: &dyn fmt::Display| messages::certificates_refused(key, path.display(), flaw);
    let found: Result<Vec<_>, _> =
        CertificateDer::pem_file_iter(&path).and_then(|certificates| certificates.collect());
    let found = found.map_err(|error| wrong(&error))?;
    if found.is_empty() { Err(wrong(&"there is no certificate in it")) } else { Ok(found) }
}

/// A private key from the text of its file; `key` is the setting that names it.
pub(crate) fn private_key(key: &str, text: &str) -> Result<PrivateKeyDer<'static>, Failure> {
    PrivateKeyDer::from_pem_slice(text.as_bytes()).map_err(|error| messages::private_key_refused(key, error))
}
