"""A small MCP server: it adds, asks for a name or a password, tells its variables, and writes where it is told. Its first argument says how
many tools it has beside those; with a second one it can be read from as well; the third is what it says of its use. It
multiplies once there is a file `multiplies` beside it."""

import json
import os
import sys

MANY = int(sys.argv[1]) if len(sys.argv) > 1 else 0
READABLE = len(sys.argv) > 2
SAYS = sys.argv[3] if len(sys.argv) > 3 else None


def send(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def tool(name, description, **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": description, "inputSchema": schema}


NUMBER, WORDS = {"type": "number"}, {"type": "string"}
TOOLS = [
    tool("add", "Adds two numbers.", a=NUMBER, b=NUMBER),
    tool("greet", "Asks a person for a name, and greets."),
    tool("unlock", "Asks a person for the key, and repeats it."),
    tool("wonder", "Asks the model of its client something."),
    tool("write", "Writes a word into a file.", path=WORDS, word=WORDS),
    tool("recall", "Tells what a variable holds, and where it is.", variable=WORDS),
] + [tool(f"other_{index}", "Does something else, at some length, with a word.", word=WORDS) for index in range(MANY)]
if os.path.exists(os.path.join(os.path.dirname(os.path.abspath(__file__)), "multiplies")):
    TOOLS.append(tool("multiply", "Multiplies two numbers.", a=NUMBER, b=NUMBER))


def ask(message, schema):
    send({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {"message": message, "requestedSchema": schema}})
    for line in sys.stdin:
        answer = json.loads(line)
        if answer.get("id") == "q":
            return answer.get("result", {})
    return {}


def wonder():
    messages = [{"role": "user", "content": {"type": "text", "text": "What is ${six} times seven?"}}]
    params = {"messages": messages, "systemPrompt": "You are a calculator.", "maxTokens": 50}
    send({"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": params})
    for line in sys.stdin:
        answer = json.loads(line)
        if answer.get("id") == "s":
            return answer.get("result") or answer.get("error")
    return {}


def call(name, arguments):
    sys.stderr.write(f"called {name}\n")
    sys.stderr.flush()
    if name == "multiply":
        return {"content": [{"type": "text", "text": f"{arguments['a'] * arguments['b']:g}"}]}
    if name == "add":
        total = arguments["a"] + arguments["b"]
        return {"content": [{"type": "text", "text": f"{total:g}"}], "structuredContent": {"total": total}}
    if name == "recall":
        words = f"{os.environ.get(arguments['variable'])} in {os.getcwd()}"
        return {"content": [{"type": "text", "text": words}]}
    if name == "wonder":
        return {"content": [{"type": "text", "text": json.dumps(wonder(), sort_keys=True)}]}
    if name == "greet":
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        answer = ask("What is your name?", schema)
        words = json.dumps(answer, sort_keys=True)
    elif name == "unlock":
        schema = {"type": "object", "properties": {"password": {"type": "string"}}, "required": ["password"]}
        answer = ask("What is the password?", schema)
        text = {"type": "text", "text": "heard: " + json.dumps(answer)}
        return {"content": [text], "structuredContent": answer}
    else:
        try:
            with open(arguments["path"], "w") as file:
                file.write(arguments["word"])
            words = "written"
        except OSError as error:
            return {"content": [{"type": "text", "text": f"cannot write: {error.strerror}"}], "isError": True}
    return {"content": [{"type": "text", "text": words}]}


def main():
    sys.stderr.write("calc is here\n")
    sys.stderr.flush()
    for line in sys.stdin:
        request = json.loads(line)
        method, number = request.get("method"), request.get("id")
        if method == "initialize":
            capabilities = {"tools": {}, "resources": {}} if READABLE else {"tools": {}}
            result = {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": {"name": "calc", "version": "1"}}
            if SAYS:
                result["instructions"] = SAYS
        elif method == "tools/list":
            result = {"tools": TOOLS}
        elif method == "resources/list" and READABLE:
            result = {"resources": [{"uri": "book:1", "name": "The book"}]}
        elif method == "resources/read" and READABLE:
            result = {"contents": [{"uri": "book:1", "text": "It was a dark night."}]}
        elif method == "tools/call":
            result = call(request["params"]["name"], request["params"].get("arguments", {}))
        elif number is not None and method:
            send({"jsonrpc": "2.0", "id": number, "error": {"code": -32601, "message": "no such method"}})
            continue
        else:
            continue
        send({"jsonrpc": "2.0", "id": number, "result": result})


main()
