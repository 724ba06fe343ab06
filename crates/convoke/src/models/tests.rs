use convoke_model::WireFormat::OpenAiChat;
use convoke_model::{Limits, Settings};
use serde_json::{Value, json};

use super::*;

const OPENAI: (&str, &str) = ("OPENAI_API_KEY", "key-of-openai");
const ANTHROPIC: (&str, &str) = ("ANTHROPIC_API_KEY", "key-of-anthropic");
const GEMINI: (&str, &str) = ("GEMINI_API_KEY", "key-of-gemini");
const GOOGLE: (&str, &str) = ("GOOGLE_API_KEY", "key-of-google");
const ELSEWHERE: (&str, &str) = ("OPENAI_BASE_URL", "http://127.0.0.1:8000/v1");
const AT_OPENAI: (&str, &str) = ("OPENAI_BASE_URL", "https://API.openai.com/v1/");

type Variables<'a> = &'a [(&'a str, &'a str)];

fn resolve(
    model: &Value,
    variables: Variables<'_>,
    name: Option<&str>,
) -> Result<Resolved, ModelChoiceError> {
    let config: Config = serde_json::from_value(json!({ "model": model })).unwrap();
    let pairs = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let environment = pairs.collect();
    ModelSources::new(&config, &environment).resolve(name)
}

fn work() -> Value {
    json!({
        "default": "fast",
        "aliases": {
            "fast": "quick", "quick": "work/tiny", "bare": "gpt-4.1", "spaced": " work/tiny ",
            "gpt-5": "work/five", "lost": "nowhere/x",
        },
        "providers": {
            "work": {
                "baseUrl": "https://llm.example.com/v1", "keyVariable": "WORK_KEY",
                "headers": { "X-Team": "hush" }, "maxConcurrent": 8, "requestsPerMinute": 600,
            },
            "open": { "baseUrl": "https://open.example.com" },
            "claude": { "wire": "anthropic", "baseUrl": "https://claude.example.com", "key": "k" },
            "tenant": { "wire": "openai", "baseUrl": "https://api.openai.com/v1" },
            "nowhere-yet": { "wire": "gemini" },
            "broken": { "baseUrl": "https://" },
            "lmstudio": { "baseUrl": "http://box:1234/v1" },
        },
    })
}

const WORK: (&str, &str) = ("WORK_KEY", "key-of-work");

