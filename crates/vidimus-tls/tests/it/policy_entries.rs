//! Typed entries of the allow-list, over real connections and for all four kinds of call.

use std::net::IpAddr;
use std::path::Path;

use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tonic::Code;
use tonic::service::Routes;
use tonic::transport::Endpoint;
use vidimus_proto::testkit::v1::echo_client::EchoClient;
use vidimus_testkit::pki::AuthoritySpec;
use vidimus_testkit::{Credential, EchoService, Pki};
use vidimus_tls::identity::PeerIdentity;
use vidimus_tls::policy::{AllowList, Policy, PolicyPublisher, PolicyWatch};
use vidimus_tls::server::{Listener, LocalPeers, Security, Server, UnixOptions};

use crate::policy::each_kind;
use crate::support::{Client, Running, SERVER, Setup, World, call, put, soon};

/// A server whose policy each case replaces.
async fn changing(dir: &Path) -> (Running, PolicyPublisher) {
    let (policy, publisher) = PolicyWatch::from_memory(AllowList::default());
    let setup = Setup {
        policy: Some(policy),
        ..Setup::default()
    };
    let (running, _watch) = Running::follow(dir, setup).await;
    (running, publisher)
}

/// Makes a call of each kind on a new connection; whether they passed. They all do or none.
async fn passes(running: &Running, client: &Client, case: &str) -> bool {
    let mut echo = client.echo(running.address).await;
    let outcomes = soon("four calls", each_kind(&mut echo)).await;
    let passed = outcomes.iter().filter(|outcome| outcome.is_ok()).count();
    for status in outcomes.iter().filter_map(|outcome| outcome.as_ref().err()) {
        assert_eq!(status.code(), Code::PermissionDenied, "{case}: {status:?}");
    }
    assert!(passed == 0 || passed == 4, "{case}: {outcomes:?}");
    passed == 4
}

fn list(entries: &str) -> AllowList {
    AllowList::parse(entries).expect(entries)
}

async fn check(dir: &Path, client: &Client, cases: &[(&str, bool)]) {
    let (running, mut policy) = changing(dir).await;
    for (entries, expected) in cases {
        policy.replace(list(entries));
        let passed = passes(&running, client, entries).await;
        assert_eq!(passed, *expected, "{entries}");
    }
    running.stop().await;
}

fn everything(world: &World) -> Credential {
    let leaf = world
        .pki
        .leaf("the-cn")
        .dns("First.test")
        .dns("Host.b.test");
    let leaf = leaf.uri("urn:first").uri("spiffe://td/manager");
    let v6: IpAddr = "2001:db8::1".parse().expect("an address");
    leaf.ip([192, 0, 2, 1].into())
        .ip(v6)
        .email("ops@client.test")
        .client()
        .issue()
}

/// T14. Each form in its own way: every name and not only the first, case, trailing dots, wildcards, IPv6 spelt otherwise.
#[tokio::test]
async fn typed_entries_match_names_of_their_form_and_no_other() {
    let world = World::new();
    let client = Client::new(&world.pki.root).with(&everything(&world));
    let cases = [
        ("dns:first.TEST", true),
        ("dns:first.test.", true),
        ("dns:host.b.test", true),
        ("dns:*.b.test", true),
        ("dns:*.B.TEST.", true),
        ("dns:*.test", true),
        ("dns:*.host.b.test", false),
        ("dns:b.test", false),
        ("dns:the-cn", false),
        ("uri:urn:first", true),
        ("uri:spiffe://td/manager", true),
        ("uri:URN:first", false),
        ("uri:urn:First", false),
        ("uri:spiffe://td/manager/", false),
        ("ip:192.0.2.1", true),
        ("ip:2001:DB8:0:0::1", true),
        ("ip:::ffff:192.0.2.1", false),
        ("ip:192.0.2.2", false),
        ("cn:the-cn", true),
        ("cn:The-CN", false),
        ("cn:first.test", false),
        ("cn:urn:first", false),
        ("uid:0", false),
        ("gid:0", false),
        ("nobody, ip:192.0.2.2, cn:the-cn", true),
        // A type before `//` is no type: these are plain URIs.
        ("spiffe://td/manager", true),
        ("dns://first.test", false),
        ("uri://urn:first", false),
        ("cn://the-cn", false),
    ];
    check(world.dir.path(), &client, &cases).await;
}

/// T14. A wildcard in a client's own certificate is a name that only an entry written the same way names.
#[tokio::test]
async fn a_wildcard_certificate_matches_only_an_entry_written_the_same_way() {
    let world = World::new();
    let leaf = world.pki.leaf("x").dns("*.Wild.test").client().issue();
    let client = Client::new(&world.pki.root).with(&leaf);
    let cases = [
        ("dns:*.wild.test", true),
        ("*.wild.test", true),
        ("dns:host.wild.test", false),
        ("host.wild.test", false),
        ("dns:wild.test", false),
        ("dns:*.test", false),
    ];
    check(world.dir.path(), &client, &cases).await;
}

