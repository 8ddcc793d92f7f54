#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""The smallest agent: it asks a language model what to do, does it in a shell, and tells the model what came of it, until
the model is done. It speaks Anthropic's Messages API; its key is ANTHROPIC_API_KEY, its task the command line. It knows
nothing of vethguard."""
import json
import os
import subprocess
import sys
import urllib.request

URL = "https://api.anthropic.com/v1/messages"
MODEL = os.environ.get("MODEL", "claude-sonnet-4-5")
TOOL = {"name": "shell", "description": "Runs a shell command; its output.",
        "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}}
STEPS_MAX, SECONDS_MAX, SHOWN_MAX = 20, 60, 2000


def ask(messages):
    body = json.dumps({"model": MODEL, "max_tokens": 1024, "tools": [TOOL], "messages": messages}).encode()
    head = {"x-api-key": os.environ.get("ANTHROPIC_API_KEY", ""), "anthropic-version": "2023-06-01",
            "content-type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(URL, body, head), timeout=SECONDS_MAX) as answer:
        return json.load(answer)


def shell(command):
    print("  $ " + command, flush=True)
    try:
        done = subprocess.run(command, shell=True, text=True, timeout=SECONDS_MAX, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        output = done.stdout[:SHOWN_MAX]
    except subprocess.TimeoutExpired:
        output = f"It took longer than {SECONDS_MAX} seconds."
    print("    " + output.strip().replace("\n", "\n    "), flush=True)
    return output or "(no output)"


def main():
    messages = [{"role": "user", "content": " ".join(sys.argv[1:]) or "Say hello."}]
    for _ in range(STEPS_MAX):
        answer = ask(messages)
        messages.append({"role": "assistant", "content": answer["content"]})
        results = []
        for block in answer["content"]:
            if block["type"] == "text":
                print(block["text"], flush=True)
            elif block["type"] == "tool_use":
                results.append({"type": "tool_result", "tool_use_id": block["id"], "content": shell(block["input"]["command"])})
        if not results:
            return
        messages.append({"role": "user", "content": results})


main()
