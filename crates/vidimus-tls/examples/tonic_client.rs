//! A tonic client whose certificate is renewed while it runs: calls move to a new connection, and none is lost.
//!
//! `cargo run --example tonic_client --features tonic -- /etc/example/tls server.example:9443 server.example`

use std::error::Error;
use std::path::Path;

use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use vidimus_tls::channel::{Channel, ClientTls};
use vidimus_tls::material::{MaterialFiles, Usage};
use vidimus_tls::runtime::Runtime;
use vidimus_tls::watch::WatchOptions;

/// Opens a channel to `target` and hands it to `work`; `dir` holds `tls.crt`, `tls.key` and `ca.crt`.
pub(crate) async fn with_channel<T>(
    dir: &Path,
    target: &str,
    server_name: &str,
    work: impl AsyncFnOnce(Channel) -> T,
) -> Result<T, Box<dyn Error + Send + Sync>> {
    let mut runtime = Runtime::new();
    let files = MaterialFiles::in_dir(dir);
    let material = runtime
        .material(files, Usage::Client, WatchOptions::default())
        .await?;
    let builder = Channel::builder(target, server_name, ClientTls::Watch(material));
    let channel = runtime.channel(builder)?;
    Ok(runtime.run_while(work(channel)).await)
}

/// One call: any client that tonic generates takes the channel.
pub(crate) async fn is_serving(channel: Channel) -> Result<bool, tonic::Status> {
    let mut client = HealthClient::new(channel);
    let request = HealthCheckRequest::default();
    let answer = client.check(request).await?.into_inner();
    Ok(answer.status == 1)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(dir), Some(target), Some(name)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: tonic_client FOLDER HOST:PORT SERVER-NAME".into());
    };
    match with_channel(Path::new(&dir), &target, &name, is_serving).await?? {
        true => Ok(()),
        false => Err("it isn't serving".into()),
    }
}
