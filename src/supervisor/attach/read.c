/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Has a child read a policy on a file system that may stop answering (config/settings.h), while the
 * loop goes on. Afterwards the operation begins again, with the files.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "supervisor/attach/attachment.h"
#include "supervisor/os/helper_child.h"

struct attach_reading {
	struct helper_child *helper;
	void (*done)(void *context, struct settings_files *files, enum attach_status status,
	        const char *text);
	void *context;
};

/* The child's input. */
struct work {
	const char *policy;
	const struct identity *identity;
	const struct policy_load_options *options;
};

static int run(void *context, int report, int output)
{
	const struct work *w = context;

	(void)output;
	return settings_files_read(w->identity, w->policy, w->options, report) == 0 ? 0 : 1;
}

static void say_late(const struct settings_files *files, char text[ATTACH_READ_TEXT_MAX])
{
	const char *path = files ? settings_files_waits_for(files) : NULL;
	char shown[512];

	snprintf(text, ATTACH_READ_TEXT_MAX,
	        "%s: its file system has not answered for %d seconds: repair that mount, or keep "
	        "the "
	        "policy and what it includes on a local one",
	        path ? slice_escape(slice_from_string(path), shown, sizeof(shown)) : "the policy",
	        ATTACH_READ_MS / 1000);
}

static void say_beyond(const char *path, char text[ATTACH_READ_TEXT_MAX])
{
	char shown[512];

	snprintf(text, ATTACH_READ_TEXT_MAX,
	        "%s: with this file the policy is larger than %d MiB, the most for policies of "
	        "which a file may lie on a file system that does not answer: keep its files on a "
	        "local one",
	        slice_escape(slice_from_string(path), shown, sizeof(shown)), SETTINGS_FILES_MIB);
}

static void on_done(void *context, const struct helper_child_result *result)
{
	struct attach_reading *r = context;
	struct settings_files *files = settings_files_open(result->report);
	enum attach_status status = ATTACH_OK;
	char text[ATTACH_READ_TEXT_MAX] = "";

	if (result->late) {
		status = ATTACH_INVALID;
		say_late(files, text);
	} else if (result->status != 0 || !files) {
		status = ATTACH_FAILED;
		snprintf(text, sizeof(text),
		        "the policy cannot be read: there is no memory, or the process that read "
		        "it died");
	} else if (settings_files_beyond(files)) {
		status = ATTACH_INVALID;
		say_beyond(settings_files_beyond(files), text);
	}
	if (status != ATTACH_OK) {
		settings_files_free(files);
		files = NULL;
	}
	r->done(r->context, files, status, text);
	free(r);
}

struct attach_reading *attachments_read(struct attachments *all, const char *policy,
        const struct identity *identity, const struct policy_load_options *options,
        void (*done)(void *context, struct settings_files *files, enum attach_status status,
                const char *text),
        void *context, enum attach_status *status, char text[ATTACH_READ_TEXT_MAX])
{
	struct attach_reading *r = calloc(1, sizeof(*r));
	struct work work = {policy, identity, options};
	const struct helper_child_plan plan = {.run = run,
	        .context = &work,
	        .output = -1,
	        .uid = identity->uid,
	        .ms = ATTACH_READ_MS};
	int rc = -ENOMEM;

	if (r) {
		r->done = done;
		r->context = context;
		rc = helper_child_start(all->supervisor->loop, &plan, on_done, r, &r->helper);
	}
	if (!rc)
		return r;
	*status = rc == -EAGAIN ? ATTACH_BUSY : ATTACH_FAILED;
	snprintf(text, ATTACH_READ_TEXT_MAX, "%s",
	        rc == -EAGAIN ? HELPER_CHILDREN_FULL : "the policy cannot be read: no memory");
	free(r);
	return NULL;
}

void attach_reading_cancel(struct attach_reading *r)
{
	if (!r)
		return;
	helper_child_cancel(r->helper);
	free(r);
}
