/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a credential's source by its kind, and tracks what is pending. The keeper's requests are
 * hostile input: a number out of range, or a second request during the first, gets an error
 * answer. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vethguard/wire/message.h"
#include "supervisor/os/local_file.h"
#include "supervisor/config/source_lease.h"
#include "supervisor/config/sources.h"

void sources_init(struct sources *s, struct loop *loop, const struct policy *policy,
        void (*on_source)(struct sources *sources, uint64_t id, const struct source_result *result))
{
	memset(s, 0, sizeof(*s));
	s->loop = loop;
	s->policy = policy;
	s->on_source = on_source;
	s->mounts = -1;
	s->input = -1;
	for (size_t i = 0; i < POLICY_CREDENTIALS_MAX; i++)
		s->variables[i] = -1;
}

void sources_stop(struct sources *s)
{
	for (size_t i = 0; i < POLICY_CREDENTIALS_MAX; i++) {
		if (s->runs[i])
			source_run_free(s->runs[i]);
		s->runs[i] = NULL;
		source_read_free(s->reads[i]);
		s->reads[i] = NULL;
		source_fetch_free(s->fetches[i]);
		s->fetches[i] = NULL;
	}
}

void sources_fini(struct sources *s)
{
	sources_stop(s);
	for (size_t i = 0; i < POLICY_CREDENTIALS_MAX; i++) {
		if (s->variables[i] >= 0)
			close(s->variables[i]);
		s->variables[i] = -1;
		source_lease_release(s->leases[i], 0);
		s->leases[i] = NULL;
	}
	free(s->covered);
	s->covered = NULL;
}

static void refuse_for(
        struct sources *s, uint64_t id, uint32_t index, const char *error, uint32_t retry_s)
{
	char text[SOURCE_FAULT_MAX];

	if (s->policy)
		source_name_fault(s, index, error, text);
	else
		snprintf(text, sizeof(text), "%s", error);
	s->on_source(s, id, &(struct source_result){.fd = -1, .retry_s = retry_s, .error = text});
}

static void refuse(struct sources *s, uint64_t id, uint32_t index, const char *error)
{
	refuse_for(s, id, index, error, 0);
}

static void give(struct sources *s, uint64_t id, int fd)
{
	s->on_source(s, id, &(struct source_result){.fd = fd});
}

void sources_run_ended(struct sources *s, uint32_t index, uint64_t id, int fd, const char *error)
{
	source_run_free(s->runs[index]);
	s->runs[index] = NULL;
	if (fd < 0)
		refuse(s, id, index, error);
	else
		give(s, id, fd);
}

void sources_read_ended(struct sources *s, uint32_t index, uint64_t id, int fd, const char *error)
{
	source_read_free(s->reads[index]);
	s->reads[index] = NULL;
	if (fd < 0)
		refuse(s, id, index, error);
	else
		give(s, id, fd);
}

/* A local file is opened here, any other by a child: the keeper serves many sandboxes too, and must
 * not wait. */
static void open_file(struct sources *s, uint64_t id, uint32_t index, struct slice name)
{
	char path[SOURCE_PATH_MAX], error[SOURCE_ERROR_MAX];
	int fd = source_open_local(s, name, path, error);

	if (fd >= 0) {
		source_look_whether_covered(s, index, 0, fd, path);
		give(s, id, fd);
		return;
	}
	if (fd == LOCAL_FILE_UNKNOWN && s->reads[index]) {
		refuse(s, id, index, "its file is being read already");
		return;
	}
	if (fd == LOCAL_FILE_UNKNOWN)
		s->reads[index] = source_read_start(s, path, id, index, error);
	if (!s->reads[index])
		refuse(s, id, index, error);
}

/* Opens a file in the daemon's credentials directory, like any other file with the rights of the
 * user who named the policy: systemd lets only root read it. */
