//! A server with a few tools, and the ways to reach it.

use std::sync::{Arc, Once};

use convoke_core::{Kind, ToolError};
use convoke_mcp::serve::{
    CallWatch, Extras, HttpSettings, ServeError, ServeLimits, Service, ToolOffer, serve_http,
    serve_stdio,
};
use convoke_tool::testing::AllowAll;
use convoke_tool::{
    Authorizer, FunctionTool, MemorySink, Recorder, ToolContext, ToolExecutor, ToolRegistry,
    ToolView,
};
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, Implementation,
    ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{NotificationContext, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::StreamableHttpClientTransportConfig;
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::DuplexStream;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// What tests and tools tell each other.
#[derive(Debug)]
pub(crate) struct Stage {
    /// A permit for each call of `wait` or `delegate` that has begun.
    pub(crate) started: Semaphore,
    /// A permit for each of them that was told to stop and did.
    pub(crate) stopped: Semaphore,
    /// Given by a test: `delegate` ends when it takes one.
    pub(crate) go: Semaphore,
}

impl Stage {
    pub(crate) async fn has_started(&self) {
        self.started.acquire().await.unwrap().forget();
    }

    pub(crate) async fn has_stopped(&self) {
        self.stopped.acquire().await.unwrap().forget();
    }
}

#[derive(Deserialize, JsonSchema)]
struct Nothing {}

#[derive(Deserialize, JsonSchema)]
struct Pair {
    left: i64,
    right: i64,
}

#[derive(Deserialize, JsonSchema)]
struct Named {
    name: String,
}

#[derive(Serialize, JsonSchema)]
struct Greeting {
    greeting: String,
}

pub(crate) struct Server {
    pub(crate) offer: Arc<ToolOffer>,
    pub(crate) registry: ToolRegistry,
    pub(crate) stage: Arc<Stage>,
    pub(crate) events: Arc<MemorySink>,
    pub(crate) limits: ServeLimits,
    pub(crate) extras: Option<Arc<dyn Extras>>,
    pub(crate) stop: CancellationToken,
    pub(crate) served: JoinSet<Result<(), ServeError>>,
}

impl Server {
    /// Makes a server whose tools everybody may call.
    pub(crate) fn new() -> Self {
        Self::allowing(AllowAll)
    }

    pub(crate) fn allowing(authorizer: impl Authorizer + 'static) -> Self {
        let stage = Arc::new(Stage {
            started: Semaphore::new(0),
            stopped: Semaphore::new(0),
            go: Semaphore::new(0),
        });
        let registry = registry(&stage);
        let context = ToolContext::builder("test").build();
        let events = Arc::new(MemorySink::default());
        let watch = CallWatch::over(events.clone());
        let recorder = Recorder::new("run", watch.clone(), Arc::clone(context.clock()));
        let executors = ToolExecutor::builder(ToolView::of(registry.clone()), context)
            .authorizer(authorizer)
            .recorder(recorder);
        Self {
            offer: Arc::new(ToolOffer::new(executors, watch)),
            registry,
            stage,
            events,
            limits: ServeLimits::default(),
            extras: None,
            stop: CancellationToken::new(),
            served: JoinSet::new(),
        }
    }

    pub(crate) fn service(&self) -> Service {
        let service = Service::new("under test", "1.2.3", self.offer.clone())
            .title("Under Test")
            .instructions("Add, greet, wait.")
            .limits(self.limits.clone());
        match &self.extras {
            Some(extras) => service.extras(Arc::clone(extras)),
            None => service,
        }
    }

    /// Serves the other end of the returned stream.
    pub(crate) fn streams(&mut self) -> DuplexStream {
        let (ours, theirs) = tokio::io::duplex(64 * 1024);
        let (reader, writer) = tokio::io::split(ours);
        self.served.spawn(serve_stdio(self.service(), reader, writer, self.stop.clone()));
        theirs
    }

    /// Serves on a port of this machine, and returns its address.
    pub(crate) async fn port(&mut self, mut settings: HttpSettings) -> std::net::SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        settings.stop = self.stop.clone();
        self.served.spawn(serve_http(self.service(), listener, settings));
        address
    }

    pub(crate) async fn connect(&mut self, way: Way) -> Client {
        self.connect_with(way, ClientCapabilities::default()).await
    }

    pub(crate) async fn connect_with(
        &mut self,
        way: Way,
        capabilities: ClientCapabilities,
    ) -> Client {
        let (progress, heard) = mpsc::unbounded_channel();
        let (changes, changed) = mpsc::unbounded_channel();
        let own = Implementation::new("client", "1");
        let info = ClientConfig::new(capabilities, own);
        let ears = Ears { info, progress, changes };
        let running = match way {
            Way::OldStreams | Way::NewStreams => {
                let transport = tokio::io::split(self.streams());
                ears.serve_with_lifecycle(transport, way.lifecycle()).await.unwrap()
            }
            Way::OldHttp | Way::NewHttp => {
                let address = self.port(HttpSettings::default()).await;
                let transport = http_client(address, None);
                ears.serve_with_lifecycle(transport, way.lifecycle()).await.unwrap()
            }
        };
        Client { running, heard, changed }
    }
}

