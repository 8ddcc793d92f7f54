/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vethguard-fetch: asks one service for one credential, and ends. The service is not trusted, and
 * libcurl, OpenSSL and the JSON reader parse its answer. So this happens in a process that holds
 * one secret, and neither the keeper nor the supervisor parses a byte of the answer.
 *
 * main() shows the order of confinement. The supervisor's one message says what to fetch and brings
 * the descriptors: trusted CAs, the pipe for the value, the service's secret. Then the jail closes:
 * by TCP only the ports of the service, of its login and of the resolvers can be dialed (Landlock
 * 4; it knows no addresses). The names are looked up in it, and the secret is read after that. The
 * value goes into the pipe, its lifetime to the supervisor, which passes the pipe on to the keeper.
 */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fetch/form.h"
#include "fetch/libraries.h"
#include "fetch/lookup.h"
#include "fetch/services/services.h"
#include "vethguard/base/log.h"
#include "vethguard/base/secret.h"
#include "vethguard/ipc/peer.h"
#include "vethguard/jail/jail.h"
#include "vethguard/tls/tls.h"

#define START_TIMEOUT_MS 10000
#define EXIT_FAILED 125
#define TRUSTED_MAX (16u << 20)
#define LOCKED_MAX (256u << 20)
#define DATA_MAX (128u << 20)

struct fetch {
	uint64_t id; /* of the supervisor's message */
	struct fetch_request request;
	int trusted, pipe, store; /* store -1: none */
	bool stored;              /* the store file has the next secret */
	int secret_files[MESSAGE_FETCH_SECRETS_MAX];
	struct slice trusted_pem; /* mapped */
	struct secret secrets[MESSAGE_FETCH_SECRETS_MAX];
	struct buf encoded[MESSAGE_FETCH_SECRETS_MAX];
	struct https *https;
	struct lookup lookup;
};

/* A service cannot make this process grow: what libcurl keeps of header fields, for example, has no
 * bound in every version. Where this process may, none of its memory goes to the disk: libcurl and
 * OpenSSL keep what they read in ordinary memory, and wipe it when they free it. */
static void bound_memory(void)
{
	const struct rlimit limit = {LOCKED_MAX, LOCKED_MAX}, data = {DATA_MAX, DATA_MAX};

#ifndef __SANITIZE_ADDRESS__ /* its shadow is larger */
	setrlimit(RLIMIT_DATA, &data);
#else
	(void)data;
#endif
	if (setrlimit(RLIMIT_MEMLOCK, &limit) == 0)
		mlockall(MCL_CURRENT | MCL_FUTURE);
}

static uint8_t received[MESSAGE_BYTES_MAX];

static void must(const char *what, int rc)
{
	if (rc < 0)
		die(EXIT_FAILED, "%s: %s", what, strerror(-rc));
}

static void await_request(struct fetch *f)
{
	struct ipc_message message;

	must("no message from the supervisor",
	        ipc_receive_blocking(IPC_SUPERVISOR_FD, START_TIMEOUT_MS, received, &message));
	if (message.head.type != MESSAGE_FETCH ||
	        message_fetch_decode(&message.body, &f->request.message) != 0 ||
	        message.fd_count !=
	                2 + f->request.message.secret_count + (f->request.message.stores ? 1 : 0))
		die(EXIT_FAILED, "the supervisor's message is not the one expected");
	f->id = message.head.id;
	f->trusted = message.fds[0];
	f->pipe = message.fds[1];
	for (size_t i = 0; i < f->request.message.secret_count; i++)
		f->secret_files[i] = message.fds[2 + i];
	f->store = f->request.message.stores ? message.fds[message.fd_count - 1] : -1;
}

