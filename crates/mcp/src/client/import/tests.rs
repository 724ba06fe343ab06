use super::*;

/// Shows what was read, one line each.
fn shown(text: &str) -> String {
    let read = import(text);
    let server = |config: &ServerConfig| {
        let Transport::Program { command, args, env, cwd } = &config.transport else {
            let Transport::Http { url, headers } = &config.transport else {
                return String::new();
            };
            return format!("{}: {url} {headers:?} {:?}", config.name, config.timeout);
        };
        let ServerConfig { name, enabled, include, exclude, trust, timeout, .. } = config;
        format!(
            "{name}: {command} {args:?} env {env:?} cwd {cwd:?} enabled {enabled} include {include:?} \
             exclude {exclude:?} trust {trust:?} timeout {timeout:?}"
        )
    };
    let servers = read.servers.iter().map(server);
    let problems = read.problems.iter().map(|problem| format!("{:?} {problem}", problem.severity));
    servers.chain(problems).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_common_dialect_is_read() {
    insta::assert_snapshot!(shown(
        r#"{ "mcpServers": {
            "files": { "command": "npx", "args": ["-y", "server-files", "${HOME}/docs"],
                "env": { "KEY": "${KEY:-none}", "DEPTH": 3 } },
            "search": { "type": "http", "url": "https://mcp.example/mcp",
                "headers": { "Authorization": "Bearer ${TOKEN}" } },
            "old": { "type": "sse", "url": "https://mcp.example/sse" },
            "off": { "type": "stdio", "command": "x", "disabled": true, "arg": ["y"] },
            "empty": {},
            "odd": { "type": "carrier-pigeon" },
            "wrong": []
        } }"#
    ), @r#"
    files: npx ["-y", "server-files", "${HOME}/docs"] env {"DEPTH": "3", "KEY": "${KEY:-none}"} cwd None enabled true include [] exclude [] trust Nothing timeout 60s
    off: x [] env {} cwd None enabled false include [] exclude [] trust Nothing timeout 60s
    search: https://mcp.example/mcp {"Authorization": "Bearer ${TOKEN}"} 60s
    Error mcpServers.empty: there is neither a `command` nor a `url`
    Error mcpServers.odd.type: `carrier-pigeon` is not a type; there are `stdio` and `http`
    Warning mcpServers.off.arg: this key is not known and was left out; did you mean `args`?
    Error mcpServers.old.type: this server speaks the old HTTP+SSE transport, which is not spoken here; most servers offer streamable HTTP at another address (often `/mcp`)
    Error mcpServers.wrong: this has to be an object
    "#);
}

#[test]
fn the_dialect_of_gemini_is_read() {
    insta::assert_snapshot!(shown(
        r#"{ "theme": "dark", "mcpServers": {
            "a": { "command": "python", "args": ["s.py"], "cwd": "./s", "timeout": 15000, "trust": true,
                "includeTools": ["read_*"], "excludeTools": ["read_secret"] },
            "b": { "httpUrl": "https://b.example/mcp", "timeout": 5000 },
            "c": { "url": "https://c.example/sse" },
            "d": { "command": "x", "timeout": "soon", "args": ["--port", 8080] }
        } }"#
    ), @r#"
    a: python ["s.py"] env {} cwd Some("./s") enabled true include ["read_*"] exclude ["read_secret"] trust Annotations timeout 15s
    b: https://b.example/mcp {} 5s
    d: x ["--port", "8080"] env {} cwd None enabled true include [] exclude [] trust Nothing timeout 60s
    Error mcpServers.c.url: this server speaks the old HTTP+SSE transport, which is not spoken here; most servers offer streamable HTTP at another address (often `/mcp`)
    Warning mcpServers.d.timeout: this has to be a number of milliseconds; the default is used
    "#);
}

