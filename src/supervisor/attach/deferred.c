/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests to attach whose policy a child has to read first. Nothing is made or reserved for them
 * meanwhile: when the files are read, the request begins again, with all of its checks.
 */
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "supervisor/attach/attachment.h"

struct attach_deferred {
	struct attach_deferred *prev, *next;
	struct attachments *all;
	struct attach_request request; /* owned, with all it points to */
	struct attach_reading *reading;
	attach_done done;
	void *context;
};

static void release(const char *text)
{
	free((char *)(uintptr_t)text);
}

static void deferred_free(struct attach_deferred *w)
{
	struct attach_request *r = &w->request;

	release(r->name);
	release(r->interface);
	release(r->netns);
	release(r->policy);
	release(r->like);
	attach_pairs_free(&r->labels);
	attach_pairs_free(&r->vars);
	identity_fini(&r->caller);
	free(w);
}

static bool copy_text(const char **text)
{
	if (!*text)
		return true;
	*text = strdup(*text);
	return *text;
}

static bool copy_pairs(struct attach_pairs *pairs)
{
	const struct attach_pairs from = *pairs;

	return attach_pairs_copy(pairs, &from) == 0;
}

/* Each part is a copy, or empty, whichever copy fails. */
static struct attach_deferred *deferred_new(const struct attach_request *request)
{
	struct attach_deferred *w = calloc(1, sizeof(*w));
	struct attach_request *r;
	bool ok;

	if (!w)
		return NULL;
	r = &w->request;
	*r = *request;
	ok = copy_text(&r->name);
	ok &= copy_text(&r->interface);
	ok &= copy_text(&r->netns);
	ok &= copy_text(&r->policy);
	ok &= copy_text(&r->like);
	ok &= copy_pairs(&r->labels);
	ok &= copy_pairs(&r->vars);
	ok &= identity_copy(&r->caller, &request->caller) == 0;
	if (ok)
		return w;
	deferred_free(w);
	return NULL;
}

static void on_read(
        void *context, struct settings_files *files, enum attach_status status, const char *text)
{
	struct attach_deferred *w = context;
	const struct attach_result result = {
	        .status = status, .text = attach_load_failure(status), .diagnostics = text};

	DL_DELETE(w->all->deferred, w);
	if (files)
		attachments_attach_with(w->all, &w->request, files, w->done, w->context);
	else
		w->done(w->context, &result);
	settings_files_free(files);
	deferred_free(w);
}

void attachments_attach_later(struct attachments *all, const struct attach_request *request,
        attach_done done, void *context)
{
	struct policy_variable variables[ATTACH_VARS_MAX];
	const struct policy_load_options options =
	        attach_load_options(request->observe, &request->vars, variables);
	struct attach_deferred *w = deferred_new(request);
	enum attach_status status = ATTACH_FAILED;
	char text[ATTACH_READ_TEXT_MAX] = "no memory";

	if (w)
		w->reading = attachments_read(all, request->policy, &request->caller, &options,
		        on_read, w, &status, text);
	if (!w || !w->reading) {
		if (w)
			deferred_free(w);
		attach_refuse(done, context, status, "%s", text);
		return;
	}
	w->all = all;
	w->done = done;
	w->context = context;
	DL_APPEND(all->deferred, w);
}

void attachments_refuse_deferred(struct attachments *all, bool answered)
{
	while (all->deferred) {
		struct attach_deferred *w = all->deferred;

		DL_DELETE(all->deferred, w);
		attach_reading_cancel(w->reading);
		if (answered)
			attach_refuse(w->done, w->context, ATTACH_BUSY, "the daemon is stopping");
		deferred_free(w);
	}
}
