/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Automatic reloading (watch: true in the configuration): an attached sandbox whose policy has
 * changed on disk is reloaded as on request. A file with a fault changes nothing; the faults are in
 * the daemon's log.
 */
#include <string.h>

#include "vethguard/base/log.h"
#include "supervisor/attach/attachment.h"

static void on_reloaded(void *context, const struct attach_result *result)
{
	(void)context;
	if (result->status == ATTACH_OK && result->attachment)
		log_info("%s: its policy has changed and was reloaded",
		        result->attachment->record.name);
	else if (result->status != ATTACH_OK && result->status != ATTACH_INVALID)
		log_warn("a policy that has changed was not reloaded: %s",
		        result->text ? result->text : "it failed");
}

static void on_changed(void *context, void *owner)
{
	struct attachments *all = context;
	struct attachment *a = owner;

	if (a->detaching || !a->sandbox)
		return;
	if (a->all->held || attachment_is_left(a) || a->later || sandbox_is_changing(a->sandbox) ||
	        a->sandbox->state == SANDBOX_STARTING)
		policy_watch_again(all->policy_watch, a);
	else
		attachments_reload(all, a->record.name, NULL, NULL, on_reloaded, NULL);
}

int attachments_watch_policies(struct attachments *all)
{
	int rc;

	all->policy_watch = policy_watch_new(all->supervisor->loop, on_changed, all, &rc);
	return all->policy_watch ? 0 : rc;
}

void attachment_watch_policy(struct attachment *a)
{
	const struct settings *settings = a->sandbox->generation->settings;
	int rc;

	if (!a->all->policy_watch)
		return;
	rc = policy_watch_set(a->all->policy_watch, a, (const char *const *)settings->files,
	        settings->file_count);
	if (rc)
		log_warn("%s: its policy's files are not watched: %s", a->record.name,
		        strerror(-rc));
}

void attachment_forget_policy(struct attachment *a)
{
	if (a->all->policy_watch)
		policy_watch_forget(a->all->policy_watch, a);
}