#[test]
fn the_dialect_of_vs_code_is_read() {
    insta::assert_snapshot!(shown(
        r#"{ "inputs": [{ "id": "key", "type": "promptString" }], "servers": {
            "a": { "type": "stdio", "command": "uvx", "args": ["server"], "env": { "K": "${input:key}" } },
            "b": { "type": "http", "url": "https://b.example/mcp" }
        } }"#
    ), @r#"
    a: uvx ["server"] env {"K": "${input:key}"} cwd None enabled true include [] exclude [] trust Nothing timeout 60s
    b: https://b.example/mcp {} 60s
    Warning inputs: values that are asked for (`${input:…}`) are not known here: put them into the environment and write `${NAME}`
    Warning servers.a.env: `${input:…}` is not filled in here: write `${NAME}` and set the variable
    "#);
}

/// Regression: such an address was refused for a transport that nobody had named, where anything else in the file was
/// of Gemini CLI.
#[test]
fn an_address_without_a_type_is_one_of_streamable_http() {
    insta::assert_snapshot!(shown(
        r#"{ "mcpServers": {
            "a": { "url": "https://a.example/mcp" },
            "b": { "url": "https://b.example/sse/?x=1" },
            "c": { "type": "http", "url": "https://c.example/sse" },
            "d": { "serverUrl": "https://d.example/mcp" }
        } }"#
    ), @r#"
    a: https://a.example/mcp {} 60s
    c: https://c.example/sse {} 60s
    d: https://d.example/mcp {} 60s
    Error mcpServers.b.url: this server speaks the old HTTP+SSE transport, which is not spoken here; most servers offer streamable HTTP at another address (often `/mcp`)
    "#);
    insta::assert_snapshot!(shown(
        r#"{ "mcpServers": {
            "a": { "url": "https://a.example/mcp" },
            "b": { "url": "ftp://b.example/sse" },
            "c": { "command": "x", "trust": false }
        } }"#
    ), @r#"
    a: https://a.example/mcp {} 60s
    c: x [] env {} cwd None enabled true include [] exclude [] trust Nothing timeout 60s
    Warning mcpServers.a.url: this is taken for an address of streamable HTTP; Gemini CLI would speak the old HTTP+SSE transport there
    Error mcpServers.b.url: this is no address of a server: it begins with `ftp://`, and servers are reached by `https://` or `http://`
    "#);
}

#[test]
fn a_command_may_be_a_list() {
    insta::assert_snapshot!(shown(
        r#"{ "mcpServers": {
            "a": { "command": ["node", "x.js"], "args": ["-v"] },
            "b": { "command": ["node", {}] },
            "c": { "command": [] },
            "d": { "command": 7 }
        } }"#
    ), @r#"
    a: node ["x.js", "-v"] env {} cwd None enabled true include [] exclude [] trust Nothing timeout 60s
    Error mcpServers.b.args: this has to be a list of texts; without it, another command would be run
    Error mcpServers.c.command: this has to be a text, or a list of texts: the program and its arguments
    Error mcpServers.d.command: this has to be a text, or a list of texts: the program and its arguments
    "#);
}

#[test]
fn settings_that_hold_servers_among_others_are_read() {
    insta::assert_snapshot!(shown(
        r#"{ "$schema": "https://opencode.ai/config.json", "mcp": {
            "a": { "type": "local", "command": ["npx", "-y", "x"], "environment": { "K": "{env:KEY}" }, "enabled": false },
            "b": { "type": "remote", "url": "https://b.example/mcp", "headers": { "x": "{env:KEY}" }, "enabled": true }
        } }"#
    ), @r#"
    a: npx ["-y", "x"] env {"K": "${KEY}"} cwd None enabled false include [] exclude [] trust Nothing timeout 60s
    b: https://b.example/mcp {"x": "${KEY}"} 60s
    "#);
    insta::assert_snapshot!(shown(
        r#"{ "editor.fontSize": 12, "mcp": { "inputs": [], "servers": { "a": { "command": "x", "args": {} },
            "b": { "command": "y" } } } }"#
    ), @r#"
    b: y [] env {} cwd None enabled true include [] exclude [] trust Nothing timeout 60s
    Warning inputs: values that are asked for (`${input:…}`) are not known here: put them into the environment and write `${NAME}`
    Error mcp.servers.a.args: this has to be a list of texts; without it, another command would be run
    "#);
}

