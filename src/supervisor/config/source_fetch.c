/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources that are asked over HTTPS: vethguard-fetch asks, in a process of its own for each fetch.
 * The supervisor gives it the service's secret as a descriptor and a pipe for the value, and passes
 * the pipe on to the keeper when the process says that the value is in it. It reads no byte of
 * either.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "supervisor/config/settings.h"
#include "supervisor/os/memfd.h"
#include "supervisor/config/source_store.h"
#include "supervisor/config/sources.h"
#include "supervisor/process/role.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/hash.h"
#include "vethguard/base/secret.h"
#include "vethguard/policy/url.h"

#define PROGRAM "vethguard-fetch"
#define PIPE_BYTES (2 * SECRET_MAX)
#define BUNDLE_PIPE_BYTES (1 << 20) /* what any user may have (pipe(7)) */
#define FETCHES_MAX 64              /* at a time, of all sandboxes */
#define FETCHES_OF_ONE_MAX 8        /* of one of its workers: one sandbox leaves the others room */
#define MESSAGES_MAX 4              /* that a fetch may send */

struct source_fetch {
	struct sources *sources;
	uint64_t id;
	uint32_t index;
	struct role role;
	struct loop_timer timer;
	uint32_t timeout_ms;
	int output;
	bool discard, late;
	bool answered; /* FETCHED came, and told is filled in; or FETCH_FAILED came, and why is */
	struct message_fetched told;
	char lease[MESSAGE_LEASE_MAX + 1];
	struct source_store store;
	char why[SOURCE_ERROR_MAX / 2];
	uint32_t retry_s;
	char service[SOURCE_ERROR_MAX / 2]; /* for messages */
};

static unsigned running;
static uint8_t buffer[MESSAGE_BYTES_MAX];

/* --- services that want to be left alone --- */

/* All sandboxes with policies of the same user wait for such a service. Those of other users do
 * not, because they may not have caused the load. When the table is full, the entry that ends first
 * is forgotten. */
#define THROTTLED_MAX 64
static struct throttled {
	uint64_t hash;
	int64_t until_ms; /* clock_boot_ms() */
} throttled[THROTTLED_MAX];

static uint64_t hash_of(const struct source_fetch *fetch)
{
	static struct hash_key key;
	static bool made;
	char text[SOURCE_ERROR_MAX];

	if (!made)
		random_bytes(&key, sizeof(key));
	made = true;
	snprintf(text, sizeof(text), "%u %s", (unsigned)fetch->sources->identity.uid,
	        fetch->service);
	return hash_bytes(&key, text, strlen(text));
}

/* Returns for how many more seconds the service wants no request, or 0. */
static uint32_t left_alone_s(const struct source_fetch *fetch)
{
	const int64_t now_ms = clock_boot_ms();
	const uint64_t hash = hash_of(fetch);

	for (size_t i = 0; i < THROTTLED_MAX; i++)
		if (throttled[i].until_ms > now_ms && throttled[i].hash == hash)
			return (uint32_t)((throttled[i].until_ms - now_ms + 999) / 1000);
	return 0;
}

static void leave_alone(const struct source_fetch *fetch, uint32_t s)
{
	struct throttled *place = &throttled[0];

	for (size_t i = 1; i < THROTTLED_MAX; i++)
		if (throttled[i].until_ms < place->until_ms)
			place = &throttled[i];
	place->hash = hash_of(fetch);
	place->until_ms = clock_boot_ms() + (int64_t)s * 1000;
}

/* --- what the process says --- */

static int on_fetched(struct source_fetch *fetch, struct ipc_message *message)
{
	if (message_fetched_decode(&message->body, &fetch->told) != 0)
		return -EBADMSG;
	snprintf(fetch->lease, sizeof(fetch->lease), "%.*s", SLICE_ARG(fetch->told.lease));
	fetch->told.lease = SLICE("");
	return 0;
}

static int on_failed(struct source_fetch *fetch, struct ipc_message *message)
{
	struct message_fetch_failed m;

	if (message_fetch_failed_decode(&message->body, &m) != 0)
		return -EBADMSG;
	slice_escape(m.text, fetch->why, sizeof(fetch->why));
	fetch->retry_s = m.retry_s;
	fetch->told.stored = m.stored;
	if (m.retry_s)
		leave_alone(fetch, m.retry_s);
	return 0;
}

static int on_message(struct role *role, struct ipc_message *message)
{
	struct source_fetch *fetch = container_of(role, struct source_fetch, role);

	if (fetch->answered)
		return -EBADMSG;
	fetch->answered = true;
	switch (message->head.type) {
	case MESSAGE_FETCHED:
		return on_fetched(fetch, message);
	case MESSAGE_FETCH_FAILED:
		return on_failed(fetch, message);
	default:
		return -EBADMSG;
	}
}