/* Tells the supervisor why there is no value, and ends. */
static _Noreturn void fail(const struct fetch *f, const char *sentence)
{
	uint8_t message[1024 + MESSAGE_WHAT_MAX];
	struct message_fetch_failed m = {.retry_s = f->https ? https_retry_s(f->https) : 0,
	        .stored = f->stored,
	        .text = slice_of(sentence, strnlen(sentence, MESSAGE_WHAT_MAX))};

	ipc_send_blocking(IPC_SUPERVISOR_FD, message,
	        message_fetch_failed_encode(
	                message, sizeof(message), MESSAGE_FETCH_FAILED, f->id, &m),
	        NULL, 0);
	_exit(1);
}

static void map_trusted(struct fetch *f)
{
	struct stat st;
	void *p;

	if (fstat(f->trusted, &st) < 0 || st.st_size <= 0 || st.st_size > TRUSTED_MAX)
		fail(f, "there are no trusted CAs to verify it by");
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, f->trusted, 0);
	if (p == MAP_FAILED)
		fail(f, "no memory for trusted CAs");
	f->trusted_pem = slice_of(p, (size_t)st.st_size);
	close(f->trusted);
}

static void enter_jail(const struct fetch *f)
{
	const struct message_fetch *m = &f->request.message;
	uint16_t ports[MESSAGE_FETCH_SITES_MAX + CONFIG_SERVERS_MAX];
	const char *step;
	size_t count = 0;
	int rc;

	for (size_t i = 0; i < m->site_count; i++)
		ports[count++] = f->request.sites[i].port;
	for (size_t i = 0; i < m->server_count; i++)
		ports[count++] = m->servers[i].port ? m->servers[i].port : CONFIG_SERVER_PORT;
	rc = jail_enter(JAIL_FETCH, ports, count, &step);
	must(step, rc);
}

static bool is_line_end(char c)
{
	return c == '\r' || c == '\n';
}

static void read_secret(struct fetch *f, size_t i)
{
	struct secret *secret = &f->secrets[i];
	struct slice *text = &f->request.secrets[i];
	ssize_t n = 1;

	if (secret_alloc(secret, FETCH_SECRET_MAX) < 0)
		fail(f, "there is no memory that may be locked");
	while (n != 0 && secret->n < secret->cap) {
		n = read(f->secret_files[i], secret->p + secret->n, secret->cap - secret->n);
		if (n < 0 && errno != EINTR)
			fail(f, "the file with its secret cannot be read");
		secret->n += n > 0 ? (size_t)n : 0;
	}
	*text = secret_slice(secret);
	while (text->n && is_line_end(text->p[text->n - 1]))
		text->n--;
	if (!text->n || secret->n == secret->cap)
		fail(f, "the file with its secret is empty or too long");
	if (memchr(text->p, 0, text->n))
		fail(f, "the file with its secret has a NUL byte");
}

static void read_secrets(struct fetch *f)
{
	for (size_t i = 0; i < f->request.message.secret_count; i++) {
		read_secret(f, i);
		private_buf_init(&f->encoded[i], FORM_MAX);
		if (form_encode(&f->encoded[i], f->request.secrets[i]) < 0)
			fail(f, "no memory");
		https_hide(f->https, f->request.secrets[i], buf_slice(&f->encoded[i]));
	}
	f->request.secret = f->request.secrets[0];
}

/* Writes the next secret. The supervisor makes it durable and puts it in its place before it passes
 * the value on. */
static void store(struct fetch *f, const struct fetched *value)
{
	const struct slice next = buf_slice(&value->next_secret);

	if (!next.n)
		return;
	if (f->store < 0 || write(f->store, next.p, next.n) != (ssize_t)next.n)
		fail(f, "it has sent a new refresh token, which cannot be stored; the earlier one "
		        "may not be valid any more");
	f->stored = true;
}

struct kind {
	const char *name;
	bool (*fetch)(const struct fetch_request *request, struct https *https, struct fetched *out,
	        char fault[HTTPS_TEXT_MAX]);
	size_t value_max; /* 0: SECRET_MAX */
};

