# SPDX-License-Identifier: Apache-2.0
"""Which service answers where, in the origin of the agent tests: by host and path. What stands in no row is 404, so an
agent that depends on it fails its test."""
import re

import plays
from plays import Answer

# For the origin's certificate. The names of services that only get telemetry are here as well: what would be let out to
# them has to arrive, to be seen.
NAMES = ("*.anthropic.com", "*.claude.com", "*.claude.ai", "claude.ai", "claude.com", "*.openai.com", "*.chatgpt.com", "chatgpt.com",
         "*.googleapis.com", "*.google.com", "*.github.com", "github.com", "*.githubcopilot.com", "*.individual.githubcopilot.com",
         "*.githubusercontent.com", "*.npmjs.org", "*.opencode.ai", "opencode.ai", "models.dev", "*.models.dev", "*.continue.dev",
         "*.cline.bot", "*.ampcode.com", "ampcode.com", "*.posthog.com", "*.i.posthog.com", "*.sentry.io", "*.ingest.sentry.io", "*.datadoghq.com",
         "*.intake.datadoghq.com", "*.logs.datadoghq.com", "*.statsig.com", "*.statsigapi.net", "*.growthbook.io", "*.aliyuncs.com", "*.dashscope.aliyuncs.com",
         "*.mmstat.com", "*.qwen.ai", "qwen.ai", "*.alicdn.com", "*.pi.dev", "pi.dev", "*.mariozechner.at", "openrouter.ai", "*.vercel.sh",
         "*.applicationinsights.azure.com", "*.in.applicationinsights.azure.com", "*.exp-tas.com", "default.exp-tas.com", "api.eu.amplitude.com",
         "*.amplitude.com", "*.workos.com", "*.visualstudio.com", "*.microsoft.com", "*.featureassets.org", "*.prodregistryv2.org")


def anthropic(method, path, wish):
    if (method, path) == ("POST", "/v1/messages"):
        return plays.anthropic_messages(wish)
    if (method, path) == ("POST", "/v1/messages/count_tokens"):
        return Answer({"input_tokens": 3})
    if (method, path) == ("GET", "/v1/models"):
        return plays.anthropic_models()
    return plays.anthropic_error("not_found_error", "Not found", 404)


def openai(method, path, wish):
    if (method, path) == ("POST", "/v1/responses"):
        return plays.openai_responses(wish)
    if (method, path) == ("POST", "/v1/chat/completions"):
        return plays.openai_chat(wish)
    if (method, path) == ("GET", "/v1/models"):
        return plays.openai_models()
    return Answer({"error": {"message": "no such thing", "type": "invalid_request_error"}}, 404)


def gemini(method, path, wish):
    match = re.fullmatch(r"/v1(?:beta)?/models/[^/:]+:(generateContent|streamGenerateContent|countTokens)", path)
    if method != "POST" or not match:
        return Answer({"error": {"code": 404, "message": "no such thing", "status": "NOT_FOUND"}}, 404)
    if match[1] == "countTokens":
        return Answer({"totalTokens": 3})
    return plays.gemini(wish, match[1] == "streamGenerateContent")


def chatgpt(method, path, wish):
    return Answer({"models": []}) if (method, path) == ("GET", "/backend-api/codex/models") else Answer({"detail": "Not Found"}, 404)


def dashscope(method, path, wish):
    return openai(method, path.removeprefix("/compatible-mode"), wish)


def github(method, path, wish):
    if (method, path) == ("GET", "/copilot_internal/user"):
        return plays.copilot_user()
    return Answer({"message": "Not Found"}, 404)


def copilot(method, path, wish):
    if (method, path) == ("GET", "/models"):
        return plays.copilot_models()
    if (method, path) == ("POST", "/chat/completions"):
        return plays.openai_chat(wish)
    if (method, path) == ("POST", "/responses"):
        return plays.openai_responses(wish)
    return Answer({"message": "Not Found"}, 404)


def amp(method, path, wish):
    name = wish.get("method") if isinstance(wish, dict) else None
    if name == "getUserInfo":
        return Answer({"ok": True, "result": {"id": "user_1", "email": "lab@lab.test", "username": "lab", "features": [], "team": None, "mysteriousMessage": None}})
    return Answer({"ok": True, "result": {}})


WITH_KEY = {"ampcode.com": amp,
            "api.github.com": github, "api.individual.githubcopilot.com": copilot,
            "chatgpt.com": chatgpt,
            "api.anthropic.com": anthropic, "api.openai.com": openai, "dashscope.aliyuncs.com": dashscope, "generativelanguage.googleapis.com": gemini}
# {(host, method, path)}: what is answered to whoever asks.
OPEN = {("api.anthropic.com", "GET", "/api/hello"): {"message": "hello"},
        ("platform.claude.com", "GET", "/v1/oauth/hello"): {"message": "hello"}}


def answer_for(host, method, target, wish, key):
    path = target.partition("?")[0]
    host = host.removesuffix(":443")
    method = "GET" if method == "HEAD" else method
    if (host, method, path) in OPEN:
        return Answer(OPEN[host, method, path])
    service = WITH_KEY.get(host)
    if not service:
        return Answer({"message": "Not Found"}, 404)
    if not key:
        return Answer({"type": "error", "error": {"type": "authentication_error", "message": "who are you?"}}, 401)
    return service(method, path, wish)