static void open_systemd(
        struct sources *s, uint64_t id, uint32_t index, const struct policy_credential *c)
{
	const char *folder = getenv("CREDENTIALS_DIRECTORY");
	char path[SOURCE_PATH_MAX];
	int n;

	if (s->covered) {
		refuse(s, id, index,
		        "systemd: is for sandboxes of vethguardd: its directory is not hidden from "
		        "the command of 'vethguard run'; use file:");
		return;
	}
	if (!folder || folder[0] != '/') {
		refuse(s, id, index,
		        "vethguardd has no credentials directory: its unit needs "
		        "LoadCredential=NAME:PATH (systemd.exec(5))");
		return;
	}
	n = snprintf(path, sizeof(path), "%s/%.*s", folder, SLICE_ARG(c->location));
	if (n < (int)sizeof(path))
		open_file(s, id, index, slice_of(path, (size_t)n));
	else
		refuse(s, id, index, "the path is too long");
}

/* The value can be read from its pipe only once: the keeper holds it from then on. */
static int take_variable(struct sources *s, uint32_t index, const struct policy_credential *c,
        char error[SOURCE_ERROR_MAX])
{
	int fd = s->variables[index];
	char shown[256];

	s->variables[index] = -1;
	if (fd < 0)
		snprintf(error, SOURCE_ERROR_MAX,
		        "the environment variable %s was not set when vethguard started",
		        slice_escape(c->location, shown, sizeof(shown)));
	return fd;
}

static void start_program(
        struct sources *s, uint64_t id, uint32_t index, const struct policy_credential *c)
{
	char error[SOURCE_ERROR_MAX];

	if (s->runs[index]) {
		refuse(s, id, index, "its program is running already");
		return;
	}
	s->runs[index] = source_run_start(s, c, id, index, error);
	if (!s->runs[index])
		refuse(s, id, index, error);
}

#define LINGER_MS 5000 /* for requests that still use the previous value */

/* Replaces the lease of the previous value by that of the new value, and gives the previous one
 * back a little later. */
static void keep_lease(struct sources *s, uint32_t index, const struct source_fetched *f)
{
	struct source_lease *before = s->leases[index], *now = NULL;
	struct policy_credential c;

	if (f->result.same) {
		source_lease_renewed(before, f->result.ttl_s, f->renewable);
		return;
	}
	policy_credential(s->policy, index, &c);
	if (f->lease[0] && s->book)
		now = source_lease_new(
		        s->book, &c, &s->identity, f->lease, f->result.ttl_s, f->renewable);
	if (f->discard) {
		source_lease_release(now, 0);
		return;
	}
	s->leases[index] = now;
	source_lease_release(before, LINGER_MS);
}

void sources_give_back(struct sources *s, uint32_t index)
{
	source_lease_release(s->leases[index], 0);
	s->leases[index] = NULL;
}

void sources_fetch_ended(
        struct sources *s, uint32_t index, uint64_t id, const struct source_fetched *f)
{
	source_fetch_free(s->fetches[index]);
	s->fetches[index] = NULL;
	if (f->result.error) {
		refuse_for(s, id, index, f->result.error, f->result.retry_s);
		return;
	}
	struct source_result result = f->result;
	if (s->policy)
		keep_lease(s, index, f);
	else
		result.etag = f->lease; /* a key set has an ETag in the lease's place */
	s->on_source(s, id, &result);
}

/* Adds the arguments that ask for a renewal. */
static void ask_for_renewal(const struct source_lease *lease, struct policy_credential *c,
        char texts[2][MESSAGE_LEASE_MAX + 16])
{
	snprintf(texts[0], sizeof(texts[0]), ".renew=%s", source_lease_id(lease));
	snprintf(texts[1], sizeof(texts[1]), ".lasts=%u", source_lease_lasts_s(lease));
	for (size_t i = 0; i < 2 && c->argc < POLICY_ARGV_MAX; i++)
		c->argv[c->argc++] = slice_from_string(texts[i]);
}

