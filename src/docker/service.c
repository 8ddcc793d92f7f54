/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plugin's socket. Only root, as whom dockerd runs, may use it. dockerd reads an error from the
 * member Err of any answer, whatever its status.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "docker/docker.h"

#define PLUGIN_JSON "application/vnd.docker.plugins.v1.2+json"
#define STATUS_METHOD 405
#define STATUS_FAILED 500

static const char *admit(struct http_handler *handler, const struct http_peer *peer)
{
	(void)handler;
	return peer->uid == 0 ? NULL : "only root may use this socket, which is dockerd's";
}

static void respond(struct http_exchange *exchange, unsigned status, const json_t *answer)
{
	char *text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;

	if (text)
		http_respond(exchange, status, PLUGIN_JSON, "", slice_from_string(text));
	else
		http_respond(
		        exchange, STATUS_FAILED, PLUGIN_JSON, "", SLICE("{\"Err\":\"no memory\"}"));
	free(text);
}

/* NULL: there is none, and fault says why. dockerd sends a call again when the connection breaks,
 * then without its body. */
static json_t *read_body(struct slice body, char fault[DOCKER_FAULT_MAX])
{
	char text[JSON_ERROR_TEXT_LENGTH * 4];
	json_error_t error;
	json_t *value;

	if (body.n == 0) {
		docker_wrong(fault, "the call has no body (the connection was lost and dockerd "
		                    "asked again): try once more");
		return NULL;
	}
	value = json_loadb(body.p, body.n, JSON_REJECT_DUPLICATES, &error);
	if (json_is_object(value))
		return value;
	if (value)
		docker_wrong(fault, "the body has to be a JSON object");
	else
		docker_wrong(fault, "the body is not JSON: line %d, column %d: %s", error.line,
		        error.column,
		        slice_escape_controls(slice_from_string(error.text), text, sizeof(text)));
	json_decref(value);
	return NULL;
}

static void on_request(struct http_handler *handler, struct http_exchange *exchange,
        const struct http_request *request)
{
	struct docker *docker = container_of(handler, struct docker, handler);
	char fault[DOCKER_FAULT_MAX] = "";
	json_t *body, *answer = NULL;
	unsigned status;

	if (!slice_equals(request->method, SLICE("POST"))) {
		http_respond(exchange, STATUS_METHOD, PLUGIN_JSON, "Allow: POST\r\n",
		        SLICE("{\"Err\":\"only POST is allowed\"}"));
		return;
	}
	body = read_body(request->body, fault);
	status = docker_call(docker, request->target, body, fault, &answer);
	json_decref(body);
	respond(exchange, status, answer);
	json_decref(answer);
}

int docker_service_open(struct docker *docker, int fd)
{
	docker->handler = (struct http_handler){admit, on_request};
	docker->server = http_server_new(docker->loop, fd, &docker->handler);
	return docker->server ? 0 : -ENOMEM;
}
