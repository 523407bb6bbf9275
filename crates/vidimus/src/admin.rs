//! Reads the admin endpoint of a program of ours over its UNIX socket.

use std::{path::Path, time::Duration};

use anyhow::{Context as _, bail};
use http_body_util::{BodyExt as _, Empty, Limited};
use hyper::{Request, StatusCode, body::Bytes, client::conn::http1};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::{net::UnixStream, time::timeout};

const DEADLINE: Duration = Duration::from_secs(30);
/// Enough for a page about every connection that a server has by default.
const MAX_PAGE: usize = 64 * 1024 * 1024;

/// The JSON that the endpoint shows at `path`.
pub(crate) async fn json(socket: &Path, path: &str) -> anyhow::Result<Value> {
    let (status, body) = get(socket, path).await?;
    if status == StatusCode::BAD_REQUEST {
        bail!("{path}: {}", String::from_utf8_lossy(&body));
    }
    if status != StatusCode::OK {
        bail!("{path} answered {status}");
    }
    serde_json::from_slice(&body).with_context(|| format!("read {path} as JSON"))
}

/// Whether the program behind the socket says that it is ready.
pub(crate) async fn ready(socket: &Path) -> bool {
    matches!(get(socket, "/readyz").await, Ok((StatusCode::OK, _)))
}

async fn get(socket: &Path, path: &str) -> anyhow::Result<(StatusCode, Bytes)> {
    timeout(DEADLINE, exchange(socket, path))
        .await
        .with_context(|| {
            format!(
                "{} did not answer within {} s",
                socket.display(),
                DEADLINE.as_secs()
            )
        })?
}

async fn exchange(socket: &Path, path: &str) -> anyhow::Result<(StatusCode, Bytes)> {
    let stream = UnixStream::connect(socket)
        .await
        .with_context(|| format!("connect to {}", socket.display()))?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let request = Request::get(path)
        .header("host", "localhost")
        .body(Empty::<Bytes>::new())?;
    let answer = async {
        let response = sender.send_request(request).await?;
        let status = response.status();
        let body = Limited::new(response.into_body(), MAX_PAGE).collect().await;
        let body = body.map_err(|error| anyhow::anyhow!("read {path}: {error}"))?;
        Ok((status, body.to_bytes()))
    };
    tokio::pin!(answer);
    tokio::select! {
        done = &mut answer => done,
        // The connection drives the request; when it ends first, the answer has arrived or never will.
        ended = connection => { ended?; answer.await }
    }
}