/// Regression: such a server was taken, and each try to reach it failed.
#[test]
fn an_address_that_cannot_be_is_left_out_with_the_reason() {
    let text = r#"{ "mcpServers": {
            "a": { "type": "http", "url": "http://[::1" },
            "b": { "type": "http", "url": "http://h:99999/x" },
            "c": { "httpUrl": "ws://x/y" },
            "d": { "httpUrl": "https://${HOST}:${PORT}/mcp" }
        } }"#;
    insta::assert_snapshot!(shown(text), @r#"
    d: https://${HOST}:${PORT}/mcp {} 60s
    Error mcpServers.a.url: this is no address of a server: what stands in `[…]` is not an IPv6 address: write it as http://[::1]:PORT/PATH
    Error mcpServers.b.url: this is no address of a server: its port is not a number from 1 to 65535
    Error mcpServers.c.httpUrl: this is no address of a server: it begins with `ws://`, and servers are reached by `https://` or `http://`
    "#);
    assert_eq!(import(text).left_out, ["a", "b", "c"]);
}

#[test]
fn variables_of_editors_are_read() {
    insta::assert_snapshot!(shown(
        r#"{ "servers": {
            "a": { "command": "${env:PROGRAM}", "args": ["${workspaceFolder}/x", "${env:A}${env:B}"],
                "env": { "K": "${env:KEY}" }, "cwd": "${userHome}/${env:PLACE}" },
            "b": { "type": "http", "url": "https://${env:HOST}/mcp", "headers": { "x": "${env:KEY}" } }
        } }"#
    ), @r#"
    a: ${PROGRAM} ["${workspaceFolder}/x", "${A}${B}"] env {"K": "${KEY}"} cwd Some("${userHome}/${PLACE}") enabled true include [] exclude [] trust Nothing timeout 60s
    b: https://${HOST}/mcp {"x": "${KEY}"} 60s
    "#);
}

#[test]
fn what_is_not_json_is_said_with_its_place() {
    let read = import("{\n  \"mcpServers\": {,}\n}");
    assert!(read.servers.is_empty());
    let said = read.problems[0].to_string();
    assert!(said.starts_with("line 2, column 18: this is not JSON"), "{said}");
    let said = import("[]").problems[0].to_string();
    assert!(said.contains("read are `mcpServers`") && said.contains("`mcp` (OpenCode)"), "{said}");
}

#[test]
fn comments_and_last_commas_are_no_mistakes() {
    let read = import("// mine\n{ \"servers\": { \"a\": { \"command\": \"x\", /* y */ }, }, }\n");
    assert_eq!((read.servers.len(), read.problems.len()), (1, 0), "{:?}", read.problems);
}

#[test]
fn settings_of_gemini_mean_here_what_they_mean_there() {
    insta::assert_snapshot!(shown(
        r#"{ "mcp": { "allowed": ["a", "b", "d"], "excluded": ["b"] }, "mcpServers": {
            "a": { "command": "$HOME/bin/x", "args": ["$1", "a$", "${B}$C-d"], "env": { "A": "$TOKEN" } },
            "b": { "httpUrl": "https://b.example/mcp" },
            "c": { "command": "y" },
            "d": { "httpUrl": "https://$HOST/mcp", "headers": { "x": "Bearer $T" } }
        } }"#
    ), @r#"
    a: ${HOME}/bin/x ["$1", "a$", "${B}${C}-d"] env {"A": "${TOKEN}"} cwd None enabled true include [] exclude [] trust Nothing timeout 60s
    b: https://b.example/mcp {} 60s
    c: y [] env {} cwd None enabled false include [] exclude [] trust Nothing timeout 60s
    d: https://${HOST}/mcp {"x": "Bearer ${T}"} 60s
    Warning mcp: `b`, `c` switched off there, and so here
    "#);
}

/// A server that was switched off there does not come back under the name it has here.
#[test]
fn an_odd_name_is_switched_off_like_any() {
    let read = import(
        r#"{ "mcp": { "allowed": ["my db", "o/k"], "excluded": ["my db"] },
            "mcpServers": { "my db": { "command": "x" }, "o/k": { "command": "y" } } }"#,
    );
    let mut standing: Vec<(&str, bool)> =
        read.servers.iter().map(|server| (server.name.as_str(), server.enabled)).collect();
    standing.sort_unstable();
    assert_eq!(standing, [("my-db", false), ("o-k", true)]);
}

