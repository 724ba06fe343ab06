//! Every kind of mistake, with the whole message a person gets.

use insta::assert_snapshot;

use super::Scene;

fn message(user: &str) -> String {
    let scene = Scene::new().user(user);
    scene.readable(&scene.fail())
}

#[test]
fn unknown_keys_name_the_nearest() {
    assert_snapshot!(message(
        "tools:\n  timout: 5\n  readCache: {a: 1}\n  http: {maxRedirect: 1}\n  timeouts:\n    category: {netwrk: 1}\n\
         timeout: 5\nzebra: 1\npolicy:\n  kinds: {reed: ask}\n"
    ), @"
    the configuration has 7 mistakes
    [root]/home/user.yml:2:3: tools.timout: there is no such key
      hint: did you mean `tools.timeout` or `tools.timeouts`?
    [root]/home/user.yml:3:14: tools.readCache: expected `true` or `false`, found a mapping
    [root]/home/user.yml:4:10: tools.http.maxRedirect: there is no such key
      hint: did you mean `tools.http.maxRedirects`?
    [root]/home/user.yml:6:16: tools.timeouts.category.netwrk: there is no such key
      hint: did you mean `tools.timeouts.category.network`?
    [root]/home/user.yml:7:1: timeout: there is no such key
      hint: did you mean `tools.timeout`?
    [root]/home/user.yml:8:1: zebra: there is no such key
      hint: the keys are `agent`, `agents`, `budget`, `hooks`, `model`, `policy`, `sandbox`, `tools`
    [root]/home/user.yml:10:11: policy.kinds.reed: there is no such key
      hint: did you mean `policy.kinds.read`?
    ");
}

#[test]
fn wrong_types_and_ranges_say_what_was_expected_and_found() {
    assert_snapshot!(message(
        "tools:\n  timeout: 0\n  maxConcurrent: many\n  readCache: yes\n  exclude: grep\n  \
         enabled: [1, ~]\n  maxReadBytes: 1.5\n  http: []\n  timeouts: {tool: {x: -1}}\n  \
         webSearch:\n    provider: bingo\n    apiKey: 12345\n    engineId: 0x10\n    \
         baseUrl: ftp://x\nagent: 7\npolicy:\n  kinds:\n    read: sometimes\n"
    ), @r#"
    the configuration has 15 mistakes
    [root]/home/user.yml:2:12: tools.timeout: expected a duration, as 250ms, 90s or 1h30m, or milliseconds from 1 to 86400000, found `0`
    [root]/home/user.yml:3:18: tools.maxConcurrent: expected a whole number from 1 to 1024, found the text "many"
    [root]/home/user.yml:4:14: tools.readCache: expected `true` or `false`, found the text "yes"
    [root]/home/user.yml:5:12: tools.exclude: expected a list of text, found the text "grep"
    [root]/home/user.yml:6:13: tools.enabled[0]: expected text, found `1`
      hint: put it in quotes to make it text
    [root]/home/user.yml:6:16: tools.enabled[1]: expected text, found nothing
    [root]/home/user.yml:7:17: tools.maxReadBytes: expected a whole number from 256 to 1073741824, found `1.5`
    [root]/home/user.yml:8:9: tools.http: expected a mapping, found an empty list
    [root]/home/user.yml:9:24: tools.timeouts.tool.x: expected a duration, as 250ms, 90s or 1h30m, or milliseconds from 1 to 86400000, found `-1`
    [root]/home/user.yml:11:15: tools.webSearch.provider: expected one of `tavily`, `google`, `bing`, `duckduckgo`, found the text "bingo"
      hint: did you mean `bing`?
    [root]/home/user.yml:12:13: tools.webSearch.apiKey: expected text, found another value
      hint: put it in quotes to make it text
    [root]/home/user.yml:13:15: tools.webSearch.engineId: expected text, found `16`
      hint: put it in quotes to make it text
    [root]/home/user.yml:14:14: tools.webSearch.baseUrl: expected text that matches `^https?://`, found the text "ftp://x"
    [root]/home/user.yml:15:8: agent: expected a mapping, found `7`
    [root]/home/user.yml:18:11: policy.kinds.read: expected one of `allow`, `ask`, `deny`, found the text "sometimes"
    "#);
}

#[test]
fn lists_of_mappings_are_checked_entry_by_entry() {
    assert_snapshot!(message(
        "tools:\n  mcpServers:\n  - {name: a, url: 'http://x'}\n  - {name: a, url: 'http://y'}\n  \
         - {url: 'http://z', enabeld: true}\n  commands:\n  - name: bad name\n    \
         description: ''\n    command: []\n    parameters: {type: 5}\n    workingDirectory: ''\n  \
         - 5\n"
    ), @r#"
    the configuration has 9 mistakes
    [root]/home/user.yml:4:12: tools.mcpServers[1].name: the name is already taken by `tools.mcpServers[0]`
    [root]/home/user.yml:5:5: tools.mcpServers[2]: `name` is missing
    [root]/home/user.yml:5:23: tools.mcpServers[2].enabeld: there is no such key
      hint: did you mean `tools.mcpServers[2].enabled` or `tools.mcpServers[2].name`?
    [root]/home/user.yml:7:11: tools.commands[0].name: expected text that matches `^[A-Za-z0-9_-]{1,64}$`, found the text "bad name"
    [root]/home/user.yml:8:18: tools.commands[0].description: expected text that is not empty, found the text ""
    [root]/home/user.yml:9:14: tools.commands[0].command: expected a list of text that is not empty, found an empty list
    [root]/home/user.yml:10:17: tools.commands[0].parameters: not a JSON Schema at `/type`: value is not valid under any of the schemas listed in the 'anyOf' keyword
    [root]/home/user.yml:11:23: tools.commands[0].workingDirectory: expected text that is not empty, found the text ""
    [root]/home/user.yml:12:5: tools.commands[1]: expected a mapping, found `5`
    "#);
}

#[test]
fn bad_yaml_is_one_problem_with_its_place() {
    assert_snapshot!(message("tools:\n  timeout: [1\n"), @"
    the configuration has a mistake
    [root]/home/user.yml:2:12: not valid YAML: unclosed bracket '['
    ");
    assert_snapshot!(message("tools: {}\ntools: {}\n"), @"
    the configuration has a mistake
    [root]/home/user.yml:2:1: the key `tools` appears twice in one mapping
    ");
    assert_snapshot!(message("- tools\n"), @"
    the configuration has a mistake
    [root]/home/user.yml:1:1: expected a mapping of settings, such as `tools:`, at the top of the file
    ");
}

#[test]
fn variables_that_are_missing_or_do_not_fit_are_named_but_never_shown() {
    let scene = Scene::new()
        .user(
            "tools:\n  timeout: ${WORD}\n  maxConcurrent: ${BIG}\n  webSearch:\n    \
             apiKey: ${MISSING}\n    provider: ${WORD}\n    baseUrl: x${WORD}\n    \
             engineId: ${oops\n  mcpServers: ${WORD}\n",
        )
        .variable("WORD", "hush")
        .variable("BIG", "4444");
    let told = scene.readable(&scene.fail());
    assert!(!told.contains("hush") && !told.contains("4444"), "{told}");
    assert_snapshot!(told, @"
    the configuration has 7 mistakes
    [root]/home/user.yml:2:12: tools.timeout: expected a duration, as 250ms, 90s or 1h30m, or milliseconds from 1 to 86400000, found text from `${WORD}`
    [root]/home/user.yml:3:18: tools.maxConcurrent: expected a whole number from 1 to 1024, found another value
    [root]/home/user.yml:5:13: tools.webSearch.apiKey: the environment variable `MISSING` is not set
      hint: `${NAME:-text}` gives a default, `$${` stands for `${` itself
    [root]/home/user.yml:6:15: tools.webSearch.provider: expected one of `tavily`, `google`, `bing`, `duckduckgo`, found other text
    [root]/home/user.yml:7:14: tools.webSearch.baseUrl: expected text that matches `^https?://`, found other text
    [root]/home/user.yml:8:15: tools.webSearch.engineId: `${` has no closing `}`
      hint: `${NAME:-text}` gives a default, `$${` stands for `${` itself
    [root]/home/user.yml:9:15: tools.mcpServers: expected a list of mappings, found text from `${WORD}`
    ");
}

/// Regression: these were taken, and each try to reach such a server failed.
#[test]
fn addresses_of_servers_that_cannot_be_are_told_why() {
    let scene = Scene::new()
        .user(
            "tools:\n  mcpServers:\n  - {name: a, url: 'http://[::1'}\n  \
             - {name: b, url: 'http://me:hush@h:99999/x'}\n  - {name: c, url: 'http://'}\n  \
             - {name: d, url: 'http://exa mple/x'}\n  - {name: e, url: 'ws://x/y'}\n  \
             - {name: f, url: 'https://h:${PORT}/x'}\n  - {name: g, url: 'https://h:80/x'}\n  \
             - {name: h, url: 'https://me:hush@h:${PORT}/x?key=hush'}\n",
        )
        .variable("PORT", "4444444");
    assert_snapshot!(scene.readable(&scene.fail()), @r#"
    the configuration has 7 mistakes
    [root]/home/user.yml:3:20: tools.mcpServers[0].url: this is no address of a server: what stands in `[…]` is not an IPv6 address: write it as http://[::1]:PORT/PATH
    [root]/home/user.yml:4:20: tools.mcpServers[1].url: this is no address of a server: its port is not a number from 1 to 65535
    [root]/home/user.yml:5:20: tools.mcpServers[2].url: this is no address of a server: it names no host: write it as https://HOST/PATH
    [root]/home/user.yml:6:20: tools.mcpServers[3].url: this is no address of a server: there is a space or a control character in its host
    [root]/home/user.yml:7:20: tools.mcpServers[4].url: expected text that matches `^https?://`, found the text "ws://x/y"
    [root]/home/user.yml:8:20: tools.mcpServers[5].url: what `https://h:${PORT}/x` stands for is no address: its port is not a number from 1 to 65535
    [root]/home/user.yml:10:20: tools.mcpServers[7].url: what `https://h:${PORT}/x?…` stands for is no address: its port is not a number from 1 to 65535
    "#);
}

/// Who began to write down a limit once had none.
#[test]
fn a_key_without_a_value_is_not_taken_for_no_limit() {
    assert_snapshot!(message(
        "budget:\n  tokens:\nagents:\n  maxDepth:\n  exclude:\n  overrides:\n    worker:\n      maxTurns: ~\n\
         policy:\n  rules:\n  # - {effect: deny, command: rm *}\nsandbox:\n  network:\ntools:\n  exclude:\n"
    ), @"
    the configuration has 7 mistakes
    [root]/home/user.yml:2:3: budget.tokens: nothing stands behind it; write what is meant (`[]` for none of a list), or leave the key out
    [root]/home/user.yml:4:3: agents.maxDepth: nothing stands behind it; write what is meant (`[]` for none of a list), or leave the key out
    [root]/home/user.yml:5:3: agents.exclude: nothing stands behind it; write what is meant (`[]` for none of a list), or leave the key out
    [root]/home/user.yml:8:7: agents.overrides.worker.maxTurns: nothing stands behind it; write what is meant (`[]` for none of a list), or leave the key out
    [root]/home/user.yml:10:3: policy.rules: nothing stands behind it; write what is meant (`[]` for none of a list), or leave the key out
    [root]/home/user.yml:13:3: sandbox.network: nothing stands behind it; write what is meant (`[]` for none of a list), or leave the key out
    [root]/home/user.yml:15:3: tools.exclude: nothing stands behind it; write what is meant (`[]` for none of a list), or leave the key out
    ");
    let sections = "budget:\n  # tokens: 5\nagents:\n  overrides:\n    worker:\nhooks:\ntools:\n  mcpServers:\n";
    assert!(Scene::new().user(sections).load().warnings().is_empty(), "sections may be empty");
    let of_a_folder = Scene::new().project("budget:\n  tokens:\n").fail().to_string();
    assert!(
        of_a_folder.contains("convoke.yml:2:3: budget.tokens: nothing stands"),
        "{of_a_folder}"
    );
}

/// As most other programs have it.
#[test]
fn servers_by_name_are_told_how_they_are_written_here() {
    let text = "tools:\n  mcpServers:\n    files: {command: npx}\n";
    let told = Scene::new().user(text).fail().to_string();
    assert!(
        told.contains("tools.mcpServers: expected a list of mappings, found a mapping"),
        "{told}"
    );
    assert!(
        told.contains("hint: here each is an item that says its name: `- name: files`"),
        "{told}"
    );
}

#[test]
fn secrets_are_not_in_any_message() {
    let scene = Scene::new()
        .user("tools: {webSearch: {apiKey: [hush]}}")
        .flag("tools.webSearch.maxResults", "0")
        .variable("CONVOKE__TOOLS__COMMANDS", "[{name: 'hush hush'}]");
    let told = scene.readable(&scene.fail());
    assert!(!told.contains("hush"), "{told}");
    assert_snapshot!(told, @"
    the configuration has 5 mistakes
    [root]/home/user.yml:1:29: tools.webSearch.apiKey: expected text, found a list
    environment variable CONVOKE__TOOLS__COMMANDS: tools.commands[0]: `description` is missing
    environment variable CONVOKE__TOOLS__COMMANDS: tools.commands[0]: `command` is missing
    environment variable CONVOKE__TOOLS__COMMANDS: tools.commands[0].name: expected text that matches `^[A-Za-z0-9_-]{1,64}$`, found other text
    --set tools.webSearch.maxResults: expected a whole number from 1 to 100, found `0`
    ");
}

#[test]
fn mistakes_of_all_layers_are_reported_together() {
    let scene = Scene::new()
        .user("tools: {timeout: x}")
        .project("tools: {timout: 1}")
        .variable("CONVOKE__TOOLS__READ_CACHE", "maybe")
        .flag("tools.nothing", "1");
    assert_snapshot!(scene.readable(&scene.fail()), @r#"
    the configuration has 4 mistakes
    [root]/home/project/convoke.yml:1:9: tools.timout: there is no such key
      hint: did you mean `tools.timeout` or `tools.timeouts`?
    [root]/home/user.yml:1:18: tools.timeout: expected a duration, as 250ms, 90s or 1h30m, or milliseconds from 1 to 86400000, found the text "x"
    environment variable CONVOKE__TOOLS__READ_CACHE: tools.readCache: expected `true` or `false`, found something else
    --set tools.nothing: there is no such key
      hint: the keys of `tools` are `allowedPaths`, `commands`, `enabled`, `environment`, `exclude`, `http`, `maxArgumentBytes`, `maxConcurrent`, `maxListedTokens`, `maxOutputBytes`, `maxReadBytes`, `mcpFiles`, `mcpServers`, `readCache`, `timeout`, `timeouts`, `webSearch`
    "#);
}

#[test]
fn directories_that_depend_on_the_process_are_refused() {
    let mut scene = Scene::new();
    scene.sources.working_directory = "relative".into();
    scene.sources.home = None;
    let scene = scene.user_in_root("tools: {allowedPaths: [~/x, ../../../../../../../../../x]}");
    assert_snapshot!(scene.readable(&scene.fail()), @"
    the configuration has 3 mistakes
    [root]/user.yml:1:24: tools.allowedPaths[0]: `~` cannot be used: there is no home directory
    [root]/user.yml:1:29: tools.allowedPaths[1]: the path leads above the root directory
    sources: the path `relative` is not absolute
    ");
}

#[test]
fn mistakes_in_models_and_budgets_are_named_and_keys_are_not() {
    assert_snapshot!(message(
        "model:\n  default: ''\n  temperature: 3\n  reasoningEffort: hgh\n  aliases: {a/b: x, ok: 5}\n  \
         providers:\n    'a/b': {}\n    work:\n      wire: openai-chatt\n      baseUrl: localhost:80\n      \
         keyVariable: sk-hush\n      key: 5\n      headers: {'X Y': z}\n      apiKey: hush\n  \
         facts:\n    any: {window: 0}\n    'x/*': {price: {input: 0.5}}\n\
         budget: {turns: 0, cost: 1.5, tokens: many}\n\
         agent: {strategy: plan, compactAt: 100, maxRepeats: 1}\n"
    ), @r#"
    the configuration has 22 mistakes
    [root]/home/user.yml:2:12: model.default: expected text that is not empty, found the text ""
    [root]/home/user.yml:3:16: model.temperature: expected a number from 0 to 2, found `3`
    [root]/home/user.yml:4:20: model.reasoningEffort: expected one of `none`, `minimal`, `low`, `medium`, `high`, `xhigh`, found the text "hgh"
      hint: did you mean `high`?
    [root]/home/user.yml:5:13: model.aliases.a/b: expected a name that matches `^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$`
    [root]/home/user.yml:5:25: model.aliases.ok: expected text, found `5`
      hint: put it in quotes to make it text
    [root]/home/user.yml:7:5: model.providers.a/b: expected a name that matches `^[A-Za-z0-9_-]{1,64}$`
    [root]/home/user.yml:9:13: model.providers.work.wire: expected one of `gemini`, `anthropic`, `openai`, `openai-chat`, found the text "openai-chatt"
      hint: did you mean `openai-chat`?
    [root]/home/user.yml:10:16: model.providers.work.baseUrl: expected text that matches `^https?://`, found the text "localhost:80"
    [root]/home/user.yml:11:20: model.providers.work.keyVariable: expected text that matches `^[A-Za-z_][A-Za-z0-9_]*$`, found other text
    [root]/home/user.yml:12:12: model.providers.work.key: expected text, found another value
      hint: put it in quotes to make it text
    [root]/home/user.yml:13:17: model.providers.work.headers."X Y": expected a name that matches `^[!#$%&'*+.^_`|~0-9A-Za-z-]+$`
    [root]/home/user.yml:14:7: model.providers.work.apiKey: there is no such key
      hint: did you mean `model.providers.work.key`?
    [root]/home/user.yml:16:5: model.facts.any: expected a name that matches `^[^/]+/.+$`
    [root]/home/user.yml:16:19: model.facts.any.window: expected a whole number from 1 to 1000000000, found `0`
    [root]/home/user.yml:17:20: model.facts."x/*".price: `output` is missing
    [root]/home/user.yml:17:28: model.facts."x/*".price.input: expected text that matches `^[0-9]{1,9}(\.[0-9]{1,12})?$`, found `0.5`
      hint: put it in quotes to make it text
    [root]/home/user.yml:18:17: budget.turns: expected a whole number from 1 to 100000, found `0`
    [root]/home/user.yml:18:26: budget.cost: expected text that matches `^[0-9]{1,9}(\.[0-9]{1,12})?$`, found `1.5`
      hint: put it in quotes to make it text
    [root]/home/user.yml:18:39: budget.tokens: expected a whole number from 1 to 1000000000000, found the text "many"
    [root]/home/user.yml:19:19: agent.strategy: expected one of `direct`, `planned`, found the text "plan"
      hint: did you mean `planned`?
    [root]/home/user.yml:19:36: agent.compactAt: expected a whole number from 10 to 95, found `100`
    [root]/home/user.yml:19:53: agent.maxRepeats: expected a whole number from 2 to 100, found `1`
    "#);
}

/// gemini-cli 4.20: a key of a rule that nobody knows is a mistake with its place.
#[test]
fn rules_are_checked_with_their_examples() {
    let scene = Scene::new().user(
        "policy:\n  rules:\n    - {effect: allow}\n    - {effect: alow, command: x}\n    \
         - {effect: allow, command: 'a; b'}\n    - {effect: deny, path: 'a['}\n    \
         - {effect: deny, command: rm *, match: [rm x, ls], not_match: ['ls; rm x']}\n    \
         - {effect: deny, host: 'a*b'}\n    - {action: deny, effect: deny, command: ls}\n",
    );
    let told = scene.told(scene.fail().problems());
    for expected in [
        "policy.rules[6].action: there is no such key",
        "user.yml:3:16: policy.rules[0].effect: a rule needs a condition",
        "user.yml:4:16: policy.rules[1].effect: expected one of `allow`, `ask`, `deny`",
        "user.yml:5:32: policy.rules[2].command: a command pattern is one simple command",
        "user.yml:6:28: policy.rules[3].path: unclosed character class",
        "policy.rules[4].match[1]: the rule does not hold for `ls`, but says it does",
        "policy.rules[4].not_match[0]: the rule holds for `ls; rm x`, but says it does not",
        "policy.rules[5].host: a host is written `example.com`",
    ] {
        assert!(told.contains(expected), "{expected} is not in\n{told}");
    }
}

#[test]
fn a_server_is_a_program_or_an_address() {
    assert_snapshot!(message(
        "tools:\n  mcpServers:\n  - {name: a, url: 'http://x', command: y}\n  - {name: b}\n  \
         - {name: c, url: 'http://x', args: [z]}\n  - {name: d, command: y, headers: {h: v}}\n  \
         - {name: e, url: 'ftp://x'}\n",
    ), @r#"
    the configuration has 5 mistakes
    [root]/home/user.yml:3:5: tools.mcpServers[0]: it has both `url` and `command`
      hint: a server is a program that is started here, or one at an address
    [root]/home/user.yml:4:5: tools.mcpServers[1]: it has neither `url` nor `command`
      hint: write `command` for a program, with its `args`, or `url` for an address
    [root]/home/user.yml:5:5: tools.mcpServers[2]: `args` is for programs, and this has a `url`
      hint: take it out
    [root]/home/user.yml:6:5: tools.mcpServers[3]: `headers` is for servers at a `url`, and this is a program
      hint: take it out; a program gets what it needs by `env`
    [root]/home/user.yml:7:20: tools.mcpServers[4].url: expected text that matches `^https?://`, found the text "ftp://x"
    "#);
}
