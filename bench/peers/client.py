"""The official Python client, driven by the benchmark.

    python client.py TOOL ARGUMENTS URL
    python client.py TOOL ARGUMENTS PROGRAM [ARGUMENT…]

Each line that is read, `CALLS AT_ONCE`, has that many calls made, and is answered with one line: how long each took,
all together, and how much processor time they used.
"""

import asyncio
import json
import sys
import time

from mcp import Client, StdioServerParameters

TOOL, ARGUMENTS = sys.argv[1], json.loads(sys.argv[2])
COMMAND, *REST = sys.argv[3:]
SERVER = COMMAND if COMMAND.startswith("http") else StdioServerParameters(command=COMMAND, args=REST)


async def measure(client, calls, at_once):
    latencies = []
    left = iter(range(calls))
    cpu, began = time.process_time_ns(), time.perf_counter_ns()

    async def work():
        for _ in left:
            sent = time.perf_counter_ns()
            result = await client.call_tool(TOOL, ARGUMENTS)
            latencies.append(time.perf_counter_ns() - sent)
            if result.is_error or not result.content[0].text:
                raise RuntimeError(str(result))

    await asyncio.gather(*(work() for _ in range(at_once)))
    wall = time.perf_counter_ns() - began
    return {"wall": wall, "cpu": time.process_time_ns() - cpu, "latencies": latencies}


async def main():
    async with Client(SERVER) as client:
        await client.list_tools()
        while line := await asyncio.to_thread(sys.stdin.readline):
            calls, at_once = map(int, line.split())
            print(json.dumps(await measure(client, calls, at_once)), flush=True)


asyncio.run(main())
