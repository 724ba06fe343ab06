//! Private addresses are out of reach, however one tries to get there.

use super::*;

fn allowing(host: impl Into<String>) -> HttpSettings {
    HttpSettings { allowed_hosts: vec![host.into()], ..HttpSettings::default() }
}

#[tokio::test]
async fn every_spelling_of_this_machine_is_refused() {
    let server = Server::answering(answer(200, &[], "secret")).await;
    let port = server.port();
    for host in [
        "127.0.0.1",
        "2130706433",
        "0x7f.1",
        "0177.1",
        "127.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "0",
        "0.0.0.0",
    ] {
        let result = get(HttpSettings::default(), format!("http://{host}:{port}/")).await;
        fails(&result, ErrorKind::Permission, "is a private address");
        fails(&result, ErrorKind::Permission, "to tools.http.allowedHosts");
    }
    assert_eq!(server.received(), []);
}

#[tokio::test]
async fn a_name_that_leads_to_a_private_address_is_refused() {
    let server = Server::answering(answer(200, &[], "secret")).await;
    let port = server.port();
    for host in ["localhost", "LOCALHOST"] {
        let result = get(HttpSettings::default(), format!("http://{host}:{port}/")).await;
        let says = format!("to allow it, add `localhost:{port}` to tools.http.allowedHosts");
        fails(&result, ErrorKind::Permission, &says);
        fails(&result, ErrorKind::Permission, "loopback");
    }
    assert_eq!(server.received(), []);
}

#[tokio::test]
async fn an_allowed_host_can_be_reached() {
    let server = Server::answering(answer(200, &[], "hello")).await;
    let port = server.port();
    for (entry, host) in [
        ("127.0.0.1".to_owned(), "127.0.0.1"),
        (format!("127.0.0.1:{port}"), "0x7f.1"),
        ("localhost".to_owned(), "localhost"),
        (format!("LocalHost:{port}"), "localhost"),
    ] {
        let result = get(allowing(&entry), format!("http://{host}:{port}/")).await;
        assert_eq!(value(&result)["body"], "hello", "{entry}");
    }
}

#[tokio::test]
async fn an_allowance_for_one_port_is_none_for_another() {
    let server = Server::answering(answer(200, &[], "secret")).await;
    let other = if server.port() == 1 { 2 } else { 1 };
    for host in ["127.0.0.1", "localhost"] {
        let settings = allowing(format!("{host}:{other}"));
        let result = get(settings, format!("http://{host}:{}/", server.port())).await;
        fails(&result, ErrorKind::Permission, "is a private address");
    }
    assert_eq!(server.received(), []);
}

#[tokio::test]
async fn a_redirect_does_not_lead_past_the_check() {
    let secret = Server::answering(answer(200, &[], "secret")).await;
    for host in ["127.0.0.1", "localhost", "0x7f.1", "[::ffff:127.0.0.1]"] {
        let location = format!("http://{host}:{}/", secret.port());
        let public = Server::start(move |_| redirect(302, &location)).await;
        let settings = allowing(format!("127.0.0.1:{}", public.port()));
        let result = get(settings, public.url("/")).await;
        fails(&result, ErrorKind::Permission, "is a private address");
        assert_eq!(public.received().len(), 1);
    }
    assert_eq!(secret.received(), []);
}
