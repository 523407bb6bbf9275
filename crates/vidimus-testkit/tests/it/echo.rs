use tokio_stream::StreamExt as _;
use tonic::{
    Request,
    transport::{Channel, Server, server::TcpIncoming},
};
use vidimus_proto::testkit::v1::{EchoRequest, echo_client::EchoClient};
use vidimus_testkit::EchoService;

fn message(text: &str) -> EchoRequest {
    EchoRequest {
        message: text.to_owned(),
        count: 2,
        delay_milliseconds: 0,
    }
}

#[tokio::test]
async fn every_kind_of_call_answers_and_is_counted() {
    let service = EchoService::new(|_| "somebody".to_owned());
    let log = service.log();
    let incoming = TcpIncoming::bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let address = incoming.local_addr().expect("an address");
    let serving = Server::builder()
        .add_service(service.into_server())
        .serve_with_incoming(incoming);
    let calling = async {
        let channel = Channel::from_shared(format!("http://{address}")).expect("a URI");
        let mut client = EchoClient::new(channel.connect().await.expect("a connection"));
        let answer = client
            .unary(message("a"))
            .await
            .expect("unary")
            .into_inner();
        assert_eq!(
            (answer.message.as_str(), answer.peer.as_str()),
            ("a", "somebody")
        );
        let stream = client
            .server_stream(message("b"))
            .await
            .expect("server stream")
            .into_inner();
        let answers: Vec<_> = stream
            .map(|answer| answer.expect("an answer").sequence)
            .collect()
            .await;
        assert_eq!(answers, [0, 1]);
        let both = || Request::new(tokio_stream::iter([message("c"), message("d")]));
        let answer = client
            .client_stream(both())
            .await
            .expect("client stream")
            .into_inner();
        assert_eq!((answer.message.as_str(), answer.sequence), ("cd", 2));
        let stream = client.bidi_stream(both()).await.expect("bidi").into_inner();
        let answers: Vec<_> = stream
            .map(|answer| answer.expect("an answer").message)
            .collect()
            .await;
        assert_eq!(answers, ["c", "d"]);
        assert_eq!((log.count("a"), log.count("c"), log.total()), (1, 2, 6));
    };
    tokio::select! {
        ended = serving => ended.expect("the server runs until the calls are done"),
        () = calling => {}
    }
}
