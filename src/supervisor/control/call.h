/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the control API share: one call from its request to its response. */
#ifndef VETHGUARD_SRC_SUPERVISOR_CONTROL_CALL_H
#define VETHGUARD_SRC_SUPERVISOR_CONTROL_CALL_H

#include <jansson.h>

#include "vethguard/base/list.h"
#include "vethguard/wire/control_http.h"
#include "supervisor/control/control.h"
#include "supervisor/control/body.h"
#include "supervisor/attach/guest_files.h"

struct control_route;

struct control_call {
	struct list open;        /* in the control's list of open calls */
	struct control *control; /* NULL: it has been freed */
	struct http_exchange *exchange;
	const struct control_route *route;
	struct http_peer peer;
	/* From the path, or of the sandbox that was made; or empty. */
	char name[MESSAGE_NAME_MAX + 1];
	uint64_t id;                        /* id of the sandbox, if known */
	json_t *body;                       /* owned: an object; NULL: none was sent */
	struct control_attach attach;       /* borrows from body */
	struct guest_files *files;          /* owned; NULL: nothing is written */
	char token[SESSION_TOKEN_TEXT + 1]; /* of a session that is being made; wiped afterwards */
};

struct control_route {
	const char *method;
	const char *path; /* '*' stands for a sandbox's name */
	const char *operation;
	bool changes;  /* or may change, something */
	bool has_body; /* may have a JSON body */
	void (*run)(struct control *control, struct control_call *call);
};

/* routes.c. Finds the route. Returns NULL if there is none; *allowed is then the other methods of
 * the path ("GET, DELETE"), or "". name: filled in, or empty. */
#define CONTROL_ALLOWED_MAX 64
const struct control_route *control_route_find(struct slice method, struct slice path,
        char name[MESSAGE_NAME_MAX + 1], char allowed[CONTROL_ALLOWED_MAX]);

/* Writes the path of a request of this route. */
#define CONTROL_TARGET_TEXT (MESSAGE_NAME_MAX + 64)
void control_route_target(
        const struct control_route *route, const char *name, char out[CONTROL_TARGET_TEXT]);

/* control.c. The functions that answer also end the call. */
struct attachments *control_attachments(struct control *control);
struct control_owner *control_owner(struct control *control);
struct loop *control_loop(struct control *control);
/* Sends a complete answer, or an error if j has failed. Ends out. */
void control_answer(
        struct control_call *call, unsigned status, const struct json *j, struct buf *out);
void control_refuse(struct control_call *call, unsigned status, const char *detail);
/* Returns true if the operation succeeded and gave all that the answer needs (whole); the call is
 * not answered yet. Returns false if the call has ended. */
bool control_succeeded(struct control_call *call, const struct attach_result *result, bool whole);
/* Returns false if the server was closed meanwhile: the call has been freed. */
bool control_is_open(struct control_call *call);

/* sandbox_calls.c: returns the identity of the caller. */
struct identity control_identity_of(const struct control_call *call);
/* Fills in view. From now on the call is about this sandbox. */
void control_view_for(
        struct control_call *call, struct attachment *a, struct attachment_view *view);
/* Answers with all about the sandbox, and warnings. files: what was written into it, or NULL. */
void control_answer_created(
        struct control_call *call, struct attachment *a, const struct guest_files_report *files);
/* Adds what the recorder told of a sandbox that has ended. */
void control_put_summary(struct json *j, const struct message_summary *summary);

/* *_calls.c: the run functions of the routes. */
void control_run_attach(struct control *control, struct control_call *call);
void control_run_prepare(struct control *control, struct control_call *call);
void control_run_prepared(struct control *control, struct control_call *call);
void control_run_revoke_token(struct control *control, struct control_call *call);
void control_run_claim(struct control *control, struct control_call *call);
void control_run_release(struct control *control, struct control_call *call);
void control_run_list(struct control *control, struct control_call *call);
void control_run_show(struct control *control, struct control_call *call);
void control_run_detach(struct control *control, struct control_call *call);
void control_run_create(struct control *control, struct control_call *call);
void control_run_sessions(struct control *control, struct control_call *call);
void control_run_session(struct control *control, struct control_call *call);
void control_run_extend(struct control *control, struct control_call *call);
void control_run_certify(struct control *control, struct control_call *call);
void control_run_revoke(struct control *control, struct control_call *call);
void control_run_env(struct control *control, struct control_call *call);
void control_run_stats(struct control *control, struct control_call *call);
void control_run_follow(struct control *control, struct control_call *call);
void control_run_reload(struct control *control, struct control_call *call);
void control_run_pause(struct control *control, struct control_call *call);
void control_run_resume(struct control *control, struct control_call *call);
void control_run_reload_all(struct control *control, struct control_call *call);
void control_run_status(struct control *control, struct control_call *call);
void control_run_upgrade(struct control *control, struct control_call *call);
void control_run_roles(struct control *control, struct control_call *call);
void control_run_audit(struct control *control, struct control_call *call);
void control_run_ca(struct control *control, struct control_call *call);
void control_run_ca_csr(struct control *control, struct control_call *call);
void control_run_ca_install(struct control *control, struct control_call *call);
void control_run_ca_rotate(struct control *control, struct control_call *call);

void control_run_asks(struct control *control, struct control_call *call);
void control_run_approve(struct control *control, struct control_call *call);
void control_run_refuse(struct control *control, struct control_call *call);
void control_run_credentials(struct control *control, struct control_call *call);
void control_run_credential_check(struct control *control, struct control_call *call);
void control_run_credential_rotate(struct control *control, struct control_call *call);
void control_run_credential_revoke(struct control *control, struct control_call *call);

/* view.c, view_env.c, view_stats.c: the JSON of answers. key is NULL inside arrays and at the top.
 * A sandbox is left open: the caller adds members and ends the object. */
void control_open_sandbox(struct json *j, const char *key, const struct attachment_view *view);
/* One that is prepared. */
void control_put_prepared(struct json *j, const char *key, const struct attachment_view *view);
void control_put_env(struct json *j, const char *name, const struct attach_env *env);
void control_put_stats(
        struct json *j, const struct attachment_view *view, const struct attach_stats *stats);
void control_put_status(struct json *j, const struct attachments_status *status);
/* fingerprint: of the log's last line, or NULL. */
void control_put_audit(
        struct json *j, const struct attachments_status *status, const char *fingerprint);
/* view_values.c: write what may be missing; null stands for an empty text, an address without a
 * family, a pid or a time of 0. A time is RFC 3339 in UTC with milliseconds. */
void control_put_text(struct json *j, const char *key, const char *text);
void control_put_slice(struct json *j, const char *key, struct slice text);
void control_put_ip(struct json *j, const char *key, const struct ip *ip);
void control_put_pid(struct json *j, const char *key, pid_t pid);
void control_put_time(struct json *j, const char *key, int64_t ms);
void control_put_lines(struct json *j, const char *key, const char *lines);
void control_add_lines(struct json *j, const char *lines); /* to an open array */

#endif
