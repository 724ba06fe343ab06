//! Programs that may talk to some hosts, and try others.

use std::io::{Read, Write};
use std::net::{TcpListener, UdpSocket};
use std::sync::mpsc::{Receiver, channel};

use convoke_sandbox::{Backend, ConfinedSpawner, Network, Preflight, Tried};
use convoke_testkit::skip;
use convoke_tool::Spawner;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

use crate::support::Place;

/// A server on this machine. Each request it gets can be received; the answer is `hello`.
struct Server {
    port: u16,
    requests: Receiver<String>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (sender, requests) = channel();
        std::thread::spawn(move || {
            for mut client in listener.incoming().flatten() {
                let mut buffer = [0; 4096];
                let length = client.read(&mut buffer).unwrap_or(0);
                // Before the answer, so that whoever has the answer finds the request.
                sender.send(String::from_utf8_lossy(&buffer[..length]).into_owned()).ok();
                client.write_all(ANSWER).ok();
            }
        });
        Self { port, requests }
    }

    fn was_asked(&self) -> Vec<String> {
        self.requests.try_iter().collect()
    }
}

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello";

/// A place whose programs may talk to these hosts; none where no network can be made.
fn place_for(backend: Backend, hosts: &[&str]) -> Option<Place> {
    let mut place = Place::new(backend)?;
    place.confinement.network =
        Network::Hosts(hosts.iter().map(|host| (*host).to_owned()).collect());
    match Preflight::for_confinement(&place.confinement, backend).own_network {
        Tried::Works => Some(place),
        tried => {
            skip("network of its own", &format!("{tried:?}"));
            None
        }
    }
}

/// Asks for an address through whatever the environment names, as any program would.
const ASK: &str = "import sys, urllib.request, urllib.error\n\
    try: print(urllib.request.urlopen(sys.argv[1], timeout=10).read().decode())\n\
    except urllib.error.HTTPError as e: print(e.code, e.read().decode())\n\
    except OSError as e: print('error', e)";

async fn a_listed_host_answers_and_another_is_refused_with_words(backend: Backend) {
    let server = Server::start();
    let listed = format!("127.0.0.1:{}", server.port);
    let Some(place) = place_for(backend, &[&listed]) else { return };
    let url = format!("http://{listed}/path");
    let ran = place.run(&["python3", "-c", ASK, &url]).await;
    assert_eq!(ran.stdout, "hello\n", "{ran:?}");
    assert!(server.was_asked()[0].starts_with("GET /path HTTP/1.1\r\nHost: 127.0.0.1:"));

    let url = format!("http://localhost:{}/", server.port);
    let ran = place.run(&["python3", "-c", ASK, &url]).await;
    assert!(ran.stdout.starts_with("403 `localhost:"), "{ran:?}");
    assert!(ran.stdout.contains(&format!("may talk to: {listed}. ")), "{ran:?}");
    // The name would have to be looked up outside, so this is refused before anything is asked.
    let ran = place.run(&["python3", "-c", ASK, "https://example.org/"]).await;
    assert!(ran.stdout.contains("403 Not an allowed host of the sandbox"), "{ran:?}");
    assert_eq!(server.was_asked(), Vec::<String>::new());
}

async fn there_is_no_other_way_out(backend: Backend) {
    let server = Server::start();
    let datagrams = UdpSocket::bind("127.0.0.1:0").unwrap();
    datagrams.set_nonblocking(true).unwrap();
    let port = datagrams.local_addr().unwrap().port();
    let Some(place) = place_for(backend, &["example.com"]) else { return };
    let script = format!(
        "import socket as s\n\
         def attempt(name, what):\n\
         \ttry: what(); print('open', name)\n\
         \texcept OSError: print('closed', name)\n\
         attempt('direct', lambda: s.create_connection(('127.0.0.1', {}), 5))\n\
         attempt('outside', lambda: s.create_connection(('192.0.2.1', 443), 5))\n\
         attempt('name', lambda: s.getaddrinfo('example.com', 443))\n\
         u = s.socket(s.AF_INET, s.SOCK_DGRAM)\n\
         attempt('datagram', lambda: u.sendto(b'x', ('192.0.2.1', 53)))\n\
         for family, kind in [(s.AF_INET, s.SOCK_RAW), (s.AF_UNIX, s.SOCK_STREAM),\n\
         \t(s.AF_NETLINK, s.SOCK_RAW), (s.AF_PACKET, s.SOCK_RAW), (s.AF_VSOCK, s.SOCK_STREAM)]:\n\
         \tattempt('socket', lambda: s.socket(family, kind))\n\
         u.sendto(b'x', ('127.0.0.1', {port}))",
        server.port
    );
    let ran = place.python(&script).await;
    assert_eq!(ran.stdout.matches("closed").count(), 9, "{ran:?}");
    assert!(!ran.stdout.contains("open"), "{ran:?}");
    assert_eq!(server.was_asked(), Vec::<String>::new());
    // The datagram to this port stayed in the program's own network.
    assert!(datagrams.recv(&mut [0; 8]).is_err());
}

