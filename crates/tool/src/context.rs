//! Everything a running call may use of the world outside it.
//!
//! A tool has no other way to learn the time, find a file, start a process or read a variable, which
//! is what makes it possible to confine, test and replay it.

use std::any::{Any, TypeId};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use convoke_core::event::{FileSeen, Wanted};
use convoke_core::policy::Forbidden;
use convoke_core::{AgentPath, CallId, Category, Endpoint, TaskId, ToolError, UserId};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::approve::Answer;
use crate::authorize::Decision;
use crate::cache::{ReadCache, Stamp};
use crate::clock::{Clock, SystemClock};
use crate::environment::SessionEnvironment;
use crate::files::{CallFiles, FileHash, FileState, SeenFiles};
use crate::inquire::{Inquirer, Inquiry};
use crate::interlude::{Interlude, Pause};
use crate::progress::ProgressSender;
use crate::roots::{Place, Roots};
use crate::spawn::{NoProcesses, Spawner};
use crate::view::ToolView;

/// What a call may use. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ToolContext {
    session: Arc<Session>,
    call: CallId,
    cancellation: CancellationToken,
    progress: ProgressSender,
    /// What the call holds while it runs. Work that outlives the call holds it too.
    turn: Option<Arc<dyn Any + Send + Sync>>,
    /// What the call must not see.
    forbidden: Arc<Forbidden>,
    /// Why the call waits for a person, if it does.
    parked: Arc<OnceLock<String>>,
    /// Who puts to a person what the call has to know.
    inquirer: Option<Arc<dyn Inquirer>>,
    /// When the call has only a person to wait for.
    interlude: Arc<Interlude>,
    /// The tools that whoever makes the call may use.
    view: Option<ToolView>,
    /// Whether calls that have to stop stay open.
    deferral: Deferral,
    /// The files that its run knows; none, where there is no run.
    seen: Option<SeenFiles>,
    /// The files that the call itself showed, saw or left.
    files: Arc<CallFiles>,
}

/// Says whether calls that have to stop stay open for the process that resumes their run, or are answered at once.
/// Cheap to clone; clones are the same. By default calls are answered: only runs can be resumed.
#[derive(Clone, Debug, Default)]
pub struct Deferral(Arc<AtomicBool>);

impl Deferral {
    /// Leaves calls of a run open when it is stopped.
    pub fn of_a_run() -> Self {
        Self(Arc::new(AtomicBool::new(true)))
    }

    /// From now on calls are answered: the run goes on after it stopped them.
    pub fn end(&self) {
        self.0.store(false, Ordering::Release);
    }

    fn is_on(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What all calls of a session share.
#[derive(Clone, Debug)]
struct Session {
    task: TaskId,
    user: Option<UserId>,
    roots: Roots,
    working_directory: PathBuf,
    environment: SessionEnvironment,
    clock: Arc<dyn Clock>,
    spawner: Arc<dyn Spawner>,
    read_cache: ReadCache,
    extensions: HashMap<TypeId, Arc<dyn Any + Send + Sync>>,
}

impl ToolContext {
    /// Starts a context in which nothing is allowed: no paths, no processes, an empty environment.
    pub fn builder(task: impl Into<TaskId>) -> ContextBuilder {
        ContextBuilder {
            session: Session {
                task: task.into(),
                user: None,
                roots: Roots::none(),
                working_directory: PathBuf::from("/"),
                environment: SessionEnvironment::default(),
                clock: Arc::new(SystemClock),
                spawner: Arc::new(NoProcesses),
                read_cache: ReadCache::off(),
                extensions: HashMap::new(),
            },
            cancellation: CancellationToken::new(),
        }
    }

    /// Returns the task the call works for.
    pub fn task(&self) -> &TaskId {
        &self.session.task
    }

    /// Returns the person it works for.
    pub fn user(&self) -> Option<&UserId> {
        self.session.user.as_ref()
    }

    /// Returns the call itself.
    pub const fn call(&self) -> &CallId {
        &self.call
    }

    /// Returns the agent that made the call, where an executor runs it.
    pub fn agent(&self) -> Option<&AgentPath> {
        self.inquirer.as_ref().map(|inquirer| inquirer.agent())
    }

    /// Returns the directories it may touch.
    pub fn roots(&self) -> &Roots {
        &self.session.roots
    }

    /// Returns where relative paths start.
    pub fn working_directory(&self) -> &Path {
        &self.session.working_directory
    }

    /// Returns the session's variables.
    pub fn environment(&self) -> &SessionEnvironment {
        &self.session.environment
    }

    /// Returns the clock.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        &self.session.clock
    }

    /// Returns what starts processes.
    pub fn spawner(&self) -> &Arc<dyn Spawner> {
        &self.session.spawner
    }

    /// Returns the memory of unchanged files.
    pub fn read_cache(&self) -> &ReadCache {
        &self.session.read_cache
    }

    /// Returns what shows the call's progress.
    pub const fn progress(&self) -> &ProgressSender {
        &self.progress
    }

    /// Returns the token that is cancelled when the call has to stop: for lack of time, or because
    /// somebody said so.
    pub const fn cancellation(&self) -> &CancellationToken {
        &self.cancellation
    }

    /// Waits until the call has to stop.
    pub async fn cancelled(&self) {
        self.cancellation.cancelled().await;
    }

    /// Returns a value an embedding program put into the context.
    pub fn extension<T: Send + Sync + 'static>(&self) -> Option<Arc<T>> {
        let value = self.session.extensions.get(&TypeId::of::<T>())?;
        Arc::clone(value).downcast().ok()
    }

