/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the control API know of each other: one call from its request to its answer. */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONTROL_CALL_H
#define VETHGUARD_SRC_SUPERVISOR_CONTROL_CALL_H

#include <jansson.h>

#include "vethguard/wire/control_http.h"
#include "supervisor/control/control.h"
#include "supervisor/control/body.h"
#include "supervisor/attach/guest_files.h"

struct control_route;

struct control_call {
	struct control_call *prev, *next;
	struct control *control; /* NULL: it has been freed */
	struct http_exchange *exchange;
	const struct control_route *route;
	struct http_peer peer;
	char name[MESSAGE_NAME_MAX +
	          1];                 /* from the path, or of the sandbox that was made; or empty */
	uint64_t id;                  /* of the sandbox, as far as it is known */
	json_t *body;                 /* owned: an object; NULL where none was sent */
	struct control_attach attach; /* borrows from body */
	struct guest_files *files;    /* owned; NULL: nothing is written */
};

struct control_route {
	const char *method;
	const char *path; /* '*' stands for a sandbox's name */
	const char *operation;
	bool changes;  /* something, or may */
	bool has_body; /* may be sent one, as JSON */
	void (*run)(struct control *control, struct control_call *call);
};

/* routes.c. NULL: none; *allowed is then what other methods the path has ("GET, DELETE"),
 * or "". name: filled in, or empty. */
#define CONTROL_ALLOWED_MAX 64
const struct control_route *control_route_find(struct slice method, struct slice path,
        char name[MESSAGE_NAME_MAX + 1], char allowed[CONTROL_ALLOWED_MAX]);

/* The path that a request of this route has. */
#define CONTROL_TARGET_TEXT (MESSAGE_NAME_MAX + 64)
void control_route_target(
        const struct control_route *route, const char *name, char out[CONTROL_TARGET_TEXT]);

/* control.c: each answers and ends the call. */
struct attachments *control_attachments(struct control *control);
struct control_owner *control_owner(struct control *control);
struct loop *control_loop(struct control *control);
/* What was begun is whole, or is not sent. Ends out. */
void control_answer(
        struct control_call *call, unsigned status, const struct json *j, struct buf *out);
void control_refuse(struct control_call *call, unsigned status, const char *detail);
/* True: the operation went well, and gave all that the answer needs (whole); it is not answered
 * yet. False: the call has ended. */
bool control_succeeded(struct control_call *call, const struct attach_result *result, bool whole);
/* False: the call went on without its server, and has been freed. */
bool control_is_open(struct control_call *call);

/* sandbox_calls.c and daemon_calls.c: what routes run. */
void control_run_attach(struct control *control, struct control_call *call);
void control_run_list(struct control *control, struct control_call *call);
void control_run_show(struct control *control, struct control_call *call);
void control_run_detach(struct control *control, struct control_call *call);
void control_run_env(struct control *control, struct control_call *call);
void control_run_stats(struct control *control, struct control_call *call);
void control_run_reload(struct control *control, struct control_call *call);
void control_run_pause(struct control *control, struct control_call *call);
void control_run_resume(struct control *control, struct control_call *call);
void control_run_reload_all(struct control *control, struct control_call *call);
void control_run_status(struct control *control, struct control_call *call);
void control_run_upgrade(struct control *control, struct control_call *call);
void control_run_roles(struct control *control, struct control_call *call);
void control_run_audit(struct control *control, struct control_call *call);

/* view.c: JSON of what is shown. key NULL inside arrays and at the top. A sandbox is left
 * open: the caller adds members and ends the object. */
void control_open_sandbox(struct json *j, const char *key, const struct attachment_view *view);
void control_put_env(struct json *j, const char *name, const struct attach_env *env);
void control_put_stats(
        struct json *j, const struct attachment_view *view, const struct attach_stats *stats);
void control_put_status(struct json *j, const struct attachments_status *status);
/* fingerprint: of the log's last line, or NULL. */
void control_put_audit(
        struct json *j, const struct attachments_status *status, const char *fingerprint);
void control_put_lines(struct json *j, const char *key, const char *lines);
void control_add_lines(struct json *j, const char *lines); /* to an array that is open */

#endif