/* True if the machine's own identity logs in: it is not lent to whoever may name a policy. */
static bool borrows_the_machine(const struct identity *id, const struct policy_credential *c)
{
	bool asks = false;

	for (size_t i = 1; i < c->argc; i++)
		asks = asks || slice_starts_with(c->argv[i], SLICE("metadata_url="));
	return asks && !identity_owns_machine(id);
}

static void start_fetch(
        struct sources *s, uint64_t id, uint32_t index, struct policy_credential *c, bool discard)
{
	char error[SOURCE_ERROR_MAX];
	struct source_secrets secrets;
	uint32_t retry_s = 0;

	if (s->fetches[index]) {
		refuse(s, id, index, "its service is being asked already");
		return;
	}
	if (borrows_the_machine(&s->identity, c)) {
		refuse(s, id, index,
		        "the identity of this machine logs in for policies that root names: name a "
		        "file with a key of your own");
		return;
	}
	if (!source_secrets_open(&s->identity, c, &secrets, error)) {
		refuse(s, id, index, error);
		return;
	}
	for (size_t k = 0; k < secrets.count; k++)
		source_look_whether_covered(s, index, k, secrets.fds[k], secrets.paths[k]);
	if (s->covered && secrets.changes < secrets.count)
		snprintf(error, sizeof(error),
		        "a refresh token that changes cannot be kept from the command of "
		        "'vethguard run': attach the sandbox to vethguardd");
	else
		s->fetches[index] =
		        source_fetch_start(s, c, &secrets, id, index, discard, error, &retry_s);
	source_secrets_close(&secrets);
	if (!s->fetches[index])
		refuse_for(s, id, index, error, retry_s);
}

static void open_service(struct sources *s, uint64_t id, uint32_t index,
        const struct policy_credential *c, bool renew, bool discard)
{
	char texts[2][MESSAGE_LEASE_MAX + 16];
	struct policy_credential asked = *c;

	if (renew && source_lease_is_renewable(s->leases[index]))
		ask_for_renewal(s->leases[index], &asked, texts);
	start_fetch(s, id, index, &asked, discard);
}

/* Refuses the certificate of a key in a token where nobody signs by it. Returns true if it did. */
static bool refuses_token(
        struct sources *s, uint64_t id, uint32_t index, const struct policy_credential *c)
{
	if (c->inject != POLICY_INJECT_CLIENT_CERTIFICATE || !c->field.n)
		return false;
	if (s->covered)
		refuse(s, id, index,
		        "a key in a token is for sandboxes of vethguardd: 'vethguard run' starts "
		        "no module");
	else if (!identity_owns_machine(&s->identity))
		refuse(s, id, index,
		        "keys in the machine's tokens are for policies that root names");
	else
		return false;
	return true;
}

void sources_open(struct sources *s, uint64_t id, uint32_t index, bool renew, bool discard)
{
	struct policy_credential c;
	char error[SOURCE_ERROR_MAX] = "";
	int fd;

	if (index >= policy_credential_count(s->policy) || index >= POLICY_CREDENTIALS_MAX) {
		s->on_source(s, id,
		        &(struct source_result){
		                .fd = -1, .error = "the policy has no such credential"});
		return;
	}
	policy_credential(s->policy, index, &c);
	if (refuses_token(s, id, index, &c))
		return;
	if (c.source == POLICY_SOURCE_EXEC) {
		start_program(s, id, index, &c);
		return;
	}
	if (c.source == POLICY_SOURCE_FILE) {
		open_file(s, id, index, c.location);
		return;
	}
	if (c.source == POLICY_SOURCE_SYSTEMD) {
		open_systemd(s, id, index, &c);
		return;
	}
	if (c.source == POLICY_SOURCE_FETCH) {
		open_service(s, id, index, &c, renew, discard);
		return;
	}
	fd = take_variable(s, index, &c, error);
	if (fd < 0)
		refuse(s, id, index, error);
	else
		give(s, id, fd);
}