    /// Finds a path inside the allowed roots; relative ones start at the working directory.
    pub fn locate(&self, path: &str) -> Result<Place, ToolError> {
        self.session.roots.locate(&self.session.working_directory, path)
    }

    /// Tells whether the policy keeps a path from this call: an absolute one, without `.` and `..`. Whoever
    /// is given a directory and looks into it has to ask for each thing found, leave out what is
    /// forbidden, and say that something was left out. The paths a call names were asked about before.
    pub fn forbids(&self, path: &Path) -> bool {
        self.forbidden.has(path)
    }

    /// Tells whether whoever makes the call may use what stands behind tools whose names begin like this: a
    /// server, for one. A tool that gets at it in another way has to ask.
    pub fn reaches(&self, start: &str, category: Category) -> bool {
        self.view.as_ref().is_none_or(|view| view.reaches(start, category))
    }

    /// Says which tools whoever makes the call may use.
    #[must_use]
    pub(crate) fn seeing(self, view: ToolView) -> Self {
        Self { view: Some(view), ..self }
    }

    /// Tells whether there is any path that [`forbids`](Self::forbids) is true for.
    pub fn forbids_any(&self) -> bool {
        !self.forbidden.is_empty()
    }

    /// Returns a context whose call must not see these paths.
    #[must_use]
    pub fn forbidding(self, forbidden: Forbidden) -> Self {
        Self { forbidden: Arc::new(forbidden), ..self }
    }

    /// Says that the call cannot end now: what it started waits for a person. Whatever it returns counts for
    /// nothing, and it is made again when the run is taken up; it has to find what it started then.
    pub fn park(&self, reason: impl Into<String>) {
        // Once is enough.
        drop(self.parked.set(reason.into()));
    }

    /// Asks a person something that the call has to know; of several questions, one after the other. Where there
    /// is nobody, the answer says so at once. The call's time stands still, and the wait ends with the call. It
    /// cannot be put off: a run that waits for other answers by being parked goes on without this one.
    pub async fn inquire(&self, inquiry: Inquiry) -> Answer {
        let Some(inquirer) = &self.inquirer else { return Answer::Nobody };
        let _pause = self.pause();
        tokio::select! {
            // If the run is stopped, that is recorded as the answer.
            biased;
            answer = inquirer.inquire(&self.call, inquiry) => answer,
            () = self.cancelled() => Answer::Nobody,
        }
    }

