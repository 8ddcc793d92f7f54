# SPDX-License-Identifier: Apache-2.0
"""Agent programs, unchanged, behind a policy of one line each (docs/agents.md has the table)."""
import agents
import support
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

    def test_with_the_api_alone(self):
        """With preset:anthropic the program answers as well, but requests without a name here are refused: the check finds them."""
        env, work = self.fresh()
        done = self.run_vethguard("vethguard: 1\ninclude: [preset:anthropic]\n", self.COMMAND, env=env, cwd=work,
                                  config=support.LAB.path("agents.yaml"), input="", timeout=agents.SECONDS)
        self.check_answered(done)
        with self.assertRaisesRegex(AssertionError, "(?s)event_logging.*nothing is refused but named telemetry"):
            self.check(done.audit)

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


@needs("claude")
class ClaudeCodeToken(Runs, Agent):
    PRESETS = ("claude-code-token",)
    KEY = "CLAUDE_CODE_OAUTH_TOKEN"
    COMMAND = ClaudeCode.COMMAND
    API = ClaudeCode.API
    TELEMETRY = ("claude-telemetry",)
    UPDATES = ClaudeCode.UPDATES


@needs("codex")
class Codex(Runs, Agent):
    PRESETS = ("codex",)
    KEY = "OPENAI_API_KEY"
    COMMAND = ("codex", "exec", "--skip-git-repo-check", agents.PROMPT)
    API = ("api.openai.com", "/v1/responses")
    KEYED = ("chatgpt.com",)
    TELEMETRY = ("codex-telemetry",)
    UPDATES = (("github.com", "/openai/plugins.git/"), ("api.github.com", "/repos/openai/plugins"), ("chatgpt.com", "/backend-api/plugins/"))

    def check_answered(self, done):
        super().check_answered(done)
        self.assertEqual([r["upgrade"] for r in self.seen("request", host="api.openai.com", path="/v1/responses")], ["websocket"],
                         "by the WebSocket, and at the first try")


@needs("gemini")
class GeminiCli(Runs, Agent):
    PRESETS = ("gemini-cli",)
    KEY = "GEMINI_API_KEY"
    ENV = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
    COMMAND = ("gemini", "-p", agents.PROMPT)
    API = ("generativelanguage.googleapis.com", "/v1beta/models/")
    TELEMETRY = ("gemini-cli-telemetry",)


@needs("opencode")
class Opencode(Runs, Agent):
    PRESETS = ("opencode", "anthropic")
    KEY = "ANTHROPIC_API_KEY"
    COMMAND = ("opencode", "run", agents.PROMPT)
    API = ("api.anthropic.com", "/v1/messages")
    UPDATES = (("registry.npmjs.org", "/@opencode-ai%2Fplugin"),)


@needs("qwen")
class QwenCode(Runs, Agent):
    PRESETS = ("qwen-code",)
    KEY = "DASHSCOPE_API_KEY"
    ENV = {"OPENAI_MODEL": "qwen3-coder-plus"}
    COMMAND = ("qwen", "--auth-type", "openai", "-p", agents.PROMPT)
    API = ("dashscope.aliyuncs.com", "/compatible-mode/v1/chat/completions")
    TELEMETRY = ("qwen-code-telemetry",)


@needs("cline")
class Cline(Runs, Agent):
    PRESETS = ("cline", "anthropic")
    KEY = "ANTHROPIC_API_KEY"
    COMMAND = ("sh", "-c", f'cline -P anthropic -k "$ANTHROPIC_API_KEY" -m claude-sonnet-4-6 "{agents.PROMPT}"')
    API = ("api.anthropic.com", "/v1/messages")
    TELEMETRY = ("cline-telemetry",)


@needs("cn")
class Continue(Runs, Agent):
    PRESETS = ("anthropic",)
    KEY = "ANTHROPIC_API_KEY"
    COMMAND = ("cn", "-p", agents.PROMPT)
    API = ("api.anthropic.com", "/v1/messages")
    UPDATES = (("api.continue.dev", "/cn/info"),)


@needs("copilot")
class Copilot(Runs, Agent):
    PRESETS = ("copilot",)
    KEY = "COPILOT_GITHUB_TOKEN"
    COMMAND = ("copilot", "-p", agents.PROMPT)
    API = ("api.individual.githubcopilot.com", "/chat/completions")
    KEYED = ("api.github.com",)
    TELEMETRY = ("copilot-telemetry",)


@needs("pi")
class Pi(Runs, Agent):
    PRESETS = ("pi", "anthropic")
    KEY = "ANTHROPIC_API_KEY"
    COMMAND = ("pi", "-p", agents.PROMPT)
    API = ("api.anthropic.com", "/v1/messages")
    TELEMETRY = ("pi-telemetry",)

    def test_first_start(self):
        terminal = agents.Terminal(self, "agent-updates", "npm", command=["pi"])
        try:
            terminal.wait_for("(auto)")
            terminal.type(agents.PROMPT)
            terminal.type("\r")
            terminal.wait_for("veth is guarded")
        finally:
            terminal.close()
        self.check(terminal.audit, updates=True)


del Agent, Runs
