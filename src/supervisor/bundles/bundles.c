/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The list of signed bundles. When the configuration is read again, each bundle is opened anew from
 * what was kept of it, since the files of its keys may have changed.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"
#include "supervisor/attach/attachment.h"

static void tell_expired(struct bundle *b)
{
	if (b->told_expired || !b->active ||
	        !signed_bundle_has_expired(b->active, clock_real_ms() / 1000))
		return;
	b->told_expired = true;
	log_error("bundle %s (serial %llu) has expired: no sandbox begins with its policies until "
	          "a newer one is published",
	        b->config.name, (unsigned long long)b->active->serial);
}

static void on_look(struct loop_timer *timer)
{
	struct attachments *all = container_of(timer, struct attachments, bundles.look);
	struct bundles *bundles = &all->bundles;

	loop_timer_set(timer, BUNDLES_LOOK_MS);
	if (all->held || all->stopping || all->recovering)
		return;
	for (size_t i = 0; i < bundles->count; i++) {
		bundle_look(bundles->items[i], false);
		tell_expired(bundles->items[i]);
	}
	bundles_reload_some(all);
}

int bundles_configure(struct attachments *all, const struct config *config)
{
	struct bundles *bundles = &all->bundles;
	struct config_bundle *copy = calloc(config->bundle_count + 1, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	if (config->bundle_count)
		memcpy(copy, config->bundles, config->bundle_count * sizeof(*copy));
	free(bundles->configs);
	bundles->configs = copy;
	bundles->config_count = config->bundle_count;
	if (bundles->path[0])
		bundles_load(all);
	return 0;
}

static struct bundle *make(struct attachments *all, const struct config_bundle *c)
{
	struct bundle *b = calloc(1, sizeof(*b));

	if (!b) {
		log_error("bundle %s: no memory", c->name);
		return NULL;
	}
	b->all = all;
	b->config = *c;
	b->store.dir = -1;
	bundle_open(b);
	return b;
}

/* Keeps what is known of a bundle that is in force before and after a reload of the configuration.
 */
static void carry_over(struct bundle *b, const struct bundle *before)
{
	if (strcmp(b->config.name, before->config.name) != 0 || !b->active || !before->active ||
	        memcmp(b->active->digest, before->active->digest, sizeof(b->active->digest)) != 0)
		return;
	b->taken_ms = before->taken_ms;
	if (strcmp(b->config.source, before->config.source) != 0)
		return;
	b->looked_ms = before->looked_ms;
	memcpy(b->etag, before->etag, sizeof(b->etag));
}

void bundles_load(struct attachments *all)
{
	struct bundles *bundles = &all->bundles;
	struct bundle *before[CONFIG_BUNDLES_MAX];
	const size_t count = bundles->count;

	memcpy(before, bundles->items, sizeof(before));
	bundles->count = 0;
	for (size_t i = 0; i < bundles->config_count; i++) {
		struct bundle *b = make(all, &bundles->configs[i]);

		if (b)
			bundles->items[bundles->count++] = b;
		for (size_t k = 0; b && k < count; k++)
			carry_over(b, before[k]);
	}
	for (size_t i = 0; i < count; i++)
		bundle_free(before[i]);
}

void bundles_poll(struct attachments *all)
{
	struct bundles *bundles = &all->bundles;

	if (bundles->polls)
		return;
	if (loop_timer_open(all->supervisor->loop, &bundles->look, on_look) != 0) {
		log_error("bundles: no memory");
		return;
	}
	bundles->polls = true;
	bundles_revoke(all);
	loop_timer_set(&bundles->look, 0);
}

void bundles_look_now(struct attachments *all)
{
	struct bundles *bundles = &all->bundles;

	if (!bundles->polls || all->held)
		return;
	for (size_t i = 0; i < bundles->count; i++)
		bundle_look(bundles->items[i], true);
	bundles_revoke(all);
}

void bundles_close(struct attachments *all)
{
	struct bundles *bundles = &all->bundles;

	loop_timer_close(&bundles->look);
	bundles->polls = false;
	while (bundles->count)
		bundle_free(bundles->items[--bundles->count]);
	free(bundles->configs);
	bundles->configs = NULL;
	if (bundles->path[0])
		close(bundles->dir);
	bundles->path[0] = '\0';
}

size_t attachments_bundles(
        const struct attachments *all, struct attach_bundle out[CONFIG_BUNDLES_MAX])
{
	const struct bundles *bundles = &all->bundles;

	for (size_t i = 0; i < bundles->count; i++) {
		const struct bundle *b = bundles->items[i];

		out[i] = (struct attach_bundle){.name = b->config.name,
		        .source = b->config.source,
		        .active = b->active,
		        .highest = b->store.highest,
		        .taken_ms = b->taken_ms,
		        .looked_ms = b->looked_ms,
		        .fault = b->fault ? signed_bundle_fault_name(b->fault) : NULL,
		        .why = b->why};
	}
	return bundles->count;
}
