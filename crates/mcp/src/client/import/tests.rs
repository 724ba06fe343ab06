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
            "d": { "command": "x", "timeout": "soon", "args": "not a list" }
        } }"#
    ), @r#"
    a: python ["s.py"] env {} cwd Some("./s") enabled true include ["read_*"] exclude ["read_secret"] trust Annotations timeout 15s
    b: https://b.example/mcp {} 5s
    d: x [] env {} cwd None enabled true include [] exclude [] trust Nothing timeout 60s
    Error mcpServers.c.url: this server speaks the old HTTP+SSE transport, which is not spoken here; most servers offer streamable HTTP at another address (often `/mcp`)
    Warning mcpServers.d.args: this has to be a list of texts
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
    assert!(import("[]").problems[0].message.contains("neither `mcpServers` nor `servers`"));
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
