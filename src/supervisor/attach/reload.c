/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reloading: the file is loaded completely, with the rights of the user who named it, and only then
 * is another worker started under it. A reload of all handles a few sandboxes at a time: each has
 * two workers for a moment. A sandbox that is cut off only because its policy did not load when the
 * daemon started is served from then on.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vethguard/base/buf.h"
#include "vethguard/base/log.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/recover/recover.h"

static void refuse_file(attach_done done, void *context, struct attachment *a,
        enum attach_status status, const char *diagnostics)
{
	char text[128];
	const struct attach_result result = {
	        .status = status, .text = text, .diagnostics = diagnostics, .attachment = a};

	snprintf(text, sizeof(text), "%s; %s", attach_load_failure(status),
	        a->sandbox ? "the earlier policy stays in force" : "the sandbox stays cut off");
	log_sandbox(LOG_LEVEL_WARN, a->record.name, "the policy cannot be reloaded: %s",
	        diagnostics ? diagnostics : text);
	done(context, &result);
}

static void replace(struct attachment *a, struct generation *g, attach_done done, void *context)
{
	int rc;

	if (!attachment_wait(a, OPERATION_RELOAD, 0, done, context)) {
		free(a->new_policy); /* otherwise a later takeover would save it as its policy */
		a->new_policy = NULL;
		return;
	}
	rc = sandbox_replace(a->sandbox, g);
	if (rc) {
		const struct attach_result result = {.status = attachment_fault_status(a->sandbox),
		        .text = a->sandbox->failure,
		        .attachment = a};

		free(a->new_policy);
		a->new_policy = NULL;
		attachment_answer(a, OPERATION_RELOAD, 0, &result);
	}
}

/* Reloads that wait for files. */

struct attach_later {
	struct attachment *attachment;
	struct attach_reading *reading;
	char *policy; /* owned; NULL: its current one */
	struct identity caller;
	attach_done done;
	void *context;
};

static void later_free(struct attach_later *l)
{
	l->attachment->later = NULL;
	free(l->policy);
	identity_fini(&l->caller);
	free(l);
}

static void begin(struct attachments *all, const char *name, const char *policy,
        const struct identity *caller, const struct settings_files *files, attach_done done,
        void *context);

static void on_read(
        void *context, struct settings_files *files, enum attach_status status, const char *text)
{
	struct attach_later *l = context;
	struct attachment *a = l->attachment;
	struct attach_later was = *l;

	l->policy = NULL;
	l->caller.groups = NULL;
	later_free(l);
	if (files)
		begin(a->all, a->record.name, was.policy, &was.caller, files, was.done,
		        was.context);
	else
		refuse_file(was.done, was.context, a, status, text);
	settings_files_free(files);
	free(was.policy);
	identity_fini(&was.caller);
}

static void reload_later(struct attachment *a, const char *policy, const struct identity *identity,
        attach_done done, void *context)
{
	struct policy_variable variables[ATTACH_VARS_MAX];
	const struct policy_load_options options =
	        attach_load_options(a->record.observe, &a->record.vars, variables);
	struct attach_later *l = calloc(1, sizeof(*l));
	enum attach_status status = ATTACH_FAILED;
	char text[ATTACH_READ_TEXT_MAX] = "no memory";

	if (l) {
		*l = (struct attach_later){.attachment = a, .done = done, .context = context};
		l->policy = policy ? strdup(policy) : NULL;
		if (identity_copy(&l->caller, identity) == 0 && (l->policy || !policy))
			l->reading = attachments_read(a->all, policy ? policy : a->record.policy,
			        identity, &options, on_read, l, &status, text);
		a->later = l;
	}
	if (l && l->reading)
		return;
	if (l)
		later_free(l);
	attach_refuse(done, context, status, "%s", text);
}

void attachment_refuse_later(struct attachment *a)
{
	const bool stopping = a->all->stopping;
	attach_done done;
	void *context;

	if (!a->later)
		return;
	done = a->later->done;
	context = a->later->context;
	attach_reading_cancel(a->later->reading);
	later_free(a->later);
	attach_refuse(done, context, stopping ? ATTACH_BUSY : ATTACH_CONFLICT, "%s",
	        stopping ? "the daemon is stopping" : "the sandbox is gone");
}

