//! A program that starts itself again as the process that is killed, and what outlives that.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use convoke_agent::{AgentExecutor, Journaled, Keeper, Paused, Place, Running};
use convoke_core::{Event, Position, RunId};
use convoke_journal::Store;
use convoke_tool::{Clock, EventSink, RecordError, Synced, SystemClock};

pub(crate) const RUN: &str = "killed";

/// Makes the agent whose process is killed.
type MakeAgent = fn(&World, KeepsAndStops) -> AgentExecutor;

/// Does what the program was started for: to be the process that is killed, or to run the one test there is.
pub(crate) fn work(name: &str, agent: MakeAgent, test: fn()) {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match words.first().map(String::as_str) {
        Some("child") => child(agent, &World::at(Path::new(&words[1])), &words[2], &words[3]),
        // Whoever wants to know which tests there are is told; whoever wants another one gets none.
        Some("--list") => println!("{name}: test"),
        Some(filter) if !filter.starts_with('-') && !name.contains(filter) => {}
        _ => test(),
    }
}

/// What lies outside the process.
pub(crate) struct World {
    state: PathBuf,
    /// One line for every time a tool did something.
    pub(crate) effects: PathBuf,
    /// One line for every request a model got.
    pub(crate) requests: PathBuf,
    root: PathBuf,
}

impl World {
    pub(crate) fn at(root: &Path) -> Self {
        let [state, effects, requests] =
            ["state", "effects", "requests"].map(|name| root.join(name));
        Self { state, effects, requests, root: root.to_owned() }
    }

    pub(crate) fn lines(path: &Path) -> Vec<String> {
        let text = fs::read_to_string(path).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        Store::at(&self.state).read(&RunId::new(RUN)).unwrap().events
    }
}

pub(crate) fn append(path: &Path, line: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// A sink that stops before or after the event of a number.
#[derive(Debug)]
struct Stops {
    kept: Arc<dyn EventSink>,
    stop: String,
}

impl Stops {
    /// Waits to be killed.
    fn here(&self, side: &str, seq: u64) {
        if self.stop == format!("{side}:{seq}") {
            println!("stopped");
            std::io::stdout().flush().unwrap();
            loop {
                std::thread::park();
            }
        }
    }
}

impl EventSink for Stops {
    fn append(&self, event: &Arc<Event>) -> Result<(), RecordError> {
        let Position::Durable { seq } = event.position else { return Ok(()) };
        self.here("before", seq);
        self.kept.append(event)?;
        self.here("after", seq);
        Ok(())
    }

    fn stream(&self, _: &Arc<Event>) {}

    fn sync(&self) -> Synced {
        self.kept.sync()
    }
}

/// Keeps a run in its journal, and stops there.
#[derive(Debug)]
pub(crate) struct KeepsAndStops {
    store: Store,
    stop: String,
}

impl Keeper for KeepsAndStops {
    fn keep(&self, run: &RunId) -> Result<Place, RecordError> {
        let journal = self.store.create(run, SystemClock.now());
        let journal = journal.map_err(|error| RecordError::new(error.to_string()))?;
        let kept = Stops { kept: Arc::new(Journaled::new(journal)), stop: self.stop.clone() };
        Ok(Place::new(Arc::new(kept)))
    }
}

/// Works until it has ended, or waits to be killed.
fn child(agent: MakeAgent, world: &World, how: &str, stop: &str) {
    let (store, stop) = (Store::at(&world.state), stop.to_owned());
    let threads =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let agent = agent(world, KeepsAndStops { store: store.clone(), stop: stop.clone() });
    let run: Running = if how == "start" {
        agent.start_as(RunId::new(RUN), "Do all of it.")
    } else {
        let opened = store.open(&RunId::new(RUN), SystemClock.now()).unwrap();
        let kept = Stops { kept: Arc::new(Journaled::new(opened.journal)), stop };
        let paused = Paused::rebuild(&RunId::new(RUN), &opened.events, Place::new(Arc::new(kept)));
        if let Some(outcome) = paused.outcome() {
            println!("ended before: {:?}", outcome.cause);
            return;
        }
        agent.resume(paused, None).unwrap()
    };
    let report = threads.unwrap().block_on(run.finish());
    println!("answer: {}", report.text().unwrap_or_else(|| format!("{:?}", report.outcome)));
}

/// Starts the process and waits for it: until it has ended, or until it stopped and was killed.
pub(crate) fn play(world: &World, how: &str, stop: &str) -> Option<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let mut process = command
        .args(["child", world.root.to_str().unwrap(), how, stop])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let said = lines.next().map(Result::unwrap);
    if said.as_deref() == Some("stopped") {
        process.kill().unwrap();
        process.wait().unwrap();
        return None;
    }
    assert!(process.wait().unwrap().success(), "{how} {stop}: {said:?}");
    said
}