    /// Decides again about a call that leaves the host it was decided about, as a redirect makes it. A rule
    /// that denies the new host ends the call; where a person has to be asked, one is.
    pub async fn decide_host(&self, host: &Endpoint) -> Result<(), ToolError> {
        // A tool that is called without an executor has nothing to decide about it.
        let Some(inquirer) = &self.inquirer else { return Ok(()) };
        let refused = |why: &str| {
            let told = format!("Access denied: the request is redirected to `{host}`: {why}");
            Err(ToolError::permission(told))
        };
        let reason = match inquirer.decide_host(&self.call, host) {
            Decision::Allow { .. } => return Ok(()),
            Decision::Deny { reason, .. } => return refused(&reason),
            Decision::Ask { reason, .. } => reason,
        };
        let inquiry = Inquiry {
            who: inquirer.tool_name().to_owned(),
            message: format!("The request is redirected to `{host}`. May it go on there?"),
            wanted: Wanted::Form { schema: json!({ "type": "object", "properties": {} }) },
            problem: None,
            reason: reason.clone(),
            calls: Vec::new(),
        };
        match self.inquire(inquiry).await {
            Answer::Yes(_) => Ok(()),
            Answer::No(objection) => {
                refused(objection.message.as_deref().unwrap_or("the user said no"))
            }
            Answer::Change(_) | Answer::Nobody => {
                refused(&format!("{reason}, and nobody can be asked here"))
            }
        }
    }

    /// Says that the call has only a person to wait for, for as long as what is returned lives: its time stands
    /// still.
    pub fn pause(&self) -> Pause {
        self.interlude.begin()
    }

    /// Returns when the call has only a person to wait for.
    pub(crate) fn interlude(&self) -> &Interlude {
        &self.interlude
    }

    /// Lets a call ask through this.
    pub(crate) fn inquiring(self, inquirer: Arc<dyn Inquirer>) -> Self {
        Self { inquirer: Some(inquirer), ..self }
    }

    /// Returns why the call waits for a person, if it said so.
    pub(crate) fn parked(&self) -> Option<&str> {
        self.parked.get().map(String::as_str)
    }

    /// Returns a context that holds a value more, for tools that know its type.
    #[must_use]
    pub fn with_extension<T: Send + Sync + 'static>(&self, value: Arc<T>) -> Self {
        let mut session = Session::clone(&self.session);
        session.extensions.insert(TypeId::of::<T>(), value);
        Self { session: Arc::new(session), ..self.clone() }
    }

    /// Runs blocking work, such as file access, where it holds up nobody.
    ///
    /// Such work cannot be taken back: if the call ends before it, it goes on alone. It then still holds
    /// the call's permit and path locks, so nobody else writes the same path meanwhile, and it should
    /// look at [`cancellation`](Self::cancellation) before its last step.
    pub async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, ToolError> + Send + 'static,
    ) -> Result<T, ToolError> {
        let (turn, token) = (self.turn.clone(), self.cancellation.clone());
        let guarded = move || {
            let _turn = turn;
            if token.is_cancelled() {
                return Err(ToolError::cancelled("the call had ended before its work began"));
            }
            work()
        };
        match tokio::task::spawn_blocking(guarded).await {
            Ok(done) => done,
            Err(error) => Err(match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => {
                    ToolError::unavailable("the runtime is shutting down").caused_by(&error)
                }
            }),
        }
    }

    /// Returns the files that the run knows; none, where the call belongs to no run.
    pub const fn seen_files(&self) -> Option<&SeenFiles> {
        self.seen.as_ref()
    }

    /// Returns a context for the calls of a run that knows these files: the stale-file guard holds for them.
    #[must_use]
    pub fn guarding(self, seen: SeenFiles) -> Self {
        Self { seen: Some(seen), ..self }
    }

    /// Says that a preview shows the change of just this state of a file. If the file has another one when the call
    /// runs, the call has to be refused.
    pub fn pin(&self, path: PathBuf, state: FileState) {
        self.files.pin(path, state);
    }

    /// Returns the state of a file that was shown to the person who approved the call.
    pub fn pinned(&self, path: &Path) -> Option<FileState> {
        self.files.pinned(path)
    }

    /// Says that the run knows a file now: the call read it, wrote it, or was refused with its content. A content
    /// that the call replaced is kept under the name `replaced`.
    pub fn note_file(
        &self,
        path: &Path,
        known: (FileHash, Option<Stamp>, Option<&str>),
        replaced: Option<String>,
    ) {
        if let Some(seen) = &self.seen {
            self.files.note(seen, path, known, replaced);
        }
    }

    /// Says that the call left no file at a path.
    pub fn note_gone(&self, path: &Path, replaced: Option<String>) {
        if let Some(seen) = &self.seen {
            self.files.note_gone(seen, path, replaced);
        }
    }

    /// Returns a context for a call with these files.
    #[must_use]
    pub(crate) fn with_files(self, files: Arc<CallFiles>) -> Self {
        Self { files, ..self }
    }

    /// Takes the files that the call noted.
    pub(crate) fn take_noted(&self) -> Vec<FileSeen> {
        self.files.take_noted()
    }

    /// Returns a context for one run, which stops when its token says so.
    #[must_use]
    pub fn for_run(&self, cancellation: CancellationToken) -> Self {
        Self { cancellation, ..self.clone() }
    }

    /// Returns a context whose calls stay open, as this says, when they have to stop.
    #[must_use]
    pub fn deferring(self, deferral: Deferral) -> Self {
        Self { deferral, ..self }
    }

    /// Tells whether a call that has to stop now stays open.
    pub(crate) fn defers(&self) -> bool {
        self.deferral.is_on()
    }

    /// Returns a context for one call, which stops when this one does.
    #[must_use]
    pub(crate) fn for_call(
        &self,
        call: CallId,
        cancellation: CancellationToken,
        progress: ProgressSender,
        turn: Arc<dyn Any + Send + Sync>,
    ) -> Self {
        let session = Arc::clone(&self.session);
        let forbidden = Arc::clone(&self.forbidden);
        let (parked, interlude) = (Arc::default(), Arc::default());
        let (turn, inquirer, view) = (Some(turn), None, None);
        let deferral = self.deferral.clone();
        let (seen, files) = (self.seen.clone(), Arc::default());
        Self {
            session,
            call,
            cancellation,
            progress,
            turn,
            forbidden,
            parked,
            inquirer,
            interlude,
            view,
            deferral,
            seen,
            files,
        }
    }
}