static void reload(struct attachment *a, const char *policy, const struct identity *caller,
        const struct settings_files *files, attach_done done, void *context)
{
	const struct identity own = attach_record_identity(&a->record);
	const struct identity *identity = policy && caller ? caller : &own;
	enum attach_status status;
	struct generation *g;
	char *text;

	if (a->later || (a->sandbox && sandbox_is_changing(a->sandbox))) {
		attach_refuse(done, context, ATTACH_BUSY, "another reload of %s is under way",
		        a->record.name);
		return;
	}
	g = attachment_load(a, policy ? policy : a->record.policy, identity, files, &status, &text);
	if (!g && status == ATTACH_BUSY && files == &settings_no_files) {
		reload_later(a, policy, identity, done, context);
		return;
	}
	if (!g) {
		refuse_file(done, context, a, status, text);
		free(text);
		return;
	}
	if (caller) /* a reload of this sandbox alone, not of all and not by the watch of the files
	             */
		g->revoked = 0;
	g->number = a->record.generation + 1;
	if (!a->sandbox) {
		attachment_recover_again(a, policy, g, done, context);
		generation_put(g);
		return;
	}
	generation_compare(g, a->sandbox->generation);
	a->new_policy = policy ? strdup(policy) : NULL;
	if (policy && !a->new_policy)
		attach_refuse(done, context, ATTACH_FAILED, "no memory");
	else
		replace(a, g, done, context);
	generation_put(g);
}

static void begin(struct attachments *all, const char *name, const char *policy,
        const struct identity *caller, const struct settings_files *files, attach_done done,
        void *context)
{
	struct attachment *a = attachments_find(all, name);
	char path[MESSAGE_PATH_MAX + 1], why[SIGNED_BUNDLE_WHY_MAX];

	if (policy) {
		policy = bundles_resolve(all, policy, path, why);
		if (!policy) {
			attach_refuse(done, context, ATTACH_INVALID, "%s", why);
			return;
		}
	}
	if (!a)
		attach_refuse(done, context, ATTACH_NOT_FOUND, "there is no sandbox %.64s", name);
	else if (all->stopping)
		attach_refuse(done, context, ATTACH_BUSY, "the daemon is stopping");
	else if (attachment_is_left(a))
		attach_refuse(done, context, ATTACH_BUSY, ATTACH_RECOVERING);
	else if (a->detaching) /* only its link may be left */
		attach_refuse(done, context, ATTACH_BUSY, "%s is being detached", name);
	else if (a->record.prepared)
		attach_refuse(done, context, ATTACH_CONFLICT, ATTACH_UNCLAIMED, name);
	else if (!a->sandbox && !a->recoverable)
		attach_refuse(done, context, attachment_trouble(a), "%s", a->trouble);
	else if (a->sandbox && a->sandbox->state == SANDBOX_STARTING)
		attach_refuse(done, context, ATTACH_BUSY, "%s is being attached", name);
	else if (policy && (policy[0] != '/' || strlen(policy) > MESSAGE_PATH_MAX))
		attach_refuse(done, context, ATTACH_INVALID,
		        "the policy's path has to be absolute, of at most %d bytes",
		        MESSAGE_PATH_MAX);
	else if (policy && caller && caller->group_count > IDENTITY_GROUPS_MAX)
		attach_refuse(
		        done, context, ATTACH_INVALID, ATTACH_GROUPS_RULE, IDENTITY_GROUPS_MAX);
	else
		reload(a, policy, caller, files, done, context);
}

void attachments_reload(struct attachments *all, const char *name, const char *policy,
        const struct identity *caller, attach_done done, void *context)
{
	begin(all, name, policy, caller, &settings_no_files, done, context);
}

/* Reloading all. */

#define DIAGNOSTICS_MAX 65536

struct reload_all {
	struct attachments *all;
	attach_done done;
	void *context;
	char (*names)[MESSAGE_NAME_MAX + 1];
	size_t count, next, under_way, reloaded, failed;
	size_t busy;   /* of the failed: worth another try, nothing is wrong */
	bool starting; /* answers that come at once start nothing recursively */
	char first[MESSAGE_NAME_MAX + 1 + SANDBOX_FAILURE_MAX];
	struct buf diagnostics, warnings;
};

/* Returns the collected lines, NUL-terminated; NULL: nothing. */
static const char *text_of(struct buf *b)
{
	return buf_append(b, "", 1) == 0 && b->len > 1 ? (const char *)buf_bytes(b) : NULL;
}

static enum attach_status status_of(const struct reload_all *r)
{
	if (r->failed == 0)
		return ATTACH_OK;
	return r->busy == r->failed ? ATTACH_BUSY : ATTACH_FAILED;
}

