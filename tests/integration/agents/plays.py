# SPDX-License-Identifier: Apache-2.0
"""The APIs that the origin of the agent tests plays: Anthropic Messages, OpenAI Responses and Chat Completions, Gemini,
GitHub Copilot. Each function gets the parsed body and returns an Answer: JSON, or a list of server-sent events. A model
of these APIs knows one sentence, whatever it is asked."""
import json

TEXT = "The veth is guarded."
WORDS = ["The ", "veth ", "is ", "guarded", "."]


class Answer:
    def __init__(self, value, status=200, kind="application/json"):
        self.status, self.kind = status, kind
        self.body = value if isinstance(value, bytes) else json.dumps(value).encode()


def stream(events):
    """Server-sent events: strings, which are whole events already."""
    return Answer("".join(events).encode(), kind="text/event-stream")


def data(value):
    return "data: " + json.dumps(value) + "\n\n"


def named(value):
    return f"event: {value['type']}\n" + data(value)


# --- Anthropic ---

def anthropic_error(kind, message, status):
    return Answer({"type": "error", "error": {"type": kind, "message": message}}, status)


def anthropic_messages(wish):
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": wish["model"], "content": [], "stop_reason": None,
               "stop_sequence": None, "usage": {"input_tokens": 3, "output_tokens": 1}}
    text = anthropic_text(wish)
    if not wish.get("stream"):
        return Answer({**message, "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"})
    words = WORDS if text == TEXT else [text]
    return stream(map(named, [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": w}} for w in words),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 5}},
        {"type": "message_stop"}]))


def anthropic_text(wish):
    """If the request has a schema (for a session's title), answers with its members."""
    schema = wish.get("output_config", {}).get("format", {}).get("schema") or wish.get("output_format", {}).get("schema")
    return json.dumps({name: TEXT for name in schema.get("properties", {})}) if schema else TEXT


def anthropic_models():
    names = ("claude-opus-4-8", "claude-sonnet-4-6", "claude-haiku-4-5")
    rows = [{"type": "model", "id": n, "display_name": n, "created_at": "2026-01-01T00:00:00Z"} for n in names]
    return Answer({"data": rows, "has_more": False, "first_id": names[0], "last_id": names[-1]})


# --- OpenAI ---

def responses_events(wish):
    """The events of one response, as values: server-sent events and WebSocket messages are made of the same."""
    part = {"type": "output_text", "text": TEXT, "annotations": []}
    item = {"type": "message", "id": "item_1", "role": "assistant", "status": "completed", "content": [part]}
    base = {"id": "resp_1", "object": "response", "created_at": 1, "model": wish.get("model"), "output": []}
    usage = {"input_tokens": 3, "output_tokens": 5, "total_tokens": 8, "input_tokens_details": {"cached_tokens": 0},
             "output_tokens_details": {"reasoning_tokens": 0}}
    place = {"item_id": "item_1", "output_index": 0, "content_index": 0}
    events = [
        {"type": "response.created", "response": {**base, "status": "in_progress"}},
        {"type": "response.output_item.added", "output_index": 0, "item": {**item, "status": "in_progress", "content": []}},
        {"type": "response.content_part.added", **place, "part": {**part, "text": ""}},
        *({"type": "response.output_text.delta", **place, "delta": w} for w in WORDS),
        {"type": "response.output_text.done", **place, "text": TEXT},
        {"type": "response.content_part.done", **place, "part": part},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {**base, "status": "completed", "output": [item], "usage": usage}}]
    return [{**e, "sequence_number": i} for i, e in enumerate(events)]


def openai_responses(wish):
    events = responses_events(wish)
    return stream(map(named, events)) if wish.get("stream") else Answer(events[-1]["response"])


def openai_chat(wish):
    base = {"id": "c1", "created": 1, "model": wish.get("model")}
    usage = {"prompt_tokens": 3, "completion_tokens": 5, "total_tokens": 8}
    if not wish.get("stream"):
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": TEXT}}
        return Answer({**base, "object": "chat.completion", "choices": [choice], "usage": usage})

    def chunk(delta, reason=None, **rest):
        return data({**base, "object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **rest})
    return stream([chunk({"role": "assistant", "content": ""}), *(chunk({"content": w}) for w in WORDS), chunk({}, "stop", usage=usage),
                   "data: [DONE]\n\n"])


def openai_models():
    names = ("gpt-5.5", "gpt-5.4", "gpt-5.3-codex", "gpt-5-mini", "gpt-4.1")
    return Answer({"object": "list", "data": [{"id": n, "object": "model", "created": 1, "owned_by": "openai"} for n in names]})


# --- Gemini ---

def gemini(wish, streamed):
    def piece(text, **rest):
        return {"candidates": [{"content": {"role": "model", "parts": [{"text": text}]}, "index": 0, **rest}], "modelVersion": "gemini-lab",
                "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": 5, "totalTokenCount": 8}, "responseId": "r1"}
    if wish.get("generationConfig", {}).get("responseMimeType") == "application/json":
        schema = wish["generationConfig"].get("responseJsonSchema") or wish["generationConfig"].get("responseSchema") or {}
        text = json.dumps({n: 1 if p.get("type", "").lower() in ("integer", "number") else "flash" for n, p in schema.get("properties", {}).items()})
        return stream([data(piece(text, finishReason="STOP"))]) if streamed else Answer(piece(text, finishReason="STOP"))
    if not streamed:
        return Answer(piece(TEXT, finishReason="STOP"))
    return stream([*(data(piece(w)) for w in WORDS[:-1]), data(piece(WORDS[-1], finishReason="STOP"))])


# --- GitHub Copilot ---

def copilot_user():
    api = "https://api.individual.githubcopilot.com"
    return Answer({"login": "lab", "access_type_sku": "monthly_subscriber", "copilot_plan": "individual", "chat_enabled": True, "assigned_date": None,
                   "can_signup_for_limited": False, "organization_login_list": [], "organization_list": [],
                   "endpoints": {"api": api, "origin-tracker": "https://origin-tracker.individual.githubcopilot.com", "proxy":
                                 "https://proxy.individual.githubcopilot.com", "telemetry": "https://telemetry.individual.githubcopilot.com"}})


def copilot_models():
    def model(name, family, vendor):
        limits = {"max_context_window_tokens": 128000, "max_output_tokens": 16000, "max_prompt_tokens": 100000}
        supports = {"streaming": True, "tool_calls": True, "parallel_tool_calls": True, "vision": False}
        return {"id": name, "name": name, "object": "model", "vendor": vendor, "version": name, "preview": False, "model_picker_enabled": True,
                "policy": {"state": "enabled", "terms": ""}, "supported_endpoints": ["/chat/completions"], "is_chat_default": name == "gpt-4.1",
                "is_chat_fallback": name == "gpt-4.1", "billing": {"is_premium": False, "multiplier": 0},
                "capabilities": {"type": "chat", "family": family, "object": "model_capabilities", "tokenizer": "o200k_base", "limits": limits,
                                 "supports": supports}}
    return Answer({"object": "list", "data": [model("gpt-4.1", "gpt-4.1", "OpenAI"), model("claude-sonnet-4.6", "claude-sonnet-4.6", "Anthropic")]})