/// T14. A trailing dot in the certificate is as good as one in the entry.
#[tokio::test]
async fn a_trailing_dot_changes_nothing() {
    let world = World::new();
    let leaf = world.pki.leaf("x").dns("Dotted.test.").client().issue();
    let client = Client::new(&world.pki.root).with(&leaf);
    let cases = [
        ("dns:dotted.test", true),
        ("dns:dotted.test.", true),
        ("dns:*.test", true),
        ("dotted.test", true),
        ("dotted.test.", true),
        ("otted.test", false),
    ];
    check(world.dir.path(), &client, &cases).await;
    let leaf = world.pki.leaf("Dotless.").dns("plain.test").client();
    let client = Client::new(&world.pki.root).with(&leaf.issue());
    let cases = [
        ("plain.test.", true),
        ("dns:plain.test.", true),
        // Only DNS names have such a dot.
        ("Dotless", false),
        ("Dotless.", true),
    ];
    check(world.dir.path(), &client, &cases).await;
}

/// T14. A CA for some DNS names could give its leaf the common name, URI or address of anybody: they don't count.
#[tokio::test]
async fn under_a_constrained_ca_only_the_dns_name_is_believed() {
    let world = World::new();
    let bound = AuthoritySpec::new("bound")
        .permitting(2, "test")
        .under(&world.pki.root);
    let leaf = bound
        .leaf("the-cn")
        .dns("Host.test")
        .uri("spiffe://td/manager");
    let leaf = leaf.ip([192, 0, 2, 1].into()).client().issue();
    let client = Client::new(&world.pki.root).with(&leaf);
    let cases = [
        ("host.test", true),
        ("dns:host.test", true),
        ("the-cn", false),
        ("cn:the-cn", false),
        ("spiffe://td/manager", false),
        ("uri:spiffe://td/manager", false),
        ("ip:192.0.2.1", false),
        ("nobody", false),
    ];
    check(world.dir.path(), &client, &cases).await;
    // The same names where nothing is constrained.
    let leaf = world
        .pki
        .leaf("the-cn")
        .dns("Host.test")
        .uri("spiffe://td/manager");
    let leaf = leaf.ip([192, 0, 2, 1].into()).client().issue();
    let client = Client::new(&world.pki.root).with(&leaf);
    let cases = cases.map(|(entry, _)| (entry, entry != "nobody"));
    check(world.dir.path(), &client, &cases).await;
}

/// T14, V6. Two common names are two claims, and match none.
#[tokio::test]
async fn two_common_names_match_no_cn_entry() {
    let world = World::new();
    let leaf = |names: &[&str]| {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        // rcgen keeps one value a type, so the subject's second name is an attribute of the same identifier.
        for (index, name) in names.iter().enumerate() {
            let kind = match index {
                0 => rcgen::DnType::CommonName,
                _ => rcgen::DnType::CustomDnType(vec![2, 5, 4, 3]),
            };
            params.distinguished_name.push(kind, *name);
        }
        params.extended_key_usages = vec![rcgen::ExtendedKeyUsagePurpose::ClientAuth];
        let leaf = world.pki.issuing.sign(params, &key);
        Credential::new(
            [vec![leaf], world.pki.issuing.chain_der().to_vec()].concat(),
            &key,
        )
    };
    let client = Client::new(&world.pki.root).with(&leaf(&["one", "two"]));
    let cases = [("cn:one", false), ("cn:two", false), ("one", false)];
    check(world.dir.path(), &client, &cases).await;
    let client = Client::new(&world.pki.root).with(&leaf(&["one"]));
    check(world.dir.path(), &client, &[("cn:one", true)]).await;
}