static void finish(struct reload_all *r)
{
	struct attach_result result = {.status = status_of(r),
	        .text = r->first,
	        .reloaded = r->reloaded,
	        .failed = r->failed,
	        .diagnostics = text_of(&r->diagnostics),
	        .warnings = text_of(&r->warnings)};

	r->all->reload_all = NULL;
	log_info("%zu policies were reloaded, %zu were not", r->reloaded, r->failed);
	r->done(r->context, &result);
	buf_fini(&r->diagnostics);
	buf_fini(&r->warnings);
	free(r->names);
	free(r);
}

static void go_on(struct reload_all *r);

/* Lines that do not fit are left out. */
static void note(struct reload_all *r, const char *text)
{
	if (text && buf_append(&r->diagnostics, text, strlen(text)) == 0)
		buf_append(&r->diagnostics, "\n", 1);
}

struct warned {
	struct buf *out;
	const char *name;
};

static void warn(const struct warned *w, struct slice text)
{
	const size_t before = w->out->len;

	if (buf_append_slice(w->out, slice_from_string(w->name)) < 0 ||
	        buf_append(w->out, ": ", 2) < 0 || buf_append_slice(w->out, text) < 0 ||
	        buf_append(w->out, "\n", 1) < 0)
		w->out->len = before;
}

static void on_fault(void *context, const char *fault)
{
	warn(context, slice_from_string(fault));
}

/* The same warnings as in the answer to a reload of this sandbox alone. */
static void collect_warnings(struct reload_all *r, struct attachment *a)
{
	struct warned w = {&r->warnings, a->record.name};
	struct attachment_view view;

	attachment_view(a, &view);
	for (const char *line = view.notes; line && *line;) {
		size_t n = strcspn(line, "\n");

		warn(&w, slice_of(line, n));
		line += n + (line[n] == '\n');
	}
	attachment_verify(a, on_fault, &w);
}

static void on_reloaded(void *context, const struct attach_result *result)
{
	struct reload_all *r = context;

	r->under_way--;
	if (result->status == ATTACH_OK || result->status == ATTACH_NOT_FOUND) {
		r->reloaded += result->status == ATTACH_OK;
		if (result->attachment)
			collect_warnings(r, result->attachment);
	} else {
		r->busy += result->status == ATTACH_BUSY;
		if (r->failed++ == 0)
			snprintf(r->first, sizeof(r->first), "%s%s%s",
			        result->attachment ? result->attachment->record.name : "",
			        result->attachment ? ": " : "", result->text);
		note(r, result->diagnostics ? result->diagnostics : result->text);
	}
	if (!r->starting)
		go_on(r);
}

static void go_on(struct reload_all *r)
{
	r->starting = true;
	while (r->next < r->count && r->under_way < ATTACH_RELOADS_MAX) {
		const char *name = r->names[r->next++];
		const struct attachment *a = attachments_find(r->all, name);

		if (!a || a->detaching) /* it serves nothing any more */
			continue;
		r->under_way++;
		attachments_reload(r->all, name, NULL, NULL, on_reloaded, r);
	}
	r->starting = false;
	if (r->under_way == 0 && r->next == r->count)
		finish(r);
}

void attachments_reload_all(struct attachments *all, attach_done done, void *context)
{
	struct attachment *a, *next;
	struct reload_all *r;
	char *objection;

	if (all->recovering) {
		attach_refuse(done, context, ATTACH_BUSY, ATTACH_RECOVERING);
		return;
	}
	if (all->reload_all) {
		attach_refuse(done, context, ATTACH_BUSY, "a reload of all is under way");
		return;
	}
	objection = attachments_config_objection(all, NULL);
	if (objection) {
		const struct attach_result result = {.status = ATTACH_INVALID,
		        .text = "the configuration cannot be used; nothing was reloaded",
		        .diagnostics = objection};

		log_error("%s: %s", result.text, objection);
		done(context, &result);
		free(objection);
		return;
	}
	r = calloc(1, sizeof(*r));
	if (r)
		r->names = calloc(attachments_count(all) + 1, sizeof(*r->names));
	if (!r || !r->names) {
		free(r);
		attach_refuse(done, context, ATTACH_FAILED, "no memory");
		return;
	}
	r->all = all;
	r->done = done;
	r->context = context;
	buf_init(&r->diagnostics, DIAGNOSTICS_MAX);
	buf_init(&r->warnings, DIAGNOSTICS_MAX);
	HASH_ITER(hh, all->by_name, a, next)
	{
		/* What is prepared, and an expired interface, have nothing to reload, and are no
		 * failure. */
		if (!a->detaching && !a->record.prepared &&
		        (a->sandbox || attachment_trouble(a) != ATTACH_CONFLICT))
			memcpy(r->names[r->count++], a->record.name, sizeof(a->record.name));
	}
	all->reload_all = r;
	all->generation++;
	go_on(r);
}
