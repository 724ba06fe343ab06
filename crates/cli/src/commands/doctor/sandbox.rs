//! What the sandbox can enforce here, and whether programs run in it.

use convoke::sandbox::{Feature, Network, Preflight};
use convoke::{Programs, Runtime};
use serde_json::json;

use super::Check;

const NAME: &str = "sandbox";

/// How programs of this runtime are started, with everything that could be enforced beside it.
pub(super) fn check(runtime: &Runtime) -> Check {
    let preflight = Preflight::look();
    let features = preflight.features();
    let check = match runtime.programs() {
        Programs::NotAllowed => Check::ok(NAME, "programs may not run (policy.kinds.execute)"),
        Programs::Confined(confinement) => {
            let network = match confinement.network {
                Network::None => "without network",
                _ => "with network",
            };
            Check::ok(NAME, format!("programs are confined, {network}: {}", list(&features)))
        }
        programs => Check::warn(NAME, programs.warning().unwrap_or_default())
            .hint("`convoke sandbox run -- COMMAND` tries it out"),
    };
    check.details(json!({ "found": preflight, "features": features }))
}

fn list(features: &[Feature]) -> String {
    let enforced = features.iter().filter(|feature| feature.enforced);
    let parts: Vec<String> =
        enforced.map(|feature| format!("{} ({})", feature.name, feature.how)).collect();
    parts.join(", ")
}
