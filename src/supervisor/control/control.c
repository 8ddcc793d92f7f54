/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A request is checked in a fixed order, the cheapest check first: path and method, content type,
 * JSON, members; then the operation runs. A call lives until its answer; if the server is closed
 * before, the call goes on, and its result is dropped.
 */
#include <grp.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/base/log.h"
#include "vethguard/base/secret.h"
#include "supervisor/control/admission.h"
#include "supervisor/control/call.h"

#define WORD_MAX 256

struct control {
	struct http_handler handler;
	struct http_server *server;
	struct loop *loop;
	struct attachments *attachments;
	struct control_owner *owner;
	struct admission admission;
	bool held;
	struct list calls; /* those that are open */
};

struct attachments *control_attachments(struct control *control)
{
	return control->attachments;
}

struct control_owner *control_owner(struct control *control)
{
	return control->owner;
}

struct loop *control_loop(struct control *control)
{
	return control->loop;
}

/* The end of a call. */

static void call_free(struct control_call *call)
{
	list_remove(&call->open);
	json_decref(call->body);
	guest_files_free(call->files);
	secret_wipe(call->token, sizeof(call->token));
	free(call);
}

/* For the audit log. */
static void tell(struct control_call *call, unsigned status, const char *detail)
{
	struct control *control = call->control;
	char target[CONTROL_TARGET_TEXT];
	struct control_record record = {.peer = call->peer,
	        .operation = call->route->operation,
	        .method = call->route->method,
	        .target = target,
	        .sandbox = call->name,
	        .sandbox_id = call->id,
	        .looks = !call->route->changes,
	        .status = status,
	        .detail = detail};
	char escaped[CONTROL_DETAIL_MAX];

	control_route_target(call->route, call->name, target);
	if (call->route->changes)
		log_info("%s %s by uid %u (pid %d): %u%s%s", record.operation, record.sandbox,
		        (unsigned)record.peer.uid, (int)record.peer.pid, status, *detail ? " " : "",
		        slice_escape_controls(slice_from_string(detail), escaped, sizeof(escaped)));
	control->owner->called(control->owner, &record);
}

bool control_is_open(struct control_call *call)
{
	if (call->control)
		return true;
	call_free(call);
	return false;
}

static void finish(struct control_call *call, unsigned status, const char *type, const char *fields,
        struct slice body)
{
	http_respond(call->exchange, status, type, fields, body);
	call_free(call);
}

void control_add_lines(struct json *j, const char *lines)
{
	while (lines && *lines) {
		size_t n = strcspn(lines, "\n");

		if (n > 0)
			json_put_string(j, NULL, slice_of(lines, n), 0);
		lines += n + (lines[n] == '\n');
	}
}

void control_put_lines(struct json *j, const char *key, const char *lines)
{
	json_put_array(j, key);
	control_add_lines(j, lines);
	json_put_end_array(j);
}

static void refuse(struct control_call *call, unsigned status, const char *detail,
        const char *diagnostics, const char *fields)
{
	struct json j;
	struct buf body;

	if (call->route) /* otherwise no_route() has reported it */
		tell(call, status, detail);
	buf_init(&body, CONTROL_ANSWER_MAX);
	control_problem_begin(&j, &body, status, slice_from_string(detail));
	if (diagnostics)
		control_put_lines(&j, "diagnostics", diagnostics);
	json_put_end_object(&j);
	finish(call, status, CONTROL_PROBLEM, fields, buf_slice(&body));
	buf_fini(&body);
}

static void refuse_with(
        struct control_call *call, unsigned status, const char *detail, const char *diagnostics)
{
	refuse(call, status, detail, diagnostics, status == 503 ? "Retry-After: 1\r\n" : "");
}

void control_refuse(struct control_call *call, unsigned status, const char *detail)
{
	refuse_with(call, status, detail, NULL);
}

void control_answer(
        struct control_call *call, unsigned status, const struct json *j, struct buf *out)
{
	if (j->failed) {
		control_refuse(call, 500, "the daemon has no memory for the answer");
	} else {
		tell(call, status, "");
		finish(call, status, CONTROL_JSON, "", buf_slice(out));
	}
	buf_fini(out);
}

bool control_succeeded(struct control_call *call, const struct attach_result *result, bool whole)
{
	static const unsigned statuses[] = {
	        [ATTACH_OK] = 500,
	        [ATTACH_INVALID] = 422,
	        [ATTACH_NOT_FOUND] = 404,
	        [ATTACH_CONFLICT] = 409,
	        [ATTACH_BUSY] = 503,
	        [ATTACH_FAILED] = 500,
	        [ATTACH_SOURCE] = 502,
	};

	if (!control_is_open(call))
		return false;
	if (result->status == ATTACH_OK && whole)
		return true;
	refuse_with(call, statuses[result->status], result->text, result->diagnostics);
	return false;
}

/* The beginning of a request. */

