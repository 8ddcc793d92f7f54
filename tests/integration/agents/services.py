# SPDX-License-Identifier: Apache-2.0
"""Which service answers where, in the origin of the agent tests: by host and path. What stands in no row is 404, so an
agent that depends on it fails its test."""
import re

import plays
from plays import Answer

# For the origin's certificate. The names of services that only get telemetry are here as well: what would be let out to
# them has to arrive, to be seen.
NAMES = ("*.anthropic.com", "*.claude.com", "*.claude.ai", "*.openai.com", "chatgpt.com", "*.chatgpt.com", "*.googleapis.com", "github.com",
         "*.github.com", "*.githubusercontent.com", "*.githubcopilot.com", "*.individual.githubcopilot.com", "*.npmjs.org", "*.opencode.ai",
         "*.aliyuncs.com", "*.rum.aliyuncs.com", "*.cline.bot", "*.continue.dev", "pi.dev")


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


WITH_KEY = {"api.anthropic.com": anthropic, "api.openai.com": openai, "chatgpt.com": chatgpt, "generativelanguage.googleapis.com": gemini,
            "dashscope.aliyuncs.com": dashscope, "api.github.com": github, "api.individual.githubcopilot.com": copilot}
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
