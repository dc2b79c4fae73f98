//! Requests and answers as this interface has them: JSON in, JSON out, and every error in one form.

use std::time::Duration;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, WWW_AUTHENTICATE};
use axum::response::{IntoResponse, Response};
use serde::de::DeserializeOwned;

use crate::api::{Code, Problem, Refusal};

/// The largest body that is taken.
pub(super) const LARGEST_BODY: usize = 64 << 10;

/// For how long a body is waited for.
const BODY_WITHIN: Duration = Duration::from_secs(10);

/// An error, on its way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refused {
    code: Code,
    message: String,
}

impl Refused {
    /// An error in words: what is wrong and what to do.
    pub(super) fn new(code: Code, message: impl ToString) -> Self {
        Self { code, message: message.to_string() }
    }

    /// The kind of the error.
    pub(super) fn code(&self) -> Code {
        self.code
    }

    /// The error and what to do.
    pub(super) fn message(&self) -> &str {
        &self.message
    }

    /// The request makes no sense.
    pub(super) fn bad(message: impl ToString) -> Self {
        Self::new(Code::BadRequest, message)
    }
}

impl From<tenure::Stopped> for Refused {
    fn from(stopped: tenure::Stopped) -> Self {
        Self::new(Code::Stopped, stopped)
    }
}

impl From<tenure::NameError> for Refused {
    fn from(error: tenure::NameError) -> Self {
        Self::bad(error)
    }
}

impl From<tenure::CampaignError> for Refused {
    fn from(error: tenure::CampaignError) -> Self {
        match error {
            tenure::CampaignError::Stopped(stopped) => stopped.into(),
            error => Self::bad(error),
        }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let problem = Problem { code: self.code.name().to_owned(), message: self.message.clone() };
        let mut response = (status, Json(Refusal { error: problem })).into_response();
        if matches!(self.code, Code::NoToken | Code::BadToken)
            && let Ok(value) = "Bearer".parse()
        {
            response.headers_mut().insert(WWW_AUTHENTICATE, value);
        }
        response.extensions_mut().insert(self); // For the audit log.
        response
    }
}

/// The body of a request: JSON, said to be JSON, and not too much of it. An absent body is an empty
/// object.
///
/// The header matters: a page in a browser can send a form or plain text to any address without
/// asking, but not this.
pub(super) struct Order<T>(pub(super) T);

impl<T: DeserializeOwned, S: Sync> FromRequest<S> for Order<T> {
    type Rejection = Refused;

    async fn from_request(request: Request, _: &S) -> Result<Self, Refused> {
        let kind = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or("");
        let kind = kind.split(';').next().unwrap_or("").trim();
        if !kind.eq_ignore_ascii_case("application/json") {
            return Err(Refused::bad("send JSON, with the header Content-Type: application/json"));
        }
        let bytes = tokio::time::timeout(BODY_WITHIN, to_bytes(request.into_body(), LARGEST_BODY))
            .await
            .map_err(|_| Refused::bad("the body did not come in time"))?
            .map_err(|_| {
                Refused::new(
                    Code::TooLarge,
                    format!("the body is broken, or longer than {LARGEST_BODY} bytes"),
                )
            })?;
        let bytes: &[u8] = if bytes.is_empty() { b"{}" } else { &bytes };
        serde_json::from_slice(bytes).map(Self).map_err(|error| Refused::bad(format!("the body: {error}")))
    }
}

/// Plain text.
pub(super) fn text(status: StatusCode, text: impl Into<String>) -> Response {
    (status, [(CONTENT_TYPE, "text/plain; charset=utf-8")], Body::from(text.into())).into_response()
}
