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
#include "supervisor/config/sources.h"
#include "supervisor/process/role.h"
#include "vethguard/base/secret.h"
#include "vethguard/policy/url.h"

#define PROGRAM "vethguard-fetch"
#define PIPE_BYTES (2 * SECRET_MAX)
#define FETCHES_MAX 64       /* at a time, of all sandboxes */
#define FETCHES_OF_ONE_MAX 8 /* of one of its workers: one sandbox leaves the others room */
#define MESSAGES_MAX 4       /* that a fetch may send */

struct source_fetch {
	struct sources *sources;
	uint64_t id;
	uint32_t index;
	struct role role;
	struct loop_timer timer;
	uint32_t timeout_ms;
	int output;
	bool fetched, late;
	uint32_t ttl_s;
	char service[SOURCE_ERROR_MAX / 2]; /* for messages */
};

static unsigned running;
static uint8_t buffer[MESSAGE_BYTES_MAX];

static int on_message(struct role *role, struct ipc_message *message)
{
	struct source_fetch *fetch = container_of(role, struct source_fetch, role);
	struct message_fetched m;

	if (message->head.type != MESSAGE_FETCHED || fetch->fetched ||
	        message_fetched_decode(&message->body, &m) != 0)
		return -EBADMSG;
	fetch->fetched = true;
	fetch->ttl_s = m.ttl_s;
	return 0;
}

static void on_dead(struct role *role, const char *how)
{
	struct source_fetch *fetch = container_of(role, struct source_fetch, role);
	char error[SOURCE_ERROR_MAX];
	int output = -1;

	if (fetch->fetched && !role->killed) {
		output = fetch->output;
		fetch->output = -1;
	} else if (fetch->late) {
		snprintf(error, sizeof(error), "%s had not answered after %u ms", fetch->service,
		        fetch->timeout_ms);
	} else if (role->last_words[0] && !role->killed) {
		snprintf(error, sizeof(error), "%s: %.250s", fetch->service, role->last_words);
	} else {
		snprintf(error, sizeof(error), "%s: " PROGRAM " %.200s", fetch->service, how);
	}
	sources_fetch_ended(fetch->sources, fetch->index, fetch->id, output, fetch->ttl_s,
	        output < 0 ? error : NULL);
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

/* Takes the addresses that the machine's own table of hosts has for the URL's host. */
static void fill_addresses(struct message_fetch *m, const struct settings *settings)
{
	struct url url;

	if (!url_parse(m->url, &url))
		return;
	if (url.authority.address.family) {
		m->addresses[m->address_count++] = url.authority.address;
		return;
	}
	for (size_t i = 0; i < settings->host_count; i++)
		if (m->address_count < MESSAGE_FETCH_ADDRESSES_MAX &&
		        strcmp(settings->hosts[i].name, url.authority.host) == 0)
			m->addresses[m->address_count++] = settings->hosts[i].address;
}

static int ask(struct source_fetch *fetch, const struct policy_credential *credential, int secret,
        int pipe)
{
	struct message_fetch m = {.has_secret = secret >= 0, .url = credential->location};
	const int fds[] = {(*fetch->sources->trusted)->fd, pipe, secret};
	size_t n;

	fill_arguments(&m, credential);
	fill_addresses(&m, fetch->sources->settings);
	m.server_count = (uint32_t)fetch->sources->settings->server_count;
	memcpy(m.servers, fetch->sources->settings->servers, sizeof(m.servers));
	n = message_fetch_encode(buffer, sizeof(buffer), MESSAGE_FETCH, fetch->id, &m);
	return role_send(&fetch->role, buffer, n, fds, secret >= 0 ? 3 : 2);
}

static int launch(
        struct source_fetch *fetch, const struct policy_credential *credential, int secret)
{
	struct loop *loop = fetch->sources->loop;
	char label[ROLE_LABEL_MAX];
	int ends[2], rc;

	snprintf(label, sizeof(label), "the fetch of credential %.64s", fetch->service);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	fetch->output = ends[0];
	fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES); /* else the default size holds SECRET_MAX */
	rc = role_start(
	        loop, &fetch->role, PROGRAM, label, fetch->sources->mounts, on_message, on_dead);
	if (!rc) {
		role_bound(&fetch->role, MESSAGES_MAX, 1);
		rc = ask(fetch, credential, secret, ends[1]);
	}
	close(ends[1]);
	if (!rc)
		rc = loop_timer_open(loop, &fetch->timer, on_late);
	if (!rc)
		loop_timer_set(&fetch->timer, fetch->timeout_ms);
	return rc;
}

struct source_fetch *source_fetch_start(struct sources *sources,
        const struct policy_credential *credential, int secret, uint64_t id, uint32_t index,
        char error[SOURCE_ERROR_MAX])
{
	struct source_fetch *fetch;
	int rc;

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
	        .timeout_ms = credential->timeout_ms,
	        .output = -1};
	slice_escape(credential->location, fetch->service, sizeof(fetch->service));
	rc = launch(fetch, credential, secret);
	if (!rc)
		return fetch;
	snprintf(error, SOURCE_ERROR_MAX, PROGRAM " could not be started: %s", strerror(-rc));
	source_fetch_free(fetch);
	return NULL;
}

void source_fetch_free(struct source_fetch *fetch)
{
	if (!fetch)
		return;
	loop_timer_close(&fetch->timer);
	role_fini(&fetch->role);
	if (fetch->output >= 0)
		close(fetch->output);
	running--;
	fetch->sources->fetch_count--;
	free(fetch);
}
