// Judges one run of the conformance suite by its checks, and compares it with what is expected.
//
// usage: node judge.mjs SIDE REVISION OUT REQUIREMENTS EXPECTED
//
// A scenario passes when no check failed or warned and at least one check of its own was successful on
// something that was really there. What fails has to be on the list of expected failures, with a reason;
// what is on the list has to fail.

import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join, relative } from "node:path";

const [side, revision, out, requirementsFile, expectedFile] = process.argv.slice(2);

/** Returns the scenarios that count, in order. */
function scored() {
  const names = [];
  let inSide = false;
  for (const line of readFileSync(requirementsFile, "utf8").split("\n")) {
    if (/^\S+:/.test(line)) inSide = line.startsWith(`${side}:`);
    const item = /^ {2}- ([\w./-]+)\s*$/.exec(line);
    if (inSide && item) names.push(item[1]);
  }
  return names;
}

/** Returns scenario → reason of this revision. The file is a map of maps of one-line texts. */
function expected() {
  const reasons = new Map();
  let inRevision = false;
  if (!existsSync(expectedFile)) return reasons;
  for (const line of readFileSync(expectedFile, "utf8").split("\n")) {
    const section = /^"?([\d-]+)"?:\s*(\{\})?\s*$/.exec(line);
    if (section) inRevision = section[1] === revision;
    const entry = /^ {2}([\w./-]+):\s+(\S.*)$/.exec(line);
    if (inRevision && entry) reasons.set(entry[1], entry[2]);
  }
  return reasons;
}

/** Returns scenario → checks of everything that was run. */
function results() {
  const found = new Map();
  const walk = (directory) => {
    for (const entry of readdirSync(directory, { withFileTypes: true })) {
      const path = join(directory, entry.name);
      if (entry.isDirectory()) walk(path);
      if (entry.name !== "checks.json") continue;
      const name = relative(out, directory).replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, "");
      const scenario = side === "server" ? name.replace(/^server-/, "") : name;
      found.set(scenario, JSON.parse(readFileSync(path, "utf8")));
    }
  };
  walk(out);
  return found;
}

/** Tells whether a check was successful on something that was there. */
function tested(scenario, check) {
  if (check.status !== "SUCCESS" || check.id.startsWith("wire-schema-")) return false;
  if (check.details?.untestable) return false;
  // A tool that does not exist answers with an error, and the suite is content with that.
  const refused = check.details?.result?.isError === true;
  return !(refused && scenario.startsWith("tools-call-") && scenario !== "tools-call-error");
}

function judge(scenario, checks) {
  if (checks === undefined) return "was not run";
  const bad = checks.find((check) => ["FAILURE", "WARNING"].includes(check.status));
  if (bad) return `${bad.id}: ${(bad.errorMessage ?? bad.status).split("\n")[0].slice(0, 160)}`;
  if (!checks.some((check) => tested(scenario, check))) return "nothing was tested";
  return undefined;
}

const counting = scored();
const ran = results();
const known = expected();
const names = [...counting, ...[...ran.keys()].filter((name) => !counting.includes(name)).sort()];
const width = Math.max(...names.map((name) => name.length), 8);
const wrong = [];
let passed = 0;

console.log(`\n${side}, revision ${revision}`);
for (const name of names) {
  const checks = ran.get(name);
  const problem = judge(name, checks);
  const good = (checks ?? []).filter((check) => tested(name, check)).length;
  const counts = counting.includes(name);
  let verdict = problem ? `FAILED   ${problem}` : "passed";
  if (problem && known.has(name)) verdict = `expected ${known.get(name)}`;
  if (problem && !known.has(name)) wrong.push(`${name} fails: ${problem}`);
  if (!problem && known.has(name)) wrong.push(`${name} passes: take it off the list`);
  if (!problem && counts) passed += 1;
  const mark = counts ? " " : "*";
  console.log(`${mark} ${name.padEnd(width)}  ${String(good).padStart(3)} checks  ${verdict}`);
}
for (const name of known.keys()) {
  if (!names.includes(name)) wrong.push(`${name} is on the list, but there is no such scenario`);
}
console.log(`${passed} of ${counting.length} that count pass (* does not count)`);
for (const line of wrong) console.log(`WRONG: ${line}`);
process.exitCode = wrong.length === 0 && counting.length > 0 ? 0 : 1;
