//! The page in a real browser, where there is one: Chromium, or what `CONVOKE_CHROMIUM` names.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use convoke_core::Event;
use convoke_journal::export::html;
use convoke_journal::timeline::Timeline;
use convoke_testkit::skip;
use tempfile::TempDir;

use crate::{hostile, sample};

/// How long a browser may take.
const PATIENCE: Duration = Duration::from_mins(2);

#[expect(clippy::disallowed_methods, reason = "a test looks for a program")]
fn chromium() -> Option<PathBuf> {
    let named = std::env::var_os("CONVOKE_CHROMIUM").map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let found = std::env::split_paths(&path)
        .flat_map(|directory| names.map(|name| directory.join(name)))
        .find(|program| program.is_file());
    named.or(found)
}

/// What a browser made of a page.
struct Seen {
    /// The page after its script ran.
    dom: String,
    /// What was said on the console.
    console: Vec<String>,
}

/// Opens the page of a run, if there is a browser.
#[expect(clippy::disallowed_methods, reason = "a test starts a browser on a file of its own")]
fn open(events: &[Event], fragment: &str) -> Option<Seen> {
    let Some(program) = chromium() else {
        skip("Chromium", "CONVOKE_CHROMIUM may name one");
        return None;
    };
    let directory = TempDir::new().unwrap();
    let file = directory.path().join("run.html");
    std::fs::write(&file, html(&Timeline::of(events))).unwrap();
    let profile = directory.path().join("profile");
    let mut browser = Command::new(program)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"])
        .args(["--disable-background-networking", "--no-first-run", "--virtual-time-budget=3000"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg("--dump-dom")
        .arg(format!("file://{}{fragment}", file.display()))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let dom = read(browser.stdout.take().unwrap());
    let errors = read(browser.stderr.take().unwrap());
    let Ok(dom) = dom.recv_timeout(PATIENCE) else {
        browser.kill().unwrap();
        panic!("the browser did not finish: {}", errors.recv().unwrap());
    };
    let errors = errors.recv().unwrap();
    assert!(browser.wait().unwrap().success(), "{errors}");
    let console = errors.lines().filter(|line| line.contains("CONSOLE")).map(str::to_owned);
    Some(Seen { dom, console: console.collect() })
}

/// Reads to the end, elsewhere.
fn read(mut from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).unwrap();
        sender.send(String::from_utf8_lossy(&bytes).into_owned()).unwrap();
    });
    receiver
}

fn root(dom: &str) -> &str {
    let rest = dom.split_once("<html").unwrap().1;
    rest.split_once('>').unwrap().0
}

/// Returns the tag that has this name.
fn tag<'d>(dom: &'d str, id: &str) -> &'d str {
    let at = dom.find(&format!(" id=\"{id}\"")).unwrap_or_else(|| panic!("no {id}"));
    let start = dom[..at].rfind('<').unwrap();
    &dom[start..start + dom[start..].find('>').unwrap()]
}

#[test]
fn the_script_runs_under_the_policy() {
    let Some(seen) = open(&sample::continued(), "") else { return };
    assert_eq!(seen.console, Vec::<String>::new());
    let root = root(&seen.dom);
    assert!(root.contains("data-script=\"on\"") && root.contains("data-ready=\"yes\""), "{root}");
}

#[test]
fn a_search_in_the_address_hides_the_rest() {
    let Some(seen) = open(&sample::continued(), "#q=edit_file") else { return };
    assert_eq!(seen.console, Vec::<String>::new());
    assert!(root(&seen.dom).contains("data-shown=\"3\""), "{}", root(&seen.dom));
    assert!(!tag(&seen.dom, "e24").contains("hidden"), "the call itself");
    assert!(tag(&seen.dom, "e8").contains("hidden"), "another call");
    assert!(tag(&seen.dom, "e38").contains("hidden"), "a turn without it");
}

#[test]
fn a_search_finds_an_agent_with_all_it_did() {
    let Some(seen) = open(&sample::continued(), "#q=investigator") else { return };
    assert!(!tag(&seen.dom, "agent-1").contains("hidden"));
    assert!(!tag(&seen.dom, "e49").contains("hidden"), "a call of the agent");
}

#[test]
fn an_address_leads_to_an_item_and_unfolds_it() {
    let Some(seen) = open(&sample::continued(), "#e8") else { return };
    assert!(tag(&seen.dom, "e8").contains("data-current"));
    let item = seen.dom.split_once(" id=\"e8\"").unwrap().1;
    let details = item.split_once("<details").unwrap().1.split_once('>').unwrap().0;
    assert!(details.contains("open"), "{details}");
}

#[test]
fn a_hostile_run_does_nothing_in_a_browser() {
    let Some(seen) = open(&hostile::events(), "#q=%3Cimg") else { return };
    // A script that was blocked would be on the console, as one that ran would be.
    assert_eq!(seen.console, Vec::<String>::new());
    assert!(root(&seen.dom).contains("data-ready=\"yes\""));
    assert!(!seen.dom.contains("<img") && !seen.dom.contains(" onerror=\"evil"));
    assert_eq!(seen.dom.matches("<script").count(), 1);
}