static void explain(const struct source_fetch *fetch, const char *how, char out[SOURCE_ERROR_MAX])
{
	const struct role *role = &fetch->role;

	if (fetch->late)
		snprintf(out, SOURCE_ERROR_MAX, "%s had not answered after %u ms", fetch->service,
		        fetch->timeout_ms);
	else if (fetch->why[0] && !role->killed)
		snprintf(out, SOURCE_ERROR_MAX, "%s: %.250s", fetch->service, fetch->why);
	else if (role->last_words[0] && !role->killed)
		snprintf(out, SOURCE_ERROR_MAX, "%s: %.250s", fetch->service, role->last_words);
	else
		snprintf(out, SOURCE_ERROR_MAX, "%s: " PROGRAM " %.200s", fetch->service, how);
}

/* Puts the next secret in its place before the value is used. */
static void commit(struct source_fetch *fetch)
{
	int rc = source_store_commit(&fetch->store);

	if (rc)
		snprintf(fetch->why, sizeof(fetch->why),
		        "it has sent a new refresh token, which cannot be stored in place of the "
		        "earlier one: %s",
		        strerror(-rc));
}

static void on_dead(struct role *role, const char *how)
{
	struct source_fetch *fetch = container_of(role, struct source_fetch, role);
	struct source_fetched f = {.result = {.fd = -1}, .discard = fetch->discard};
	char error[SOURCE_ERROR_MAX], lease[MESSAGE_LEASE_MAX + 1];

	memcpy(lease, fetch->lease, sizeof(lease));
	f.lease = lease;
	if (fetch->answered && !role->killed && fetch->told.stored)
		commit(fetch);
	if (fetch->answered && !fetch->why[0] && !role->killed) {
		f.result.same = fetch->told.same;
		f.result.ttl_s = fetch->told.ttl_s;
		f.renewable = fetch->told.renewable;
		if (!f.result.same) {
			f.result.fd = fetch->output;
			fetch->output = -1;
		}
	} else {
		explain(fetch, how, error);
		f.result.error = error;
		f.result.retry_s = fetch->retry_s;
	}
	sources_fetch_ended(fetch->sources, fetch->index, fetch->id, &f);
}

static void on_late(struct loop_timer *timer)
{
	struct source_fetch *fetch = container_of(timer, struct source_fetch, timer);

	fetch->late = true;
	role_kill(&fetch->role, "it took too long");
}

/* Paths of files stay here: the process gets what they hold. */
static void fill_arguments(struct message_fetch *m, const struct policy_credential *credential)
{
	for (size_t i = 0; i < credential->argc; i++) {
		struct slice a = credential->argv[i], path;

		if (policy_argument_is_file(a, &path))
			a.n -= path.n;
		m->arguments[m->argument_count++] = a;
	}
}

/* Adds a URL with the addresses that the machine's own table of hosts has for its host. */
static void add_site(struct message_fetch *m, struct slice text, const struct settings *settings)
{
	struct message_fetch_site *site = &m->sites[m->site_count];
	struct url url;

	site->url = text;
	m->site_count++;
	if (!url_parse(text, &url))
		return;
	if (url.authority.address.family) {
		site->addresses[site->address_count++] = url.authority.address;
		return;
	}
	for (size_t i = 0; i < settings->host_count; i++)
		if (site->address_count < MESSAGE_FETCH_ADDRESSES_MAX &&
		        strcmp(settings->hosts[i].name, url.authority.host) == 0)
			site->addresses[site->address_count++] = settings->hosts[i].address;
}

/* Adds the service, and where the arguments say that the login to it is. */
static void fill_sites(struct message_fetch *m, const struct policy_credential *credential,
        const struct settings *settings)
{
	struct slice url;

	add_site(m, credential->location, settings);
	for (size_t i = 1; i < credential->argc; i++)
		if (policy_argument_is_url(credential->argv[i], &url) &&
		        !slice_equals(url, credential->location) &&
		        m->site_count < MESSAGE_FETCH_SITES_MAX)
			add_site(m, url, settings);
}

/* store: the file for the next secret, or -1. */
static int ask(struct source_fetch *fetch, const struct policy_credential *credential,
        const struct source_secrets *secrets, int pipe, int store)
{
	struct message_fetch m = {.secret_count = (uint32_t)secrets->count, .stores = store >= 0};
	int fds[2 + SOURCE_FILES_MAX + 1] = {(*fetch->sources->trusted)->fd, pipe};
	size_t n, count = 2;

	for (size_t i = 0; i < secrets->count; i++)
		fds[count++] = secrets->fds[i];
	if (store >= 0)
		fds[count++] = store;
	fill_arguments(&m, credential);
	fill_sites(&m, credential, fetch->sources->settings);
	m.server_count = (uint32_t)fetch->sources->settings->server_count;
	memcpy(m.servers, fetch->sources->settings->servers, sizeof(m.servers));
	n = message_fetch_encode(buffer, sizeof(buffer), MESSAGE_FETCH, fetch->id, &m);
	return role_send(&fetch->role, buffer, n, fds, count);
}