/* Returns NULL if this version does not know it. */
static const struct kind *find_kind(const struct fetch_request *request)
{
	static const struct kind kinds[] = {{"vault", vault_fetch, 0}, {"oauth2", oauth2_fetch, 0},
	        {"token-exchange", token_exchange_fetch, 0}, {"github-app", github_app_fetch, 0},
	        {"gcp-service-account", gcp_fetch, 0}, {"1password-connect", onepassword_fetch, 0},
	        {"gcp-secretmanager", gcp_secret_fetch, 0}, {"azure-keyvault", azure_fetch, 0},
	        {"aws-secretsmanager", aws_secret_fetch, 0}, {"aws-ssm", aws_parameter_fetch, 0},
	        {"aws-role", aws_role_fetch, 0}, {"key-set", key_set_fetch, 0},
	        {"bundle", bundle_fetch, HTTPS_ANSWER_MAX}, {"webhook", webhook_fetch, 0},
	        {"decider", decider_fetch, 0}};
	const struct slice name = request->message.arguments[0];

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (slice_equals(name, slice_from_string(kinds[i].name)))
			return &kinds[i];
	return NULL;
}

/* The pipe has room for the longest value. */
static void hand_over(struct fetch *f, struct fetched *value)
{
	uint8_t message[128 + MESSAGE_LEASE_MAX];
	struct message_fetched m = {.ttl_s = value->ttl_s,
	        .same = value->same,
	        .renewable = value->renewable,
	        .stored = f->stored,
	        .lease = slice_from_string(value->lease)};
	ssize_t n;
	bool whole;

	n = write(f->pipe, buf_bytes(&value->value), value->value.len);
	whole = n >= 0 && (size_t)n == value->value.len;
	private_buf_fini(&value->value);
	close(f->pipe);
	if (!whole)
		fail(f, "its value is longer than a credential may be");
	ipc_send_blocking(IPC_SUPERVISOR_FD, message,
	        message_fetched_encode(message, sizeof(message), MESSAGE_FETCHED, f->id, &m), NULL,
	        0);
}

int main(int argc, char **argv)
{
	struct fetch f = {.store = -1};
	struct fetched value = {0};
	char fault[HTTPS_TEXT_MAX];
	const struct kind *kind;
	const char *why;
	bool taken;

	log_open_role("vethguard-fetch", argc, argv, EXIT_FAILED);
	jail_start(IPC_SUPERVISOR_FD + 1);
	bound_memory();
	libraries_wipe_memory();
	await_request(&f);
	kind = find_kind(&f.request);
	if (!kind)
		fail(&f, "this version does not know how to ask it");
	if (!fetch_request_read_urls(&f.request))
		fail(&f, "its URL is not https");
	f.https = https_open();
	if (!f.https || !lookup_open(&f.lookup, &f.request) || aws_prepare() < 0 ||
	        hook_prepare() < 0)
		fail(&f, "no memory");
	map_trusted(&f);
	https_trust(f.https, f.trusted_pem);
	enter_jail(&f);
	why = lookup_run(&f.lookup, &f.request);
	if (why)
		fail(&f, why);
	if (!https_resolve(f.https, &f.request))
		fail(&f, "no memory");
	read_secrets(&f);
	private_buf_init(&value.value, kind->value_max ? kind->value_max : SECRET_MAX);
	private_buf_init(&value.next_secret, FETCH_SECRET_MAX);
	taken = kind->fetch(&f.request, f.https, &value, fault);
	store(&f, &value);
	if (!taken)
		fail(&f, fault);
	hand_over(&f, &value);
	https_free(f.https);
	lookup_close(&f.lookup);
	private_buf_fini(&value.next_secret);
	for (size_t i = 0; i < f.request.message.secret_count; i++) {
		private_buf_fini(&f.encoded[i]);
		secret_free(&f.secrets[i]);
	}
	return 0;
}