/// T14. A SPIFFE ID counts under a root of its own trust domain, whatever else the process trusts.
#[tokio::test]
async fn a_spiffe_id_needs_a_root_of_its_trust_domain() {
    let (a, b) = (Pki::new("A"), Pki::new("B"));
    let dir = tempfile::tempdir().expect("a folder");
    let server = a.leaf("server").dns(SERVER).server().issue();
    server.write_dir(dir.path(), &[&a.root, &b.root]);
    put(dir.path().join("a.pem"), a.root.pem());
    put(dir.path().join("b.pem"), b.root.pem());
    let file = dir.path().join("policy.yaml");
    let load = |allow: &str| {
        let text = format!(
            "trust_domains: {{a.example: a.pem, b.example: b.pem}}\nallow: [\"{allow}\"]\n"
        );
        put(&file, text);
        Policy::load(&file).expect(allow)
    };
    let client = |pki: &Pki, uri: &str| {
        let leaf = pki.leaf("x").uri(uri).client().issue();
        Client::new(&a.root).with(&leaf)
    };
    let (running, mut policy) = changing(dir.path()).await;
    for (pki, uri, allow, expected) in [
        (&a, "spiffe://a.example/m", "spiffe:a.example/m", true),
        (&b, "spiffe://b.example/m", "spiffe:b.example/m", true),
        // The other domain's CA is trusted here too, and may still not speak for this one.
        (&b, "spiffe://a.example/m", "spiffe:a.example/m", false),
        (&a, "spiffe://a.example/m", "spiffe:b.example/m", false),
        (&a, "spiffe://a.example/M", "spiffe:a.example/m", false),
        (&a, "spiffe://a.example/m/x", "spiffe:a.example/m", false),
        // As a plain or typed URI it is a name like any other.
        (&b, "spiffe://a.example/m", "spiffe://a.example/m", true),
        (&b, "spiffe://a.example/m", "uri:spiffe://a.example/m", true),
    ] {
        policy.replace(load(allow));
        let passed = passes(&running, &client(pki, uri), allow).await;
        assert_eq!(passed, expected, "{uri} by {allow}");
    }
    running.stop().await;
}

/// K15. `uid:` and `gid:` entries narrow what a UNIX socket lets in; a list without them says nothing of its peers.
#[tokio::test]
async fn users_of_a_unix_socket_are_judged_by_entries_about_users() {
    let uid = rustix::process::geteuid().as_raw();
    let gid = rustix::process::getegid().as_raw();
    for (entries, expected) in [
        (String::new(), true),
        ("dns:somebody.test".to_owned(), true),
        (format!("uid:{uid}"), true),
        (format!("gid:{gid}"), true),
        (format!("uid:{}, gid:{gid}", uid + 1), true),
        (format!("uid:{}", uid + 1), false),
        (format!("dns:somebody.test, gid:{}", gid + 1), false),
    ] {
        let outcome = local_call(list(&entries).into()).await;
        match outcome {
            Ok(peer) => assert!(expected && peer == format!("uid={uid}"), "{entries}"),
            Err(status) => {
                assert!(!expected, "{entries}: {status:?}");
                assert_eq!(status.code(), Code::PermissionDenied, "{entries}");
            }
        }
    }
}

/// K15, V17. Rules per method hold on a UNIX socket too: what none matches is refused.
#[tokio::test]
async fn rules_per_method_hold_on_a_unix_socket() {
    let dir = tempfile::tempdir().expect("a folder");
    let file = dir.path().join("policy.yaml");
    let uid = rustix::process::geteuid().as_raw();
    for (rule, expected) in [
        (format!("{{match: /, allow: [uid:{uid}]}}"), true),
        ("{match: /, allow: [\"*\"]}".to_owned(), true),
        (format!("{{match: /, allow: [uid:{}]}}", uid + 1), false),
        ("{match: /, allow: [dns:somebody.test]}".to_owned(), false),
        (
            "{match: /grpc.health.v1.Health/, allow: [\"*\"]}".to_owned(),
            false,
        ),
    ] {
        put(&file, format!("methods: [{rule}]\n"));
        let outcome = local_call(Policy::load(&file).expect("a policy")).await;
        assert_eq!(outcome.is_ok(), expected, "{rule}: {outcome:?}");
    }
}

/// One call over a UNIX socket that lets its owner in; whom the service saw.
async fn local_call(policy: Policy) -> Result<String, tonic::Status> {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path().join("socket");
    let listener = Listener::bind_unix(&path, UnixOptions::default()).expect("a socket");
    let server = Server::builder(Security::Local(LocalPeers::owner()))
        .policy(PolicyWatch::fixed(policy))
        .build();
    let service = EchoService::new(|extensions| {
        let peer = extensions.get::<PeerIdentity>();
        peer.map_or_else(|| "none".to_owned(), PeerIdentity::label)
    });
    let routes = Routes::new(service.into_server());
    let stop = CancellationToken::new();
    let mut tasks = JoinSet::new();
    let token = stop.clone();
    tasks.spawn(async move { server.serve(listener, routes, token).await });
    let connector = tower::service_fn(move |_| {
        let path = path.clone();
        async move { UnixStream::connect(path).await.map(TokioIo::new) }
    });
    let channel = Endpoint::from_static("http://local").connect_with_connector_lazy(connector);
    let answer = call(&mut EchoClient::new(channel)).await;
    stop.cancel();
    let served = soon("the end", tasks.join_next()).await.expect("a task");
    served.expect("no panic").expect("served");
    answer.map(|answer| answer.peer)
}
