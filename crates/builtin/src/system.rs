//! Time and environment.

use std::sync::Arc;
use std::time::Duration;

use convoke_core::{Category, Concurrency, Effects, Kind, Repeat, Resource, ToolError};
use convoke_tool::{FunctionTool, Rendered, Tool, ToolContext, Variable};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How much longer than it sleeps a call of `sleep` may take.
const SLEEP_MARGIN: Duration = Duration::from_secs(5);
/// What a call may take at most, whatever it asks for.
const LONGEST_SLEEP: Duration = Duration::from_mins(10);

/// Returns the tools of this family.
pub fn tools() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(
            FunctionTool::new("current_time", "Tells the current date and time.", current_time)
                .category(Category::System)
                .kind(Kind::Read),
        ),
        Arc::new(
            FunctionTool::new("sleep", "Waits for a number of seconds.", sleep)
                .category(Category::System)
                .kind(Kind::Think)
                .timeout(LONGEST_SLEEP)
                .timeout_from(|sleep: &Sleep| Some(sleep.wanted().saturating_add(SLEEP_MARGIN))),
        ),
        Arc::new(
            FunctionTool::new("get_env", "Reads an environment variable of this session.", get_env)
                .category(Category::System)
                .kind(Kind::Read),
        ),
        Arc::new(
            FunctionTool::new(
                "set_env",
                "Sets an environment variable for the rest of this session. Commands started later \
                 see it; the computer's own settings do not change.",
                set_env,
            )
            .category(Category::System)
            .kind(Kind::Edit)
            .repeat(Repeat::Idempotent)
            .concurrency(Concurrency::Exclusive)
            .effects(|set: &SetEnv| Effects {
                reads: Vec::new(),
                writes: vec![Resource::Variable(set.key.clone())],
            })
            .sets_variable(|set: &SetEnv| (set.key.clone(), set.value.clone())),
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
struct CurrentTime {
    /// A time zone of the IANA database, as `Europe/Berlin`. UTC, or the session's `TZ`, if absent.
    timezone: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Moment {
    /// Milliseconds since 1970-01-01 00:00 UTC.
    timestamp: i64,
    /// Date and time with the offset of the time zone.
    iso: String,
    /// The time zone.
    timezone: String,
}

async fn current_time(
    wanted: CurrentTime,
    context: ToolContext,
) -> Result<Rendered<Moment>, ToolError> {
    let name =
        wanted.timezone.or_else(|| session_timezone(&context)).unwrap_or_else(|| "UTC".into());
    let zone = TimeZone::get(&name).map_err(|error| {
        ToolError::validation([format!(
            "`timezone`: `{name}` is not a known time zone; names look like `Europe/Berlin` or `UTC`"
        )])
        .caused_by(&error)
    })?;
    let timestamp = context.clock().now().as_millis();
    let moment = Timestamp::from_millisecond(timestamp)
        .map_err(|error| ToolError::failed("the clock shows an impossible time").caused_by(&error))?
        .to_zoned(zone);
    let iso = moment.strftime("%Y-%m-%dT%H:%M:%S%.3f%:z").to_string();
    let text = format!("{} ({name})", moment.strftime("%A, %Y-%m-%d %H:%M:%S %:z"));
    Ok(Rendered::new(Moment { timestamp, iso, timezone: name }, text))
}

fn session_timezone(context: &ToolContext) -> Option<String> {
    match context.environment().get("TZ") {
        Variable::Visible(name) if TimeZone::get(&name).is_ok() => Some(name),
        _ => None,
    }
}

#[derive(Deserialize, JsonSchema)]
struct Sleep {
    /// How many seconds; fractions are allowed.
    #[schemars(range(min = 0))]
    duration: f64,
}

impl Sleep {
    fn wanted(&self) -> Duration {
        Duration::try_from_secs_f64(self.duration).unwrap_or(Duration::MAX)
    }
}

#[derive(Serialize, JsonSchema)]
struct Slept {
    /// How many seconds it was.
    slept: f64,
}

async fn sleep(sleep: Sleep, context: ToolContext) -> Result<Rendered<Slept>, ToolError> {
    let started = tokio::time::Instant::now();
    let slept = tokio::select! {
        () = tokio::time::sleep(sleep.wanted()) => sleep.duration,
        () = context.cancelled() => started.elapsed().as_secs_f64(),
    };
    Ok(Rendered::new(Slept { slept }, format!("Slept for {slept} s.")))
}

#[derive(Deserialize, JsonSchema)]
struct GetEnv {
    /// The name of the variable.
    key: String,
}

#[derive(Serialize, JsonSchema)]
struct EnvValue {
    /// Its value; null if it is not set. A credential is shown as `***`.
    value: Option<String>,
}

async fn get_env(wanted: GetEnv, context: ToolContext) -> Result<EnvValue, ToolError> {
    check_name(&wanted.key)?;
    Ok(EnvValue { value: shown(context.environment().get(&wanted.key)) })
}

#[derive(Deserialize, JsonSchema)]
struct SetEnv {
    /// The name of the variable.
    key: String,
    /// Its new value.
    value: String,
}

#[derive(Serialize, JsonSchema)]
struct Previous {
    /// What it was; null if it was not set. A credential is shown as `***`.
    previous: Option<String>,
}

async fn set_env(wanted: SetEnv, context: ToolContext) -> Result<Previous, ToolError> {
    check_name(&wanted.key)?;
    if decides_what_runs(&wanted.key) {
        return Err(ToolError::permission(format!(
            "`{}` decides which programs run; it cannot be set from here",
            wanted.key
        )));
    }
    if wanted.value.contains('\0') {
        return Err(ToolError::validation(["`value` contains a NUL byte"]));
    }
    Ok(Previous { previous: shown(context.environment().set(wanted.key, wanted.value)) })
}

/// Setting one of these would turn a harmless command that is approved later into another one.
fn decides_what_runs(name: &str) -> bool {
    const NAMES: [&str; 19] = [
        "BASHOPTS",
        "BASH_ENV",
        "EDITOR",
        "ENV",
        "IFS",
        "NODE_OPTIONS",
        "PAGER",
        "PATH",
        "PERL5LIB",
        "PERL5OPT",
        "PROMPT_COMMAND",
        "PS4",
        "PYTHONHOME",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "RUBYLIB",
        "RUBYOPT",
        "SHELL",
        "SHELLOPTS",
    ];
    const PREFIXES: [&str; 5] = ["BASH_FUNC_", "CARGO_", "DYLD_", "GIT_", "LD_"];
    let upper = name.to_uppercase();
    NAMES.contains(&upper.as_str()) || PREFIXES.iter().any(|prefix| upper.starts_with(prefix))
}

fn check_name(name: &str) -> Result<(), ToolError> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Err(ToolError::validation([format!(
            "`key`: {name:?} cannot be the name of a variable: it is empty or contains `=` or NUL"
        )]));
    }
    Ok(())
}

fn shown(variable: Variable) -> Option<String> {
    match variable {
        Variable::Unset => None,
        Variable::Visible(value) => Some(value),
        Variable::Masked => Some("***".into()),
    }
}