/* Returns the file for the next secret; -ENODATA: none is needed; or -errno. */
static int open_store(struct source_fetch *fetch, const struct source_secrets *secrets)
{
	const size_t i = secrets->changes;

	return i < secrets->count ? source_store_open(&fetch->store, &fetch->sources->identity,
	                                    secrets->paths[i], secrets->fds[i])
	                          : -ENODATA;
}

/* Gives the pipe room for the longest value, because nobody reads it before the process has ended.
 */
static int make_room(int pipe, const struct policy_credential *credential)
{
	if (!slice_equals(credential->argv[0], SLICE("bundle"))) {
		fcntl(pipe, F_SETPIPE_SZ, PIPE_BYTES); /* the default size holds SECRET_MAX */
		return 0;
	}
	return fcntl(pipe, F_SETPIPE_SZ, BUNDLE_PIPE_BYTES) < 0 ? -errno : 0;
}

static int launch(struct source_fetch *fetch, const struct policy_credential *credential,
        const struct source_secrets *secrets)
{
	struct loop *loop = fetch->sources->loop;
	char label[ROLE_LABEL_MAX];
	int ends[2], store = open_store(fetch, secrets), rc;

	if (store < 0 && store != -ENODATA)
		return store;
	snprintf(label, sizeof(label), "the fetch of credential %.64s", fetch->service);
	if (pipe2(ends, O_CLOEXEC) < 0) {
		rc = -errno;
		if (store >= 0)
			close(store);
		return rc;
	}
	fetch->output = ends[0];
	rc = make_room(ends[1], credential);
	if (!rc)
		rc = role_start(loop, &fetch->role, PROGRAM, label, fetch->sources->mounts,
		        on_message, on_dead);
	if (!rc) {
		role_bound(&fetch->role, MESSAGES_MAX, 1);
		rc = ask(fetch, credential, secrets, ends[1], store);
	}
	close(ends[1]);
	if (store >= 0)
		close(store);
	if (!rc)
		rc = loop_timer_open(loop, &fetch->timer, on_late);
	if (!rc)
		loop_timer_set(&fetch->timer, fetch->timeout_ms);
	return rc;
}

static void explain_store(int rc, char error[SOURCE_ERROR_MAX])
{
	if (rc == -EAGAIN)
		snprintf(error, SOURCE_ERROR_MAX,
		        "another sandbox is using its refresh token at this moment: try again");
	else
		snprintf(error, SOURCE_ERROR_MAX,
		        "no file can be made beside its refresh token, for the next one: %s",
		        strerror(-rc));
}

struct source_fetch *source_fetch_start(struct sources *sources,
        const struct policy_credential *credential, const struct source_secrets *secrets,
        uint64_t id, uint32_t index, bool discard, char error[SOURCE_ERROR_MAX], uint32_t *retry_s)
{
	struct source_fetch *fetch;
	int rc;

	*retry_s = 0;

	if (!sources->settings || !sources->trusted || !*sources->trusted) {
		snprintf(error, SOURCE_ERROR_MAX, "the sandbox is not ready yet");
		return NULL;
	}
	if (running == FETCHES_MAX || sources->fetch_count == FETCHES_OF_ONE_MAX) {
		snprintf(error, SOURCE_ERROR_MAX,
		        "%d services are being asked already%s: it is asked when one has answered",
		        running == FETCHES_MAX ? FETCHES_MAX : FETCHES_OF_ONE_MAX,
		        running == FETCHES_MAX ? "" : " for this sandbox");
		return NULL;
	}
	fetch = calloc(1, sizeof(*fetch));
	if (!fetch) {
		snprintf(error, SOURCE_ERROR_MAX, "no memory");
		return NULL;
	}
	running++;
	sources->fetch_count++;
	*fetch = (struct source_fetch){.sources = sources,
	        .id = id,
	        .index = index,
	        .discard = discard,
	        .timeout_ms = credential->timeout_ms,
	        .output = -1};
	slice_escape(credential->location, fetch->service, sizeof(fetch->service));
	*retry_s = left_alone_s(fetch);
	rc = *retry_s ? -EBUSY : launch(fetch, credential, secrets);
	if (!rc)
		return fetch;
	if (*retry_s)
		snprintf(error, SOURCE_ERROR_MAX,
		        "%s has asked to wait, and is not asked again for %u s", fetch->service,
		        *retry_s);
	else if (fetch->store.path[0] && !fetch->store.made)
		explain_store(rc, error);
	else
		snprintf(error, SOURCE_ERROR_MAX, PROGRAM " could not be started: %s",
		        strerror(-rc));
	source_fetch_free(fetch);
	return NULL;
}

void source_fetch_free(struct source_fetch *fetch)
{
	if (!fetch)
		return;
	loop_timer_close(&fetch->timer);
	role_fini(&fetch->role);
	source_store_close(&fetch->store);
	if (fetch->output >= 0)
		close(fetch->output);
	running--;
	fetch->sources->fetch_count--;
	free(fetch);
}