/// Makes a [`ToolContext`].
#[derive(Clone, Debug)]
#[must_use]
pub struct ContextBuilder {
    session: Session,
    cancellation: CancellationToken,
}

impl ContextBuilder {
    /// Works for this person.
    pub fn user(mut self, user: impl Into<UserId>) -> Self {
        self.session.user = Some(user.into());
        self
    }

    /// Allows these directories.
    pub fn roots(mut self, roots: Roots) -> Self {
        self.session.roots = roots;
        self
    }

    /// Starts relative paths here.
    pub fn working_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.session.working_directory = directory.into();
        self
    }

    /// Gives the session these variables.
    pub fn environment(mut self, environment: SessionEnvironment) -> Self {
        self.session.environment = environment;
        self
    }

    /// Takes the time from here.
    pub fn clock(mut self, clock: Arc<dyn Clock>) -> Self {
        self.session.clock = clock;
        self
    }

    /// Starts processes with this.
    pub fn spawner(mut self, spawner: Arc<dyn Spawner>) -> Self {
        self.session.spawner = spawner;
        self
    }

    /// Remembers unchanged files here.
    pub fn read_cache(mut self, cache: ReadCache) -> Self {
        self.session.read_cache = cache;
        self
    }

    /// Stops everything when this token is cancelled.
    pub fn cancellation(mut self, token: CancellationToken) -> Self {
        self.cancellation = token;
        self
    }

    /// Puts in a value for tools that know its type.
    pub fn extension<T: Send + Sync + 'static>(mut self, value: T) -> Self {
        self.session.extensions.insert(TypeId::of::<T>(), Arc::new(value));
        self
    }

    /// Makes the context.
    pub fn build(self) -> ToolContext {
        ToolContext {
            session: Arc::new(self.session),
            call: CallId::new(""),
            cancellation: self.cancellation,
            progress: ProgressSender::silent(),
            turn: None,
            forbidden: Arc::default(),
            parked: Arc::default(),
            inquirer: None,
            interlude: Arc::default(),
            view: None,
            deferral: Deferral::default(),
            seen: None,
            files: Arc::default(),
        }
    }
}