/* True for application/json, with or without parameters (RFC 9110 section 8.3.1). */
static bool is_json(struct slice type)
{
	ptrdiff_t semicolon = slice_find_byte(type, ';');

	if (semicolon >= 0)
		type.n = (size_t)semicolon;
	return slice_equals_ignoring_case(slice_trim(type), SLICE(CONTROL_JSON));
}

/* Returns false if the call is answered. */
static bool read_body(struct control_call *call, const struct http_request *request)
{
	char detail[CONTROL_DETAIL_MAX], text[JSON_ERROR_TEXT_LENGTH * 4];
	json_error_t error;

	if (request->body.n == 0)
		return true;
	if (!call->route->has_body) {
		control_refuse(call, 400, "this request takes no body");
		return false;
	}
	if (!is_json(request->content_type)) {
		control_refuse(call, 415,
		        "the body has to be JSON, and say so: Content-Type: application/json (curl "
		        "--json does)");
		return false;
	}
	call->body = json_loadb(request->body.p, request->body.n, JSON_REJECT_DUPLICATES, &error);
	if (json_is_object(call->body))
		return true;
	if (call->body)
		snprintf(detail, sizeof(detail), "the body has to be a JSON object");
	else
		snprintf(detail, sizeof(detail), "the body is not JSON: line %d, column %d: %s",
		        error.line, error.column,
		        slice_escape_controls(slice_from_string(error.text), text, sizeof(text)));
	control_refuse(call, 400, detail);
	return false;
}

static void no_route(
        struct control_call *call, const struct http_request *request, const char *allowed)
{
	char method[WORD_MAX], path[WORD_MAX], detail[CONTROL_DETAIL_MAX],
	        fields[CONTROL_ALLOWED_MAX + 16] = "";
	struct control_record record = {.peer = call->peer,
	        .operation = "",
	        .method = slice_escape(request->method, method, sizeof(method)),
	        .target = slice_escape(request->target, path, sizeof(path)),
	        .sandbox = "",
	        .looks = true,
	        .status = *allowed ? 405 : 404,
	        .detail = detail};

	if (*allowed) {
		snprintf(detail, sizeof(detail), "%s is not for %s, which takes %s", method, path,
		        allowed);
		snprintf(fields, sizeof(fields), "Allow: %s\r\n", allowed);
	} else {
		snprintf(detail, sizeof(detail), "there is no %s in this API%s", path,
		        slice_find_byte(request->target, '?') >= 0 ? "; it takes no query" : "");
	}
	call->control->owner->called(call->control->owner, &record);
	refuse(call, record.status, detail, NULL, fields);
}

static void on_request(struct http_handler *handler, struct http_exchange *exchange,
        const struct http_request *request)
{
	struct control *control = container_of(handler, struct control, handler);
	struct control_call *call = calloc(1, sizeof(*call));
	char allowed[CONTROL_ALLOWED_MAX];

	if (!call) {
		http_respond_problem(exchange, 503, "no memory");
		return;
	}
	call->control = control;
	call->exchange = exchange;
	call->peer = request->peer;
	list_append(&control->calls, &call->open);
	call->route = control_route_find(request->method, request->target, call->name, allowed);
	if (!call->route)
		no_route(call, request, allowed);
	else if (control->held)
		control_refuse(call, 503, "this daemon hands over to another one: connect again");
	else if (read_body(call, request))
		call->route->run(control, call);
}

/* Admission. */

static const char *admit(struct http_handler *handler, const struct http_peer *peer)
{
	struct control *control = container_of(handler, struct control, handler);

	return admission_objection(&control->admission, peer);
}

gid_t control_group(void)
{
	struct group *group = getgrnam(CONTROL_GROUP);

	return group ? group->gr_gid : (gid_t)-1;
}

struct control *control_new(struct loop *loop, int fd, struct attachments *attachments,
        struct control_owner *owner, gid_t group)
{
	struct control *control = calloc(1, sizeof(*control));

	if (!control)
		return NULL;
	*control = (struct control){.handler = {admit, on_request},
	        .loop = loop,
	        .attachments = attachments,
	        .owner = owner};
	list_init(&control->calls);
	if (admission_open(&control->admission, loop, owner, group) == 0)
		control->server = http_server_new(loop, fd, &control->handler);
	if (control->server)
		return control;
	admission_close(&control->admission);
	free(control);
	return NULL;
}

int control_hold(struct control *control, bool hold)
{
	control->held = hold;
	return http_server_hold(control->server, hold);
}

/* The operations hold pointers to open calls: each call leaves the list, and is freed when its
 * operation ends. Calls whose files are being written belong to this module and are freed now. */
void control_free(struct control *control)
{
	struct control_call *call;

	if (!control)
		return;
	while (!list_is_empty(&control->calls)) {
		call = container_of(control->calls.next, struct control_call, open);
		call->control = NULL;
		if (call->files)
			call_free(call); /* no callback follows */
		else
			list_remove(&call->open);
	}
	http_server_free(control->server);
	admission_close(&control->admission);
	free(control);
}
