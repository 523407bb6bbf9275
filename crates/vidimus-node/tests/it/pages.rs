//! The admin pages of a running node.

use serde_json::Value;
use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _},
    net::{TcpStream, UnixStream},
};

use crate::{api::Running, house::House};

async fn get(mut stream: impl AsyncRead + AsyncWrite + Unpin, path: &str) -> (String, String) {
    let request = format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap();
    (status.to_owned(), body.to_owned())
}

/// V18: who is connected is said on the admin socket, and nowhere else.
#[tokio::test(flavor = "multi_thread")]
async fn peers_are_named_on_the_admin_socket_alone() {
    let house = House::new();
    house.issuing().await;
    let node = Running::start(&house, "issuing").await;
    let data = house.data("issuing");
    let client = node.connect(&data.admin()).await.unwrap();
    client.status().await.unwrap();
    let page = async |path| {
        let stream = UnixStream::connect(data.admin_socket()).await.unwrap();
        get(stream, path).await
    };
    let (status, text) = page("/peers").await;
    assert_eq!(status, "200");
    let peers: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(peers["generation"], 1, "{peers:#}");
    // The administrator is pinned and rests on no root.
    assert_eq!(peers["connections"][0]["anchor"], Value::Null, "{peers:#}");
    assert_eq!(peers["summary"][0]["connections"], 1, "{peers:#}");
    let root = peers["roots"][0]["fingerprint"].as_str().unwrap_or("00");
    let (status, _) = page(&format!("/peers/without/{root}0")).await;
    assert_eq!(status, "400");
    node.stop().await;

    let house = House::new();
    let on_an_address =
        |text: String| text.replace("api:\n", "api:\n  admin_listen: 127.0.0.1:0\n");
    house.issuing_with(on_an_address).await;
    let node = Running::start(&house, "issuing").await;
    let client = node.connect(&house.data("issuing").admin()).await.unwrap();
    client.status().await.unwrap();
    let page = async |path| {
        let stream = TcpStream::connect(&node.endpoints.admin).await.unwrap();
        get(stream, path).await
    };
    assert_eq!(page("/peers").await.0, "404");
    let (status, text) = page("/status").await;
    assert_eq!(status, "200");
    let shown: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(shown["server"]["active"], 1, "{shown:#}");
    assert!(shown.get("connections").is_none(), "{shown:#}");
    node.stop().await;
}
