//! Sockets, TLS, limits, and the end.
//!
//! The cost of a stranger without a token is bounded: so many connections in all and from one
//! source (`places.rs`), so long for a handshake and a header, so many bytes of it, so long with an
//! answer unread (`stalls.rs`). A daemon that ends lets requests come to their end for a short
//! while, and streams hear of it at once.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse, Response};
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustls::ServerConfig;
use rustls::server::WebPkiClientVerifier;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;

use crate::api::Code;
use crate::client::pem;
use crate::failure::{Failure, messages};
use crate::settings::Settings;

use super::answer::Refused;
use super::certificate::Names;
use super::entry::Caller;
use super::places::{For, Limits, Place, Places};
use super::stalls::Unstalled;

/// The most bytes of a header, and of what is buffered.
const LARGEST_HEADER: usize = 32 << 10;

/// How long requests are given to end when the daemon does.
pub(super) const GRACE: Duration = Duration::from_secs(2);

/// Opens a socket; `key` is the setting that names it.
pub(super) async fn bind(key: &str, address: SocketAddr) -> Result<TcpListener, Failure> {
    TcpListener::bind(address).await.map_err(|error| messages::port_refused(key, address, error))
}

/// TLS by the settings, if they want any.
pub(super) fn acceptor(settings: &Settings) -> Result<Option<TlsAcceptor>, Failure> {
    let daemon = &settings.daemon;
    let (cert, key) = match (&daemon.tls_cert, &daemon.tls_key) {
        (Some(cert), Some(key)) => (settings.resolve(cert), settings.read_secret("daemon.tls_key", key)?),
        (None, None) if daemon.tls_client_ca.is_none() => return Ok(None),
        (None, None) => return Err(messages::client_ca_alone()),
        _ => return Err(messages::certificate_pair_halved("daemon.tls_cert and daemon.tls_key")),
    };
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let wrong = |error: &dyn std::fmt::Display| {
        messages::certificate_pair_refused("daemon.tls_cert and daemon.tls_key", error)
    };
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&error))?;
    let builder = match &daemon.tls_client_ca {
        None => builder.with_no_client_auth(),
        Some(path) => {
            let roots = pem::roots("daemon.tls_client_ca", settings.resolve(path))?;
            // A client without a certificate reaches only the paths that are open to all: see
            // `entry`.
            let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                .allow_unauthenticated()
                .build()
                .map_err(|error| messages::setting_refused("daemon.tls_client_ca", error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let (chain, key) = (pem::chain("daemon.tls_cert", cert)?, pem::private_key("daemon.tls_key", &key)?);
    let mut config = builder.with_single_cert(chain, key).map_err(|error| wrong(&error))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Some(TlsAcceptor::from(Arc::new(config))))
}

/// The service of a socket, and its limits.
#[derive(Clone)]
pub(super) struct Served {
    /// Everything it answers.
    pub(super) router: Router,
    /// Which paths are probes, for which places are reserved.
    pub(super) is_probe: fn(&str) -> bool,
    /// How much of it anybody may have.
    pub(super) limits: Limits,
}

/// Accepts connections and serves them, until `stopping` turns true. A connection has the TLS of
/// when it began.
pub(super) async fn run(
    listener: TcpListener,
    tls: watch::Receiver<Option<TlsAcceptor>>,
    service: Served,
    mut stopping: watch::Receiver<bool>,
) {
    let mut connections = JoinSet::new();
    let until = stopping.clone();
    let places = Places::new(service.limits);
    loop {
        tokio::select! {
            () = told(&mut stopping) => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, from)) => {
                    let (place, tls) = (places.take(from.ip()), tls.borrow().clone());
                    connections.spawn(within(place, (stream, from), tls, service.clone(), until.clone()));
                }
                Err(_) => sleep(Duration::from_millis(100)).await, // No file descriptors left, say.
            }
        }
    }
    drop(listener);
    let ended = async { while connections.join_next().await.is_some() {} };
    let _ = timeout(GRACE, ended).await;
    connections.abort_all();
}

/// Serves a connection for as long as it has its place.
async fn within(
    place: Place,
    (stream, from): (TcpStream, SocketAddr),
    tls: Option<TlsAcceptor>,
    service: Served,
    stopping: watch::Receiver<bool>,
) {
    let limits = service.limits;
    let served = connection(place.kind, (stream, from), tls, service, stopping);
    tokio::select! {
        () = served => {}
        () = place.evicted() => {}
        () = sleep(limits.probe), if place.kind == For::AProbe => {}
    }
}

/// Waits until everything shall end.
pub(super) async fn told(stopping: &mut watch::Receiver<bool>) {
    let _ = stopping.wait_for(|stop| *stop).await;
}

async fn connection(
    place: For,
    (stream, from): (TcpStream, SocketAddr),
    tls: Option<TlsAcceptor>,
    service: Served,
    stopping: watch::Receiver<bool>,
) {
    let _ = stream.set_nodelay(true); // Only a matter of speed.
    let header = service.limits.header;
    let stream = Unstalled::new(stream, service.limits.write);
    let Some(tls) = tls else {
        let caller = Caller::Remote { from: Some(from), certificate: None };
        return exchange(place, stream, caller, service, stopping).await;
    };
    if let Ok(Ok(stream)) = timeout(header, tls.accept(stream)).await {
        let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
        let certificate = certificate.map(|certificate| Arc::new(Names::of(certificate)));
        let caller = Caller::Remote { from: Some(from), certificate };
        exchange(place, stream, caller, service, stopping).await;
    }
}

/// Requests and answers on one connection; in a place for a probe, one of them.
pub(super) async fn exchange(
    place: For,
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    caller: Caller,
    service: Served,
    mut stopping: watch::Receiver<bool>,
) {
    let Served { router, is_probe, limits } = service;
    let inner = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let admitted = place == For::Anything || is_probe(request.uri().path());
        request.extensions_mut().insert(caller.clone());
        let answer = admitted.then(|| inner.call(request));
        async move {
            match answer {
                Some(answer) => answer.await,
                None => Ok(busy()),
            }
        }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header)
        .max_buf_size(LARGEST_HEADER)
        .keep_alive(place == For::Anything)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        // An error of a client is its own affair.
        _ = connection.as_mut() => {}
        () = told(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            let _ = connection.await;
        }
    }
}

fn busy() -> Response {
    let why = "there are too many connections, in all or from this address: close some, or try again later";
    Refused::new(Code::Busy, why).into_response()
}
