//! What the sandbox can enforce here, and whether programs run in it.

use convoke::sandbox::{Backend, Confinement, Feature, Network, Preflight};
use convoke::{Programs, Runtime};
use serde_json::json;

use super::Check;

const NAME: &str = "sandbox";

/// How programs of this runtime are started, with everything that could be enforced beside it.
pub(super) fn check(runtime: &Runtime) -> Check {
    let preflight = Preflight::look();
    let features = Backend::ALL
        .map(|backend| json!({ "backend": backend, "features": preflight.features(backend) }));
    let check = match runtime.programs() {
        Programs::NotAllowed => Check::ok(NAME, "programs may not run (policy.kinds.execute)"),
        Programs::Confined(confinement, backend) => {
            let (network, how) = (network(confinement), list(&preflight.features(*backend)));
            Check::ok(NAME, format!("programs are confined, {network}: {how}"))
        }
        programs => Check::warn(NAME, programs.warning().unwrap_or_default())
            .hint("`convoke sandbox run -- COMMAND` tries it out"),
    };
    check.details(json!({ "found": preflight, "backends": features }))
}

fn network(confinement: &Confinement) -> String {
    match &confinement.network {
        Network::None => "without network".to_owned(),
        Network::All => "with network".to_owned(),
        Network::Hosts(hosts) if hosts.is_empty() => "with an empty list of hosts".to_owned(),
        Network::Hosts(hosts) => format!("with {} only", hosts.join(", ")),
    }
}

fn list(features: &[Feature]) -> String {
    let enforced = features.iter().filter(|feature| feature.enforced);
    let parts: Vec<String> =
        enforced.map(|feature| format!("{} ({})", feature.name, feature.how)).collect();
    parts.join(", ")
}
