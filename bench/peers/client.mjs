// The official TypeScript client, driven by the benchmark.
//
//   node client.mjs DIRECTORY TOOL ARGUMENTS URL
//   node client.mjs DIRECTORY TOOL ARGUMENTS PROGRAM [ARGUMENT…]
//
// DIRECTORY is where the packages are installed. Each line that is read, `CALLS AT_ONCE`, has that many calls made,
// and is answered with one line: how long each took, all together, and how much processor time they used.

import { createRequire } from "node:module";
import { createInterface } from "node:readline";
import path from "node:path";

const [directory, tool, text, ...server] = process.argv.slice(2);
const load = createRequire(path.join(path.resolve(directory), "package.json"));
const { Client } = load("@modelcontextprotocol/sdk/client/index.js");

function transport() {
  const [command, ...args] = server;
  if (command.startsWith("http")) {
    const { StreamableHTTPClientTransport } = load("@modelcontextprotocol/sdk/client/streamableHttp.js");
    return new StreamableHTTPClientTransport(new URL(command));
  }
  const { StdioClientTransport } = load("@modelcontextprotocol/sdk/client/stdio.js");
  return new StdioClientTransport({ command, args, stderr: "ignore" });
}

const given = JSON.parse(text);
const client = new Client({ name: "bench", version: "1" });
await client.connect(transport());
await client.listTools();

async function measure(calls, atOnce) {
  const latencies = [];
  let left = calls;
  const cpu = process.cpuUsage();
  const began = process.hrtime.bigint();
  async function work() {
    while (left-- > 0) {
      const sent = process.hrtime.bigint();
      const result = await client.callTool({ name: tool, arguments: given });
      latencies.push(Number(process.hrtime.bigint() - sent));
      if (result.isError || !result.content[0].text) throw new Error(JSON.stringify(result));
    }
  }
  await Promise.all(Array.from({ length: atOnce }, work));
  const wall = Number(process.hrtime.bigint() - began);
  const { user, system } = process.cpuUsage(cpu);
  return { wall, cpu: (user + system) * 1000, latencies };
}

for await (const line of createInterface({ input: process.stdin })) {
  const [calls, atOnce] = line.split(" ").map(Number);
  process.stdout.write(JSON.stringify(await measure(calls, atOnce)) + "\n");
}
await client.close();
