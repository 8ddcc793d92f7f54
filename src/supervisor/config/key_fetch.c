/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A key set or bundle is fetched like a credential, but without secrets: in a process of its own,
 * by name, from a server that the CAs of the configuration verify. A key set is public, but decides
 * which tokens are good; a bundle is signed.
 */
#include "supervisor/config/key_fetch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "supervisor/config/private.h"
#include "supervisor/config/sources.h"

struct key_fetch {
	struct sources sources;
	struct settings *settings;
	struct memory_bundle *trusted;
	struct loop_timer timer; /* for what fails at once */
	enum key_fetch_kind kind;
	char url[PATH_MAX];
	char etag[KEY_ETAG_MAX + sizeof(".etag=")]; /* an argument, or empty */
	char error[SOURCE_ERROR_MAX];
	void (*done)(void *context, const struct key_fetched *fetched);
	void *context;
};

static void on_source(struct sources *sources, uint64_t id, const struct source_result *result)
{
	struct key_fetch *f = container_of(sources, struct key_fetch, sources);

	const struct key_fetched fetched = {.fd = result->fd,
	        .same = result->same,
	        .etag = result->etag ? result->etag : "",
	        .error = result->error};

	(void)id;
	f->done(f->context, &fetched);
	if (result->fd >= 0)
		close(result->fd);
}

static void on_failed(struct loop_timer *timer)
{
	struct key_fetch *f = container_of(timer, struct key_fetch, timer);

	f->done(f->context, &(struct key_fetched){.fd = -1, .etag = "", .error = f->error});
}

static bool fail(struct key_fetch *f, const char *why)
{
	snprintf(f->error, sizeof(f->error), "%s", why);
	return false;
}

static bool begin(struct key_fetch *f, const struct source_leases *services)
{
	const struct source_secrets none = {.count = 0};
	const struct policy_credential what = {.location = slice_from_string(f->url),
	        .timeout_ms = KEY_FETCH_TIMEOUT_MS,
	        .argc = f->etag[0] ? 2 : 1,
	        .argv = {f->kind == KEY_FETCH_BUNDLE ? SLICE("bundle") : SLICE("key-set"),
	                slice_from_string(f->etag)}};
	const char *culprit;
	uint32_t retry_s;
	int rc;

	sources_init(&f->sources, services->loop, NULL, on_source);
	f->sources.identity = (struct identity){.uid = geteuid(), .gid = getegid()};
	f->sources.mounts = services->mounts;
	f->sources.trusted = &f->trusted;
	f->settings = settings_of_services(services->config_path);
	f->sources.settings = f->settings;
	if (!f->settings)
		return fail(f, "the configuration cannot be used");
	rc = memfd_trusted(&f->settings->config, services->trusted, &f->trusted, &culprit);
	if (rc)
		return fail(f, strerror(-rc));
	f->sources.fetches[0] =
	        source_fetch_start(&f->sources, &what, &none, 0, 0, false, f->error, &retry_s);
	return f->sources.fetches[0];
}

struct key_fetch *key_fetch_start(const struct source_leases *services, enum key_fetch_kind kind,
        const char *url, const char *etag,
        void (*done)(void *context, const struct key_fetched *fetched), void *context)
{
	struct key_fetch *f = calloc(1, sizeof(*f));

	if (!f || loop_timer_open(services->loop, &f->timer, on_failed) != 0) {
		free(f);
		return NULL;
	}
	f->kind = kind;
	f->done = done;
	f->context = context;
	snprintf(f->url, sizeof(f->url), "%s", url);
	if (etag[0])
		snprintf(f->etag, sizeof(f->etag), ".etag=%s", etag);
	if (!begin(f, services))
		loop_timer_set(&f->timer, 0);
	return f;
}

void key_fetch_free(struct key_fetch *f)
{
	if (!f)
		return;
	loop_timer_close(&f->timer);
	sources_fini(&f->sources);
	settings_put(f->settings);
	memory_bundle_put(f->trusted);
	free(f);
}