/// What is asked for, with which variables; the name, the wire, the address and the key that come of it.
const FOUND: &[(&str, Variables<'_>, &str)] = &[
    ("openai/x", &[OPENAI], "openai/x OpenAiResponses https://api.openai.com/v1 key-of-openai"),
    (
        "openai-chat/x",
        &[OPENAI],
        "openai-chat/x OpenAiChat https://api.openai.com/v1 key-of-openai",
    ),
    (
        "anthropic/x",
        &[ANTHROPIC],
        "anthropic/x Anthropic https://api.anthropic.com key-of-anthropic",
    ),
    (
        "anthropic/x",
        &[ANTHROPIC, ("ANTHROPIC_BASE_URL", "https://a.example")],
        "anthropic/x Anthropic https://a.example key-of-anthropic",
    ),
    (
        "gemini/x",
        &[GOOGLE],
        "gemini/x Gemini https://generativelanguage.googleapis.com key-of-google",
    ),
    (
        "gemini/x",
        &[GOOGLE, ("GEMINI_API_KEY", "")],
        "gemini/x Gemini https://generativelanguage.googleapis.com key-of-google",
    ),
    (
        "gemini/x",
        &[GOOGLE, GEMINI, ("GOOGLE_GEMINI_BASE_URL", "http://g.example")],
        "gemini/x Gemini http://g.example key-of-gemini",
    ),
    // Another server: `openai/…` means Responses there, a bare name means chat completions.
    ("openai/x", &[ELSEWHERE], "openai/x OpenAiResponses http://127.0.0.1:8000/v1 -"),
    (
        "openai/x",
        &[ELSEWHERE, OPENAI],
        "openai/x OpenAiResponses http://127.0.0.1:8000/v1 key-of-openai",
    ),
    ("llama3", &[ELSEWHERE], "openai-chat/llama3 OpenAiChat http://127.0.0.1:8000/v1 -"),
    (
        "gpt-4.1",
        &[ELSEWHERE, OPENAI],
        "openai-chat/gpt-4.1 OpenAiChat http://127.0.0.1:8000/v1 key-of-openai",
    ),
    ("openai-chat/a/b", &[ELSEWHERE], "openai-chat/a/b OpenAiChat http://127.0.0.1:8000/v1 -"),
    // The usual address is not another server.
    (
        "gpt-4.1",
        &[AT_OPENAI, OPENAI],
        "openai/gpt-4.1 OpenAiResponses https://API.openai.com/v1/ key-of-openai",
    ),
    // Names that give their provider away.
    (
        "o3-mini",
        &[OPENAI],
        "openai/o3-mini OpenAiResponses https://api.openai.com/v1 key-of-openai",
    ),
    (
        " claude-x ",
        &[ANTHROPIC],
        "anthropic/claude-x Anthropic https://api.anthropic.com key-of-anthropic",
    ),
    // Servers on this machine.
    ("ollama/qwen2.5:7b", &[], "ollama/qwen2.5:7b OpenAiChat http://127.0.0.1:11434/v1 -"),
    ("ollama/x", &[("OLLAMA_HOST", "0.0.0.0:9")], "ollama/x OpenAiChat http://127.0.0.1:9/v1 -"),
    // What the configuration says.
    ("fast", &[WORK], "work/tiny OpenAiChat https://llm.example.com/v1 key-of-work"),
    ("spaced", &[WORK], "work/tiny OpenAiChat https://llm.example.com/v1 key-of-work"),
    ("gpt-5", &[WORK], "work/five OpenAiChat https://llm.example.com/v1 key-of-work"),
    ("bare", &[OPENAI], "openai/gpt-4.1 OpenAiResponses https://api.openai.com/v1 key-of-openai"),
    ("open/a/b", &[OPENAI, WORK], "open/a/b OpenAiChat https://open.example.com -"),
    ("claude/x", &[ANTHROPIC], "claude/x Anthropic https://claude.example.com k"),
    ("tenant/x", &[OPENAI], "tenant/x OpenAiResponses https://api.openai.com/v1 key-of-openai"),
    ("lmstudio/x", &[], "lmstudio/x OpenAiChat http://box:1234/v1 -"),
];

#[test]
fn a_name_leads_to_a_provider() {
    for (asked, variables, expected) in FOUND {
        let found = resolve(&work(), variables, Some(asked))
            .unwrap_or_else(|error| panic!("{asked} with {variables:?}: {error}"));
        let Provider { name, wire, base_url, key, .. } = &found.provider;
        let key = key.as_deref().unwrap_or("-");
        assert_eq!(format!("{} {wire:?} {base_url} {key}", found.name), *expected, "{asked}");
        assert_eq!(name, found.name.provider(), "{asked}");
    }
}

#[test]
fn the_configuration_goes_before_the_variables_of_a_provider() {
    let model = json!({ "providers": {
        "openai": { "baseUrl": "https://mine.example/v1", "key": " mine\n", "wire": "openai-chat" },
        "anthropic": { "keyVariable": "SECOND_KEY" },
        "gemini": { "key": "" },
    }});
    let variables = [OPENAI, ELSEWHERE, ANTHROPIC, GEMINI, ("SECOND_KEY", "second")];
    let openai = resolve(&model, &variables, Some("openai/x")).unwrap().provider;
    assert_eq!(openai.base_url, "https://mine.example/v1");
    assert_eq!((openai.wire, openai.key.as_deref()), (OpenAiChat, Some("mine")));
    let anthropic = resolve(&model, &variables, Some("anthropic/x")).unwrap().provider;
    assert_eq!(anthropic.key.as_deref(), Some("second"));
    assert_eq!(anthropic.key_variable.as_deref(), Some("SECOND_KEY"));
    let gemini = resolve(&model, &variables, Some("gemini/x")).unwrap().provider;
    assert_eq!(gemini.key.as_deref(), Some("key-of-gemini"));
}

#[test]
fn without_a_name_a_default_or_a_key_decides() {
    let none = json!({});
    let written = json!({ "default": "gemini/gemini-x" });
    let keyed = json!({ "providers": { "gemini": { "key": "written" } } });
    let cases: &[(&Value, Variables<'_>, Option<&str>)] = &[
        (&written, &[ANTHROPIC, GEMINI], Some("gemini/gemini-x")),
        (&none, &[GEMINI, OPENAI, ANTHROPIC], Some("anthropic/claude-sonnet-4-5")),
        (&none, &[GEMINI, OPENAI], Some("openai/gpt-5")),
        (&none, &[GOOGLE], Some("gemini/gemini-2.5-flash")),
        (&none, &[("ANTHROPIC_API_KEY", " "), GEMINI], Some("gemini/gemini-2.5-flash")),
        (&none, &[OPENAI, AT_OPENAI], Some("openai/gpt-5")),
        (&none, &[OPENAI, ELSEWHERE, GEMINI], Some("gemini/gemini-2.5-flash")),
        (&keyed, &[], Some("gemini/gemini-2.5-flash")),
        (&none, &[OPENAI, ELSEWHERE], None),
        (&none, &[("OPENROUTER_API_KEY", "k")], None),
        (&none, &[], None),
    ];
    for (model, variables, expected) in cases {
        let found = resolve(model, variables, None).map(|resolved| resolved.name.to_string());
        let other_server = variables.contains(&ELSEWHERE);
        let expected = expected.ok_or(ModelChoiceError::NoModel { other_server });
        assert_eq!(found, expected.map(str::to_owned), "{variables:?}");
    }
}

#[test]
fn what_decided_is_said() {
    for (name, variables, why) in [
        (
            None,
            &[WORK][..],
            "`model.default` is `fast`; `fast` is an alias of `quick`; `quick` is an alias of \
             `work/tiny`; its address is from `model.providers.work.baseUrl`; its key is from \
             `WORK_KEY`",
        ),
        (Some("ollama/x"), &[], "`ollama/x` was asked for"),
        (
            Some("x"),
            &[ELSEWHERE],
            "`x` was asked for; a name without a provider goes to the server of \
             `OPENAI_BASE_URL`; its address is from `OPENAI_BASE_URL`",
        ),
        (
            Some("claude/x"),
            &[],
            "`claude/x` was asked for; its address is from `model.providers.claude.baseUrl`; its \
             key is from `model.providers.claude.key`",
        ),
    ] {
        assert_eq!(resolve(&work(), variables, name).unwrap().why, why);
    }
    assert_eq!(
        resolve(&json!({}), &[OPENAI], None).unwrap().why,
        "`model.default` is not set and `OPENAI_API_KEY` is; its key is from `OPENAI_API_KEY`"
    );
}

/// What is asked for, with which variables; what is said, and what to do.
const REFUSED: &[(&str, Variables<'_>, &str, &str)] = &[
    (
        "antropic/x",
        &[],
        "there is no provider `antropic`; did you mean `anthropic`?",
        "there are `broken`, `claude`, `lmstudio`, `nowhere-yet`, `open`, `tenant`, `work`, \
             `gemini`, `anthropic`, `openai`, `openai-chat`, `openrouter`, `ollama`, `llamacpp` and \
             `vllm`; `model.providers` can add others",
    ),
    (
        "zzz/llama",
        &[ELSEWHERE],
        "there is no provider `zzz`",
        "there are `broken`, `claude`, `lmstudio`, `nowhere-yet`, `open`, `tenant`, `work`, \
             `gemini`, `anthropic`, `openai`, `openai-chat`, `openrouter`, `ollama`, `llamacpp` and \
             `vllm`; `model.providers` can add others; \
             `openai-chat/zzz/llama` asks the server of `OPENAI_BASE_URL`",
    ),
    (
        "llama3",
        &[OPENAI],
        "it is not known whose model `llama3` is",
        "write it as `provider/llama3`, for example `ollama/llama3`",
    ),
    (
        "fats",
        &[],
        "it is not known whose model `fats` is; did you mean `fast`?",
        "write it as `provider/fats`, for example `ollama/fats`",
    ),
    (
        "anthropic",
        &[],
        "`anthropic` is a provider, not a model",
        "name one of its models: `anthropic/claude-sonnet-4-5`",
    ),
    ("work", &[], "`work` is a provider, not a model", "name one of its models: `work/MODEL`"),
    ("/x", &[], "`/x` is not a model name", "write it as `provider/model`"),
    ("openai/", &[], "`openai/` is not a model name", "write it as `provider/model`"),
    (" ", &[], "`` is not a model name", "write it as `provider/model`"),
    (
        "\u{1b}[2J",
        &[],
        "it is not known whose model `\\u{1b}[2J` is",
        "write it as `provider/\\u{1b}[2J`, for example `ollama/\\u{1b}[2J`",
    ),
    (
        "nowhere-yet/x",
        &[],
        "it is not known where the provider `nowhere-yet` is",
        "set `model.providers.nowhere-yet.baseUrl`",
    ),
    (
        "broken/x",
        &[],
        "`model.providers.broken.baseUrl` is not the address of a server",
        "write it with `http://` or `https://`, as in `http://127.0.0.1:8000/v1`",
    ),
    (
        "x",
        &[("OPENAI_BASE_URL", "hush:8000/v1")],
        "`OPENAI_BASE_URL` is not the address of a server",
        "write it with `http://` or `https://`, as in `http://127.0.0.1:8000/v1`",
    ),
    (
        "openai/gpt-5",
        &[],
        "the provider `openai` needs a key, and none is set",
        "put it into the environment variable `OPENAI_API_KEY`",
    ),
    (
        "gemini/x",
        &[("GEMINI_API_KEY", "")],
        "the provider `gemini` needs a key, and none is set",
        "put it into the environment variable `GEMINI_API_KEY` or `GOOGLE_API_KEY`",
    ),
    (
        "tenant/x",
        &[],
        "the provider `tenant` needs a key, and none is set",
        "put it into the environment variable `OPENAI_API_KEY`",
    ),
    (
        "work/x",
        &[OPENAI],
        "the provider `work` needs a key, and none is set",
        "put it into the environment variable `WORK_KEY`",
    ),
];

#[test]
fn what_cannot_be_chosen_is_said_with_what_to_do() {
    for (asked, variables, message, hint) in REFUSED {
        let error = resolve(&work(), variables, Some(asked)).expect_err(asked);
        assert_eq!(error.to_string(), *message, "{asked}");
        assert_eq!(error.hint(), *hint, "{asked}");
    }
    for (variables, hint) in [
        (&[][..], "set `model.default`, or put a key into"),
        (&[ELSEWHERE], "`OPENAI_BASE_URL` leads to another server"),
    ] {
        let error = resolve(&json!({}), variables, None).unwrap_err();
        assert_eq!(error.to_string(), "no model is configured");
        assert!(error.hint().starts_with(hint), "{}", error.hint());
    }
}

#[test]
fn aliases_end_somewhere() {
    let chain = |length: usize| {
        let alias = |step: usize| (format!("a{step}"), json!(format!("a{}", step + 1)));
        let mut aliases: serde_json::Map<String, Value> = (1..length).map(alias).collect();
        aliases.insert(format!("a{length}"), json!("ollama/x"));
        json!({ "aliases": aliases })
    };
    assert_eq!(resolve(&chain(8), &[], Some("a1")).unwrap().name.to_string(), "ollama/x");
    let error = resolve(&chain(9), &[], Some("a1")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the alias `a1` leads through too many others: \
         a1 → a2 → a3 → a4 → a5 → a6 → a7 → a8 → a9 → ollama/x"
    );
    for (aliases, asked, cycle) in [
        (json!({ "a": "a" }), "a", "the alias `a` stands for itself: a → a"),
        (json!({ "a": "b", "b": "a" }), "a", "the alias `a` stands for itself: a → b → a"),
        (
            json!({ "c": "a", "a": "b", "b": "a" }),
            "c",
            "the alias `a` stands for itself: a → b → a",
        ),
    ] {
        let error = resolve(&json!({ "aliases": aliases }), &[], Some(asked)).unwrap_err();
        assert_eq!(error.to_string(), cycle);
        assert_eq!(error.hint(), "let the alias stand for `provider/model` (`model.aliases`)");
    }
}

#[test]
fn settings_limits_and_the_network_come_along() {
    let mut model = work();
    model["temperature"] = json!(0.5);
    model["thinkingBudget"] = json!(-1);
    model["reasoningEffort"] = json!("low");
    model["idleTimeout"] = json!(5000);
    model["retries"] = json!(0);
    let variables = [WORK, ("https_proxy", "http://p:hush@proxy")];
    let found = resolve(&model, &variables, None).unwrap();
    let config: Config = serde_json::from_value(json!({ "model": model })).unwrap();
    assert_eq!(
        config.model.settings(),
        Settings {
            temperature: Some(0.5),
            thinking_budget: Some(-1),
            reasoning_effort: Some(convoke_model::Effort::Low),
            ..Settings::UNSET
        }
    );
    assert_eq!(
        found.provider.limits,
        Limits { max_concurrent: 8.try_into().ok(), requests_per_minute: 600.try_into().ok() }
    );
    assert_eq!(found.provider.headers, [("X-Team".to_owned(), "hush".to_owned())]);
    assert_eq!(found.network.idle_timeout, Duration::from_secs(5));
    assert_eq!(found.network.retries, 0);
    assert_eq!(found.network.proxies.https.as_deref(), Some("http://p:hush@proxy"));
    let plain = resolve(&json!({}), &[ANTHROPIC], None).unwrap();
    assert_eq!(plain.provider.limits, Limits::default());
    assert_eq!(Config::default().model.settings(), Settings::UNSET);
    assert_eq!((plain.network.idle_timeout, plain.network.retries), (Duration::from_mins(2), 4));
}

#[test]
fn what_a_server_says_counts_where_nobody_else_knows() {
    let listed = ModelFacts { window: Some(4096), max_output: Some(100), ..ModelFacts::default() };
    let model = json!({ "facts": { "ollama/*": { "maxOutput": 50, "maxCalls": 7 } } });
    let config: Config = serde_json::from_value(json!({ "model": model })).unwrap();
    let variables = BTreeMap::new();
    let sources = ModelSources::new(&config, &variables);
    let mut resolved = sources.resolve(Some("ollama/some-model")).unwrap();
    resolved.listed = listed;
    let expected = ModelFacts {
        window: Some(4096),
        max_output: Some(50),
        max_calls: Some(7),
        ..ModelFacts::default()
    };
    assert_eq!(resolved.facts_over(ModelFacts::default()), expected);
    let known = sources.facts_of_listed(&resolved.name, listed);
    assert_eq!((known.window, known.max_output), (Some(4096), Some(50)));
    let built_in = ModelFacts { window: Some(9), ..ModelFacts::default() };
    assert_eq!(resolved.facts_over(built_in).window, Some(9), "the catalogue knows better");
}

#[test]
fn facts_of_the_closest_pattern_count() {
    let model = json!({ "facts": {
        "*/*": { "window": 1, "maxOutput": 1, "price": { "input": "9", "output": "9" } },
        "ollama/*": { "window": 2, "maxOutput": 2 },
        "ollama/llama*": { "window": 3 },
        "openai/*": { "window": 4 },
    }});
    let found = resolve(&model, &[], Some("ollama/llama3")).unwrap();
    let patterns: Vec<&str> = found.facts.iter().map(|(pattern, _)| pattern.as_str()).collect();
    assert_eq!(patterns, ["ollama/llama*", "ollama/*", "*/*"]);
    let built_in = ModelFacts { window: Some(100), max_output: Some(100), ..ModelFacts::default() };
    let facts = found.facts_over(built_in);
    assert_eq!((facts.window, facts.max_output), (Some(3), Some(2)));
    assert_eq!(facts.price.unwrap().input, "9".parse().unwrap());
    let bare = resolve(&json!({}), &[], Some("ollama/llama3")).unwrap();
    assert_eq!(bare.facts_over(built_in), built_in);
}

#[test]
fn no_key_is_shown() {
    let variables = [
        WORK,
        OPENAI,
        ("HTTPS_PROXY", "http://me:key-of-proxy@proxy"),
        ("OPENAI_BASE_URL", "key-of-url"),
    ];
    let mut model = work();
    model["providers"]["claude"]["key"] = json!("key-of-claude");
    model["providers"]["work"]["headers"]["X-Key"] = json!("key-of-header");
    let config: Config = serde_json::from_value(json!({ "model": model })).unwrap();
    let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let sources = ModelSources::new(&config, &environment);
    let mut shown = format!("{sources:?}");
    for name in
        [None, Some("claude/x"), Some("tenant/x"), Some("openai/x"), Some("x"), Some("gemini/x")]
    {
        match sources.resolve(name) {
            Ok(found) => shown += &format!("{found:?} {}", found.why),
            Err(error) => shown += &format!("{error:?} {error} {}", error.hint()),
        }
    }
    assert!(shown.contains("X-Key") && !shown.contains("key-of"), "{shown}");
}
