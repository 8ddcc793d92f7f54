# SPDX-License-Identifier: Apache-2.0
"""Agent programs, unchanged, behind a policy of one line each (docs/agents.md has the table)."""
import agents
from agents import Agent, Runs, needs


@needs("claude")
class ClaudeCode(Runs, Agent):
    PRESETS = ("claude-code",)
    KEY = "ANTHROPIC_API_KEY"
    COMMAND = ("claude", "-p", agents.PROMPT)
    API = ("api.anthropic.com", "/v1/messages")
    TELEMETRY = ("claude-code-telemetry",)
    UPDATES = (("raw.githubusercontent.com", "/anthropics/claude-code/"), ("downloads.claude.ai", "/"), ("github.com", "/anthropics/"))
    ASIDE = ("github.com:22",)  # plugins are fetched by ssh first, then by https

    def test_first_start(self):
        """On a fresh home: theme, key, folder; then a prompt."""
        terminal = agents.Terminal(self, "agent-updates", "npm", command=["claude"])
        try:
            terminal.wait_for("Choose the text style")
            terminal.type("\r")
            terminal.wait_for("Do you want to use this API key?")
            terminal.type("\x1b[A")
            terminal.type("\r")
            terminal.wait_for("Press Enter to continue")
            terminal.type("\r")
            terminal.wait_for("trust this folder")
            terminal.type("\x1b[A")
            terminal.type("\r")
            terminal.wait_for("auto mode on")
            terminal.type(agents.PROMPT)
            terminal.type("\r")
            terminal.wait_for("veth is guarded")
        finally:
            terminal.close()
        self.check(terminal.audit, updates=True)


@needs("codex")
class Codex(Runs, Agent):
    PRESETS = ("codex",)
    KEY = "OPENAI_API_KEY"
    COMMAND = ("codex", "exec", "--skip-git-repo-check", agents.PROMPT)
    API = ("api.openai.com", "/v1/responses")
    TELEMETRY = ("codex-telemetry",)
    UPDATES = (("github.com", "/openai/plugins.git/"), ("api.github.com", "/repos/openai/plugins"), ("chatgpt.com", "/backend-api/plugins/"))

    def check_answered(self, done):
        super().check_answered(done)
        self.assertEqual([r["upgrade"] for r in self.seen("request", host="api.openai.com", path="/v1/responses")], ["websocket"],
                         "by the WebSocket, and at the first try")


del Agent, Runs