#[test]
fn what_stays_as_it_stands_is_said() {
    insta::assert_snapshot!(shown(
        r#"{ "mcpServers": { "a": { "command": "x", "env": { "A": "$TOKEN", "B": "a$b", "C": "$5" } } } }"#
    ), @r#"
    a: x [] env {"A": "$TOKEN", "B": "a$b", "C": "$5"} cwd None enabled true include [] exclude [] trust Nothing timeout 60s
    Warning mcpServers.a: `$TOKEN` is taken as it stands; write `${TOKEN}` if the variable is meant
    "#);
    insta::assert_snapshot!(shown(
        r#"{ "servers": { "a": { "command": "x", "envFile": "${workspaceFolder}/.env" } } }"#
    ), @r"
    a: x [] env {} cwd None enabled true include [] exclude [] trust Nothing timeout 60s
    Warning servers.a.envFile: files of variables are not read here: put what the server needs into `env`
    ");
    assert_eq!(
        shown(r#"{ "mcpServers": [1, 2] }"#),
        "Error mcpServers: this has to be an object, a key a server"
    );
}

#[test]
fn what_claude_keeps_for_a_directory_is_read_there() {
    let text = r#"{
        "mcpServers": { "a": { "command": "top" }, "b": { "command": "top" } },
        "projects": {
            "/w": { "mcpServers": { "a": { "command": "own" }, "c": { "command": "own" } } },
            "/v": { "mcpServers": { "d": { "command": "own" } } },
            "/u": { "mcpServers": {} }
        }
    }"#;
    let read = import_in(text, Path::new("/w"));
    let command = |server: &ServerConfig| match &server.transport {
        Transport::Program { command, .. } => format!("{} {command}", server.name),
        Transport::Http { .. } => String::new(),
    };
    let mut servers: Vec<String> = read.servers.iter().map(command).collect();
    servers.sort();
    assert_eq!(servers, ["a own", "b top", "c own"]);
    let problems: Vec<String> = read.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "projects./w.mcpServers: 2 servers of this directory too",
            "projects: 1 server of 1 directory left out; import again where they are wanted",
            "mcpServers.a: left out, since another is called `a`",
        ]
    );
    let elsewhere = import_in(
        r#"{ "projects": { "/w": { "mcpServers": { "a": { "command": "x" } } } } }"#,
        Path::new("/w"),
    );
    assert_eq!(elsewhere.servers.len(), 1);
    assert_eq!(import(text).servers.len(), 2, "nobody is in a directory");
}

#[test]
fn odd_names_are_written_plainly() {
    for (name, own) in [
        ("files", "files"),
        ("bad name!", "bad-name"),
        ("io.github.x/y", "io-github-x-y"),
        ("-", ""),
        ("!!", ""),
        ("a_-1", "a_-1"),
    ] {
        assert_eq!(plain_name(name), own, "{name}");
    }
    let read =
        import(r#"{ "mcpServers": { "a b": { "command": "x" }, "a-b": { "command": "y" } } }"#);
    assert_eq!(read.servers.len(), 1);
    let problems: Vec<String> = read.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        [
            "mcpServers.a b: it is called `a-b` here",
            "mcpServers.a-b: left out, since another is called `a-b`",
        ]
    );
}

/// Regression: from 1000 on, the seconds of Cline and Roo Code were read as milliseconds.
#[test]
fn up_to_an_hour_those_who_write_seconds_mean_seconds() {
    for (written, seconds) in [(999, 999), (1_000, 1_000), (3_600, 3_600), (5_000, 5)] {
        for key in ["autoApprove", "alwaysAllow"] {
            let file = serde_json::json!({ "mcpServers": {
                "a": { "command": "x", "timeout": written, key: [] } } });
            let read = import(&file.to_string());
            assert_eq!(read.servers[0].timeout.as_secs(), seconds, "{written} beside {key}");
        }
    }
}

