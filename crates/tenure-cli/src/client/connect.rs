//! Reaching a daemon: TCP, or TLS over it, with or without a certificate of one's own.

use std::fmt;
use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use hyper::Uri;
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio_rustls::TlsConnector;

use crate::failure::{Failure, messages};
use crate::sockets::Near;

use super::pem;

/// Where Debian and most others keep the authorities that everybody trusts.
const SYSTEM_ROOTS: &str = "/etc/ssl/certs/ca-certificates.crt";

/// A daemon's address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Endpoint {
    tls: bool,
    /// Without the brackets of IPv6.
    host: String,
    port: u16,
    /// The path before `/v1`, where a proxy wants one.
    prefix: String,
    /// The unix socket of the same daemon.
    socket: Option<PathBuf>,
}

impl Endpoint {
    /// `http://host:port` or `https://host:port`.
    pub(super) fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = || messages::endpoint_malformed(text);
        let uri: Uri = text.parse().map_err(|_| wrong())?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(wrong()),
        };
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
        if uri.query().is_some() {
            return Err(wrong());
        }
        Ok(Self {
            tls,
            host: host.trim_matches(['[', ']']).to_owned(),
            port: uri.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            prefix: uri.path().trim_end_matches('/').to_owned(),
            socket: None,
        })
    }

    /// With the unix socket of the same daemon. It is used if the file is there: a daemon that has
    /// ended leaves it, and then nobody is asked at the address, which another user's program may
    /// have taken.
    pub(super) fn with_socket(self, socket: Option<PathBuf>) -> Self {
        Self { socket: socket.filter(|path| fs::symlink_metadata(path).is_ok()), ..self }
    }

    pub(super) fn is_tls(&self) -> bool {
        self.tls
    }

    /// For the header `Host`.
    pub(super) fn authority(&self) -> String {
        let Self { host, port, .. } = self;
        if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
    }

    /// The path to ask for.
    pub(super) fn target(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority(), self.prefix)
    }
}

/// How a daemon was reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// By its unix socket: the system tells it who asks, and no secret is shown.
    Socket,
    /// By its address.
    Network,
}

/// A connection that carries bytes.
pub(super) trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// An open connection.
pub(super) type Stream = TokioIo<Box<dyn Wire>>;

/// Why there is no connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Unreached {
    /// The certificate is refused: somebody is there who is not known to be a daemon.
    Untrusted(String),
    /// Anything else.
    Other(String),
}

impl From<String> for Unreached {
    fn from(what: String) -> Self {
        Self::Other(what)
    }
}

/// Opens connections.
pub(super) struct Connector {
    tls: Option<TlsConnector>,
}

impl Connector {
    pub(super) fn new(
        wants_tls: bool,
        ca: Option<PathBuf>,
        cert: Option<PathBuf>,
        key: Option<String>,
    ) -> Result<Self, Failure> {
        if !wants_tls {
            return Ok(Self { tls: None });
        }
        let roots = pem::roots("client.ca", ca.unwrap_or_else(|| SYSTEM_ROOTS.into()))?;
        let builder =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(|error| messages::system_refuses("TLS", error).with_code(78))?
                .with_root_certificates(roots);
        let config = match (cert, key) {
            (None, None) => builder.with_no_client_auth(),
            (Some(cert), Some(key)) => builder
                .with_client_auth_cert(
                    pem::chain("client.cert", cert)?,
                    pem::private_key("client.key", &key)?,
                )
                .map_err(|error| messages::certificate_pair_refused("client.cert and client.key", error))?,
            _ => {
                return Err(messages::certificate_pair_halved("client.cert and client.key"));
            }
        };
        Ok(Self { tls: Some(TlsConnector::from(Arc::new(config))) })
    }

    /// Opens a connection, or says why not.
    pub(super) async fn connect(&self, endpoint: &Endpoint) -> Result<(Stream, Way), Unreached> {
        if let Some(path) = &endpoint.socket {
            let near = Near::new(path).map_err(plain)?;
            match UnixStream::connect(near.path()).await {
                Ok(stream) => return Ok((TokioIo::new(Box::new(stream)), Way::Socket)),
                // It is for others: the address may take a token.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
                Err(error) => return Err(format!("{}: {}", path.display(), plain(error)).into()),
            }
        }
        let tcp = TcpStream::connect((endpoint.host.as_str(), endpoint.port)).await.map_err(plain)?;
        let _ = tcp.set_nodelay(true); // Only a matter of speed.
        let wire: Box<dyn Wire> = match &self.tls {
            Some(connector) if endpoint.tls => {
                let name = ServerName::try_from(endpoint.host.clone()).map_err(|error| error.to_string())?;
                Box::new(connector.connect(name, tcp).await.map_err(|error| tls(&error, &endpoint.host))?)
            }
            _ => Box::new(tcp),
        };
        Ok((TokioIo::new(wire), Way::Network))
    }
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("tls", &self.tls.is_some()).finish()
    }
}

/// Why TLS failed, and what to do.
fn tls(error: &io::Error, host: &str) -> Unreached {
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let Some(rustls::Error::InvalidCertificate(why)) = inner else {
        return Unreached::Other(format!("TLS: {error}"));
    };
    let (what, advice) = match why {
        CertificateError::UnknownIssuer | CertificateError::BadSignature => (
            "no authority that is trusted here has signed it".to_owned(),
            "name the one that did as `ca` under [client]",
        ),
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            (format!("it is not for '{host}'"), "ask by a name that it has, or make one for this name")
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            ("it has expired".to_owned(), "make another, or look at this machine's clock")
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            ("it is not valid yet".to_owned(), "look at this machine's clock")
        }
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => (
            "it is the certificate of an authority, or signs itself".to_owned(),
            "give the daemon one that an authority has signed (docs/guides/deploy.md)",
        ),
        other => (other.to_string(), "see docs/guides/deploy.md"),
    };
    Unreached::Untrusted(format!("the daemon's certificate is refused: {what}; {advice}"))
}

/// Without the number that the system adds.
fn plain(error: std::io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