/// How a client comes in, and whether it begins with a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    OldStreams,
    NewStreams,
    OldHttp,
    NewHttp,
}

impl Way {
    pub(crate) const ALL: [Self; 4] =
        [Self::OldStreams, Self::NewStreams, Self::OldHttp, Self::NewHttp];

    pub(crate) fn lifecycle(self) -> ClientLifecycleMode {
        match self {
            Self::OldStreams | Self::OldHttp => ClientLifecycleMode::Initialize,
            Self::NewStreams | Self::NewHttp => ClientLifecycleMode::Discover {
                preferred_versions: vec![ProtocolVersion::V_2026_07_28],
            },
        }
    }
}

pub(crate) struct Client {
    pub(crate) running: RunningService<RoleClient, Ears>,
    pub(crate) heard: mpsc::UnboundedReceiver<ProgressNotificationParam>,
    pub(crate) changed: mpsc::UnboundedReceiver<()>,
}

pub(crate) struct Ears {
    info: ClientConfig,
    progress: mpsc::UnboundedSender<ProgressNotificationParam>,
    changes: mpsc::UnboundedSender<()>,
}

impl ClientHandler for Ears {
    fn get_info(&self) -> ClientConfig {
        self.info.clone()
    }

    async fn on_progress(
        &self,
        told: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) {
        self.progress.send(told).unwrap();
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changes.send(()).unwrap();
    }
}

pub(crate) fn http_client(
    address: std::net::SocketAddr,
    token: Option<&str>,
) -> StreamableHttpClientTransport<reqwest::Client> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        rustls::crypto::ring::default_provider().install_default().unwrap();
    });
    let mut config = StreamableHttpClientTransportConfig::with_uri(format!("http://{address}/mcp"));
    config.auth_header = token.map(Into::into);
    StreamableHttpClientTransport::with_client(reqwest::Client::new(), config)
}

pub(crate) fn call(name: &str, arguments: Value) -> CallToolRequestParams {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    CallToolRequestParams::new(name.to_owned()).with_arguments(arguments)
}

fn registry(stage: &Arc<Stage>) -> ToolRegistry {
    let registry = ToolRegistry::new();
    let add = async |pair: Pair, _: ToolContext| {
        pair.left.checked_add(pair.right).ok_or("the sum is too large")
    };
    registry
        .register(
            FunctionTool::new("add", "Adds two numbers.", add)
                .kind(Kind::Think)
                .display_name("Add numbers"),
        )
        .unwrap();
    let greet = async |named: Named, _: ToolContext| {
        Ok::<_, String>(Greeting { greeting: format!("Hello, {}!", named.name) })
    };
    registry.register(FunctionTool::new("greet", "Greets.", greet).kind(Kind::Read)).unwrap();
    let talk = async |_: Nothing, context: ToolContext| {
        for word in ["one", "two", "three"] {
            context.progress().text(format!("{word}\n"));
            tokio::task::yield_now().await;
        }
        Ok::<_, String>("talked")
    };
    registry.register(FunctionTool::new("talk", "Talks.", talk).kind(Kind::Read)).unwrap();
    let shout = async |_: Nothing, _: ToolContext| Ok::<_, String>("loud ".repeat(100_000));
    registry.register(FunctionTool::new("shout", "Shouts.", shout).kind(Kind::Read)).unwrap();
    let remove = async |_: Nothing, _: ToolContext| Ok::<_, String>(());
    registry.register(FunctionTool::new("remove", "Removes.", remove).kind(Kind::Delete)).unwrap();
    for (name, kind) in [("wait", Kind::Read), ("delegate", Kind::Agent)] {
        let stage = Arc::clone(stage);
        let wait = move |_: Nothing, context: ToolContext| {
            let stage = Arc::clone(&stage);
            async move {
                context.progress().text("first\nwaiting\n");
                stage.started.add_permits(1);
                tokio::select! {
                    () = context.cancelled() => {
                        stage.stopped.add_permits(1);
                        Err(ToolError::cancelled("told to"))
                    }
                    went = stage.go.acquire() => {
                        went.unwrap().forget();
                        Ok("went")
                    }
                }
            }
        };
        let tool = FunctionTool::new(name, "Waits until it is told to stop.", wait).kind(kind);
        registry.register(tool).unwrap();
    }
    registry
}