async fn no_request_is_smuggled_to_another_host_or_port(backend: Backend) {
    let server = Server::start();
    let listed = format!("127.0.0.1:{}", server.port);
    let Some(place) = place_for(backend, &[&listed]) else { return };
    let other = server.port ^ 1;
    let script = format!(
        "import socket as s\n\
         def say(text):\n\
         \tc = s.create_connection(('127.0.0.1', 3128), 10)\n\
         \tc.sendall(text.encode())\n\
         \tprint(c.recv(12).decode())\n\
         say('CONNECT 127.0.0.1:{other} HTTP/1.1\\r\\nHost: {listed}\\r\\n\\r\\n')\n\
         say('GET http://evil.org/ HTTP/1.1\\r\\nHost: {listed}\\r\\n\\r\\n')\n\
         say('GET / HTTP/1.1\\r\\nHost: {listed}\\r\\n\\r\\n')\n\
         say('GET http://{listed}@evil.org/ HTTP/1.1\\r\\n\\r\\n')\n\
         say('GET http://{listed}/ HTTP/1.1\\r\\nHost: evil.org\\r\\n\\r\\nGET /2 HTTP/1.1\\r\\nHost: evil.org\\r\\n\\r\\n')"
    );
    let ran = place.python(&script).await;
    let codes: Vec<&str> = ran.stdout.lines().filter_map(|line| line.get(9..12)).collect();
    assert_eq!(codes, ["403", "403", "400", "400", "200"], "{ran:?}");
    let asked = server.was_asked();
    assert_eq!(asked.len(), 1, "{asked:?}");
    assert!(!asked[0].contains("evil.org") && !asked[0].contains("/2"), "{asked:?}");
}

async fn two_programs_have_networks_and_proxies_of_their_own(backend: Backend) {
    let server = Server::start();
    let listed = format!("127.0.0.1:{}", server.port);
    let Some(one) = place_for(backend, &[&listed]) else { return };
    let Some(other) = place_for(backend, &["example.com"]) else { return };
    let url = format!("http://{listed}/");
    let command = ["python3", "-c", ASK, &url];
    let (allowed, refused) = tokio::join!(one.run(&command), other.run(&command));
    assert_eq!(allowed.stdout, "hello\n", "{allowed:?}");
    assert!(refused.stdout.starts_with("403 "), "{refused:?}");
    assert_eq!(server.was_asked().len(), 1);
}

async fn connections_through_the_proxy_end_with_the_program(backend: Backend) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let listed = format!("127.0.0.1:{}", listener.local_addr().unwrap().port());
    let Some(place) = place_for(backend, &[&listed]) else { return };
    let script = format!(
        "import socket as s\nc = s.create_connection(('127.0.0.1', 3128))\n\
         c.sendall(b'CONNECT {listed} HTTP/1.1\\r\\n\\r\\n')\nc.recv(12)\nprint('ready', flush=True)\n\
         input()"
    );
    let mut process =
        place.spawner().spawn(place.program(&["python3", "-c", &script])).await.unwrap();
    let mut streams = process.take_streams().unwrap();
    let mut line = String::new();
    BufReader::new(streams.stdout).read_line(&mut line).await.unwrap();
    assert_eq!(line, "ready\n");
    let (mut outside, _) = listener.accept().unwrap();
    streams.stdin.write_all(b"\n").await.unwrap();
    process.wait().await.unwrap();
    let ended = tokio::task::spawn_blocking(move || outside.read(&mut [0; 1]));
    let ended = tokio::time::timeout(crate::support::PATIENCE, ended).await;
    let ended = ended.expect("the connection lives on").unwrap();
    assert!(!matches!(ended, Ok(1..)), "{ended:?}");
}

async fn a_program_may_talk_to_itself(backend: Backend) {
    let Some(place) = place_for(backend, &["example.com"]) else { return };
    let script = "import socket as s\nl = s.create_server(('127.0.0.1', 0))\n\
        c = s.create_connection(l.getsockname())\nl.accept()[0].sendall(b'hi')\nprint(c.recv(2))";
    assert_eq!(place.python(script).await.stdout, "b'hi'\n");
}

async fn a_list_that_names_no_hosts_is_refused(backend: Backend) {
    let Some(place) = place_for(backend, &["http://example.com/"]) else { return };
    let refused = ConfinedSpawner::with_backend(place.confinement.clone(), backend).unwrap_err();
    assert!(refused.to_string().contains("is not a host: write `example.com`"), "{refused}");
}

on_each_backend!(
    a_listed_host_answers_and_another_is_refused_with_words,
    there_is_no_other_way_out,
    no_request_is_smuggled_to_another_host_or_port,
    two_programs_have_networks_and_proxies_of_their_own,
    connections_through_the_proxy_end_with_the_program,
    a_program_may_talk_to_itself,
    a_list_that_names_no_hosts_is_refused,
);
