//! A program that starts itself again as the process that is stopped, and what outlives that.
//!
//! It is stopped by a kill, or politely: by a signal that the process hears while it records an event, and that stops the
//! run as the command does. In between the wall clock may jump by a day.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use convoke_agent::{AgentExecutor, Journaled, Keeper, Paused, Place, RunHandle, Running};
use convoke_core::{Cause, Event, Position, RunId, Status, Timestamp};
use convoke_journal::Store;
use convoke_tool::{Clock, EventSink, RecordError, Synced, SystemClock};

pub(crate) const RUN: &str = "killed";

/// How a process is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    Kill,
    Terminate,
    Interrupt,
    HangUp,
}

impl How {
    /// Returns the ways to stop a process at an event. A kill is always among them; of the polite ways one, in turn,
    /// unless `CONVOKE_KILL_ALL` is set.
    pub(crate) fn at(seq: u64) -> Vec<Self> {
        let polite = [Self::Terminate, Self::Interrupt, Self::HangUp];
        if std::env::var_os("CONVOKE_KILL_ALL").is_some() {
            return [Self::Kill].into_iter().chain(polite).collect();
        }
        vec![Self::Kill, polite[(seq % 3) as usize]]
    }

    const fn signal(self) -> &'static str {
        match self {
            Self::Kill => "KILL",
            Self::Terminate => "TERM",
            Self::Interrupt => "INT",
            Self::HangUp => "HUP",
        }
    }
}

/// A signal that the process heard.
#[derive(Debug, Default)]
struct Heard {
    handle: Mutex<Option<RunHandle>>,
    done: Mutex<bool>,
    changed: Condvar,
}

impl Heard {
    /// Listens on a thread of its own: the others may wait for it.
    fn listen(self: &Arc<Self>) {
        use tokio::signal::unix::{SignalKind, signal};
        let (heard, ready) = (Arc::clone(self), Arc::new(AtomicBool::new(false)));
        let listens = Arc::clone(&ready);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async {
                let mut terminate = signal(SignalKind::terminate()).unwrap();
                let mut interrupt = signal(SignalKind::interrupt()).unwrap();
                let mut hang_up = signal(SignalKind::hangup()).unwrap();
                listens.store(true, Ordering::Release);
                let cause = tokio::select! {
                    _ = terminate.recv() => Cause::Terminated,
                    _ = hang_up.recv() => Cause::Terminated,
                    _ = interrupt.recv() => Cause::Interrupted,
                };
                let handle = heard.handle.lock().unwrap_or_else(PoisonError::into_inner).clone();
                if let Some(handle) = handle {
                    handle.cancel_because(cause);
                }
                *heard.done.lock().unwrap_or_else(PoisonError::into_inner) = true;
                heard.changed.notify_all();
            });
        });
        while !ready.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }

    fn wait(&self) {
        let mut done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        while !*done {
            done = self.changed.wait(done).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

/// Wall time that was set: by so many milliseconds, as a file says.
#[derive(Debug)]
pub(crate) struct SetClock(i64);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(SystemClock.now().as_millis() + self.0)
    }
}

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

    /// Sets the clock of the next process.
    pub(crate) fn set_clock(&self, by: Duration, back: bool) {
        let millis = i64::try_from(by.as_millis()).unwrap();
        fs::write(self.root.join("clock"), if back { -millis } else { millis }.to_string())
            .unwrap();
    }

    pub(crate) fn clock(&self) -> Arc<dyn Clock> {
        let set = fs::read_to_string(self.root.join("clock")).unwrap_or_default();
        Arc::new(SetClock(set.parse().unwrap_or_default()))
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
    heard: Arc<Heard>,
}

impl Stops {
    /// Waits to be killed, or for the signal that stops the run.
    fn here(&self, side: &str, seq: u64) {
        if self.stop == format!("{side}:{seq}") {
            println!("stopped");
            std::io::stdout().flush().unwrap();
            self.heard.wait();
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
    heard: Arc<Heard>,
}

impl Keeper for KeepsAndStops {
    fn keep(&self, run: &RunId) -> Result<Place, RecordError> {
        let journal = self.store.create(run, SystemClock.now());
        let journal = journal.map_err(|error| RecordError::new(error.to_string()))?;
        let (stop, heard) = (self.stop.clone(), Arc::clone(&self.heard));
        let kept = Stops { kept: Arc::new(Journaled::new(journal)), stop, heard };
        Ok(Place::new(Arc::new(kept)))
    }
}

/// Works until it has ended, or waits to be killed.
fn child(agent: MakeAgent, world: &World, how: &str, stop: &str) {
    let (store, stop) = (Store::at(&world.state), stop.to_owned());
    let heard = Arc::new(Heard::default());
    heard.listen();
    let threads =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let keeper =
        KeepsAndStops { store: store.clone(), stop: stop.clone(), heard: Arc::clone(&heard) };
    let agent = agent(world, keeper);
    let run: Running = if how == "start" {
        agent.start_as(RunId::new(RUN), "Do all of it.")
    } else {
        let opened = store.open(&RunId::new(RUN), SystemClock.now()).unwrap();
        let kept = Arc::new(Journaled::new(opened.journal));
        let kept = Stops { kept, stop, heard: Arc::clone(&heard) };
        let paused = Paused::rebuild(&RunId::new(RUN), &opened.events, Place::new(Arc::new(kept)));
        let is_over = |outcome: &convoke_core::Outcome| outcome.status != Status::Cancelled;
        if let Some(outcome) = paused.outcome().filter(is_over) {
            println!("ended before: {:?}", outcome.cause);
            return;
        }
        agent.resume(paused, None).unwrap()
    };
    *heard.handle.lock().unwrap() = Some(run.handle());
    let report = threads.unwrap().block_on(run.finish());
    println!("answer: {}", report.text().unwrap_or_else(|| format!("{:?}", report.outcome)));
}

/// Starts the process and waits for it: until it has ended, or until it stopped at an event and was killed there.
pub(crate) fn play(world: &World, how: &str, stop: &str) -> Option<String> {
    play_until(world, how, stop, How::Kill)
}

/// Starts the process and waits for it: until it has ended, or until it was stopped at an event in this way.
pub(crate) fn play_until(world: &World, how: &str, stop: &str, way: How) -> Option<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let mut process = command
        .args(["child", world.root.to_str().unwrap(), how, stop])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let said = lines.next().map(Result::unwrap);
    if said.as_deref() == Some("stopped") {
        let id = process.id().to_string();
        let sent = Command::new("kill").args(["-s", way.signal(), &id]).status().unwrap();
        assert!(sent.success(), "{way:?}");
        let last = lines.next().map(Result::unwrap);
        process.wait().unwrap();
        // A run that had ended when the signal came has its answer.
        return last.filter(|last| last.starts_with("answer: ") && !last.contains("Outcome"));
    }
    assert!(process.wait().unwrap().success(), "{how} {stop}: {said:?}");
    said
}
