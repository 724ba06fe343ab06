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
    told(runtime.programs(), &preflight)
        .details(json!({ "found": preflight, "backends": features }))
}

fn told(programs: &Programs, preflight: &Preflight) -> Check {
    match programs {
        Programs::NotAllowed => Check::ok(NAME, "programs may not run (policy.kinds.execute)"),
        Programs::Confined(confinement, backend) | Programs::Unlimited(confinement, backend, _) => {
            let message =
                format!("programs are confined by {}, {}", name(*backend), network(confinement));
            let worth_a_look = [programs.warning(), programs.closed()];
            let check = if worth_a_look.iter().all(Option::is_none) {
                Check::ok(NAME, message)
            } else {
                worth_a_look.into_iter().flatten().fold(Check::warn(NAME, message), Check::note)
            };
            let check = check.note(writes(confinement, *backend));
            let features = preflight.features(*backend);
            enforced(&features).into_iter().chain(missing(&features)).fold(check, Check::note)
        }
        programs => Check::warn(NAME, programs.warning().unwrap_or_default())
            .hint("`convoke sandbox run -- COMMAND` tries it out"),
    }
}

const fn name(backend: Backend) -> &'static str {
    match backend {
        Backend::Landlock => "Landlock",
        Backend::Bubblewrap => "bubblewrap",
    }
}

fn network(confinement: &Confinement) -> String {
    match &confinement.network {
        Network::None => "without network".to_owned(),
        Network::All => "with network".to_owned(),
        Network::Hosts(hosts) if hosts.is_empty() => "with an empty list of hosts".to_owned(),
        Network::Hosts(hosts) => format!("with {} only", hosts.join(", ")),
    }
}

/// Says where programs may write.
fn writes(confinement: &Confinement, backend: Backend) -> String {
    let closed = confinement.closed(backend);
    let open =
        confinement.scratch.iter().filter(|root| closed.iter().all(|(path, _)| path != root));
    let shared: Vec<String> = open.map(|path| path.display().to_string()).collect();
    let roots: Vec<String> =
        confinement.write.iter().map(|path| path.display().to_string()).collect();
    let below = if roots.is_empty() { "nothing".to_owned() } else { roots.join(", ") };
    let shared = if shared.is_empty() { String::new() } else { shared.join(", ") + " and " };
    format!("they write below {below}; also in {shared}a fresh TMPDIR of their own")
}

/// Says what is enforced, by each that enforces something.
fn enforced(features: &[Feature]) -> Vec<String> {
    let mut lines: Vec<(&str, Vec<&str>)> = Vec::new();
    for feature in features.iter().filter(|feature| feature.enforced) {
        match lines.iter_mut().find(|(how, _)| *how == feature.how) {
            Some((_, names)) => names.push(feature.name),
            None => lines.push((&feature.how, vec![feature.name])),
        }
    }
    lines.iter().map(|(how, names)| format!("{how}: {}", names.join(", "))).collect()
}

/// Says what could be asked for and would be refused, with the reason.
fn missing(features: &[Feature]) -> Vec<String> {
    let missing = features.iter().filter(|feature| !feature.enforced);
    missing.map(|feature| format!("not here: {} ({})", feature.name, feature.how)).collect()
}

#[cfg(test)]
mod tests {
    use convoke::sandbox::Tried;

    use super::*;
    use crate::output::{Output, Stream, columns};

    fn shown(width: usize, hidden: &str) -> String {
        let preflight = Preflight {
            landlock: 7,
            seccomp: true,
            children: true,
            own_network: Tried::Works,
            bubblewrap: Tried::Works,
            group: Tried::Works,
            group_memory: Tried::Fails("no controller".to_owned()),
            group_processes: Tried::Fails("no controller".to_owned()),
        };
        let confinement = Confinement::for_commands(["/home/me/work".into()], "/tmp".into(), None);
        let programs = Programs::Confined(confinement.hide(hidden), Backend::Landlock);
        let output = Output::of(Stream::on_terminal(width), Stream::in_memory());
        super::super::print(&[told(&programs, &preflight)], &output);
        let plain = output.out.contents();
        ["\u{1b}[1m", "\u{1b}[2m", "\u{1b}[0m", "\u{1b}[32m", "\u{1b}[33m"]
            .iter()
            .fold(plain, |text, code| text.replace(code, ""))
    }

    #[test]
    fn its_lines_fit_narrow_and_wide_terminals() {
        for width in [60, 100] {
            for hidden in ["/elsewhere", "/tmp/state"] {
                let text = shown(width, hidden);
                assert!(text.lines().all(|line| columns(line) <= width), "{width}:\n{text}");
            }
        }
        insta::assert_snapshot!(shown(60, "/elsewhere"), @r"
        ok  sandbox  programs are confined by Landlock, without
                     network
                     they write below /home/me/work; also in /tmp,
                     /dev/shm and a fresh TMPDIR of their own
                     Landlock 7: files, signals
                     seccomp: no network, no local sockets
                     a network of its own, with a proxy: allowed
                     hosts only
                     the guard: number of processes, ends with us
                     a control group: processor time of all together
                     not here: memory of all processes together (no
                     controller)

        Everything is in order.
        ");
        insta::assert_snapshot!(shown(100, "/tmp/state"), @r"
        warn  sandbox  programs are confined by Landlock, without network
                       programs cannot write in `/tmp`, since `/tmp/state` lies there and is hidden; they
                       have another directory for temporary files (TMPDIR)
                       they write below /home/me/work; also in /dev/shm and a fresh TMPDIR of their own
                       Landlock 7: files, signals
                       seccomp: no network, no local sockets
                       a network of its own, with a proxy: allowed hosts only
                       the guard: number of processes, ends with us
                       a control group: processor time of all together
                       not here: memory of all processes together (no controller)

        Everything works; worth a look: 1.
        ");
    }
}