/// Regression: what `OpenCode` would read from a file was sent as it stands, and nobody was told.
#[test]
fn a_value_that_stands_in_a_file_is_told() {
    insta::assert_snapshot!(shown(
        r#"{ "mcp": {
            "a": { "type": "local", "command": ["x"], "environment": { "K": "{file:./key}" } },
            "b": { "type": "remote", "url": "https://b.example/mcp", "headers": { "x": "{file:~/key}" } }
        } }"#
    ), @r#"
    a: x [] env {"K": "{file:./key}"} cwd None enabled true include [] exclude [] trust Nothing timeout 60s
    b: https://b.example/mcp {"x": "{file:~/key}"} 60s
    Warning mcp.a.env: `{file:…}` is not read here: write `${NAME}` and set the variable
    Warning mcp.b.headers: `{file:…}` is not read here: write `${NAME}` and set the variable
    "#);
}

/// What cannot mean what it says is not guessed at: another program would run, or more would be offered.
#[test]
fn odd_values_are_refused_or_said() {
    insta::assert_snapshot!(shown(
        r#"{ "mcpServers": {
            "a": { "command": "x", "url": "http://y" },
            "b": { "type": "http", "command": "x", "url": "http://y" },
            "c": { "type": "stdio", "command": "x", "url": "http://y" },
            "d": { "command": "x", "args": "y" },
            "e": { "command": "x", "timeout": 60 },
            "f": { "command": "x", "timeout": 60, "autoApprove": [] },
            "g": { "url": "http://y", "headersHelper": "x" },
            "h": { "command": "x", "oauth": { "clientId": "i" } }
        } }"#
    ), @r#"
    b: http://y {} 60s
    c: x [] env {} cwd None enabled true include [] exclude [] trust Nothing timeout 60s
    e: x [] env {} cwd None enabled true include [] exclude [] trust Nothing timeout 60ms
    f: x [] env {} cwd None enabled true include [] exclude [] trust Nothing timeout 60s
    g: http://y {} 60s
    h: x [] env {} cwd None enabled true include [] exclude [] trust Nothing timeout 60s
    Error mcpServers.a: it has both a `command` and a `url`: take one out, or say by `type` which counts (`stdio` or `http`)
    Warning mcpServers.b: the `url` counts, and the `command` was left out
    Warning mcpServers.c: the `command` counts, and the `url` was left out
    Error mcpServers.d.args: this has to be a list of texts; without it, another command would be run
    Warning mcpServers.e.timeout: 60 is read as milliseconds, which is very short; if seconds are meant, write 60000
    Warning mcpServers.f.autoApprove: this was left out: what needs no question there is asked about here; a rule of the policy allows it
    Warning mcpServers.f.timeout: 60 is read as seconds, as Cline writes it
    Warning mcpServers.g.headersHelper: this was left out: no program is asked for headers here; write `headers`, with `${NAME}` for what is secret
    Warning mcpServers.h.oauth: this is for servers at an address, and was left out
    "#);
    let all = import(
        r#"{ "mcpServers": { "a": { "command": "x", "type": "stdio", "excludeTools": "y" } } }"#,
    );
    assert!(all.problems[0].message.starts_with("this key is not known"), "{:?}", all.problems);
    let all = import(r#"{ "mcpServers": { "a": { "command": "x", "excludeTools": "y" } } }"#);
    assert!(all.servers.is_empty(), "what was to be excluded is not offered");
}

#[test]
fn a_client_that_was_registered_by_hand_is_taken_over() {
    let read = import(
        r#"{ "mcpServers": { "a": { "type": "http", "url": "https://a.example/mcp",
            "oauth": { "clientId": "me", "callbackPort": 8080, "authServerMetadataUrl": "https://b" } } } }"#,
    );
    let login = &read.logins["a"];
    assert_eq!((login.client_id.as_deref(), login.redirect_port), (Some("me"), Some(8080)));
    let problems: Vec<String> = read.problems.iter().map(ToString::to_string).collect();
    assert_eq!(
        problems,
        ["mcpServers.a.oauth.authServerMetadataUrl: this is not understood and was left out"]
    );
}
