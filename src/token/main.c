/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vethguard-token: signs with a key that lies in a PKCS #11 token. The token's module is foreign
 * code, which opens files and sockets and starts threads. So it is loaded only here: in a process
 * that runs as its own user and holds no secret but the PIN.
 *
 * main() shows the order. The supervisor's one message names module, token and key; the PIN is read
 * from the descriptor that comes with it. Then the jail closes: no network at all, files read-only
 * except in the named folders, no other program. Only then is the module loaded. The keeper sends
 * digests over a pair of its own, one at a time: of certificates, for the key of a CA, which the
 * supervisor's message names (TOKEN_SIGN); or of TLS handshakes, for keys of client certificates,
 * which each question names (TOKEN_KEY_SIGN). The receiver of a signature verifies it.
 *
 * Any failure of the token is reported to the supervisor and ends this process; a broken session is
 * not repaired. The supervisor starts another process, except after a refused PIN. A question for a
 * key that is not there, or that cannot sign by the question's scheme, is only refused.
 */
#include <errno.h>
#include <grp.h>
#include <poll.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "token/keys.h"
#include "vethguard/base/log.h"
#include "vethguard/base/secret.h"
#include "vethguard/ipc/peer.h"
#include "vethguard/jail/module.h"

#define START_TIMEOUT_MS 10000
#define EXIT_FAILED 125
#define PIN_MAX 256

struct token {
	uint64_t id; /* id of the supervisor's message */
	struct message_token_start start;
	struct pkcs11_uri uri;
	char module[MESSAGE_PATH_MAX + 1];
	struct secret pin;
	struct key key;
	struct keys keys;
	int keeper; /* -1: none yet */
};

static uint8_t received[MESSAGE_BYTES_MAX], question[MESSAGE_BYTES_MAX];

static void must(const char *what, int rc)
{
	if (rc < 0)
		die(EXIT_FAILED, "%s: %s", what, strerror(-rc));
}

static void tell(uint64_t id, enum message_type type, const char *sentence)
{
	uint8_t message[1024];
	struct message_text m = {slice_from_string(sentence)};

	ipc_send_blocking(IPC_SUPERVISOR_FD, message,
	        message_text_encode(message, sizeof(message), type, id, &m), NULL, 0);
}

static _Noreturn void fail(const struct token *t, const char *sentence)
{
	tell(t->id, MESSAGE_FAILED, sentence);
	_exit(1);
}

/* Reads the PIN, without the line end. */
static void read_pin(struct token *t, int fd)
{
	ssize_t n = 1;

	if (secret_alloc(&t->pin, PIN_MAX + 2) < 0)
		fail(t, "there is no memory that may be locked");
	while (n != 0 && t->pin.n < t->pin.cap) {
		n = read(fd, t->pin.p + t->pin.n, t->pin.cap - t->pin.n);
		if (n < 0 && errno != EINTR)
			fail(t, "the PIN's source cannot be read");
		t->pin.n += n > 0 ? (size_t)n : 0;
	}
	close(fd);
	while (t->pin.n > 0 && (t->pin.p[t->pin.n - 1] == '\n' || t->pin.p[t->pin.n - 1] == '\r'))
		t->pin.n--;
	if (t->pin.n == 0 || t->pin.n > PIN_MAX || memchr(t->pin.p, 0, t->pin.n) ||
	        memchr(t->pin.p, '\n', t->pin.n))
		fail(t, "the PIN's source has no single line of 1 to 256 bytes");
}
_Static_assert(PIN_MAX == 256, "as the text says");

static void await_start(struct token *t)
{
	struct ipc_message message;

	must("no message from the supervisor",
	        ipc_receive_blocking(IPC_SUPERVISOR_FD, START_TIMEOUT_MS, received, &message));
	if (message.head.type != MESSAGE_TOKEN_START ||
	        message_token_start_decode(&message.body, &t->start) != 0 || message.fd_count != 1)
		die(EXIT_FAILED, "the supervisor's message is not the one expected");
	t->id = message.head.id;
	if (pkcs11_uri_parse_token(t->start.uri, &t->uri))
		fail(t, "the URI cannot be read");
	snprintf(t->module, sizeof(t->module), "%.*s", SLICE_ARG(t->start.module));
	read_pin(t, message.fds[0]);
}

static void set_environment(const struct token *t)
{
	for (size_t i = 0; i < t->start.variable_count; i++) {
		char pair[MESSAGE_PATH_MAX + 1], *equals;

		snprintf(pair, sizeof(pair), "%.*s", SLICE_ARG(t->start.variables[i]));
		equals = strchr(pair, '=');
		if (!equals)
			continue;
		*equals = '\0';
		if (setenv(pair, equals + 1, 1) < 0)
			fail(t, "no memory");
	}
}

static void enter_jail(const struct token *t)
{
	static char paths[MESSAGE_TOKEN_PAIRS_MAX][MESSAGE_PATH_MAX + 1];
	struct jail_module jail = {.writable_count = t->start.writable_count};
	char user[MESSAGE_NAME_MAX + 1], why[KEY_WHY_MAX];
	int rc;

	snprintf(user, sizeof(user), "%.*s", SLICE_ARG(t->start.user));
	if (!jail_module_user(&jail, user)) {
		snprintf(why, sizeof(why), "there is no user %.100s (token.user), or it is root",
		        user);
		fail(t, why);
	}
	for (size_t i = 0; i < jail.writable_count; i++) {
		snprintf(paths[i], sizeof(paths[i]), "%.*s", SLICE_ARG(t->start.writable[i]));
		jail.writable[i] = paths[i];
	}
	rc = jail_module(&jail);
	if (rc == 0)
		return;
	snprintf(why, sizeof(why), "%s: %s", jail.step, strerror(-rc));
	fail(t, why);
}

static void open_key(struct token *t)
{
	char why[KEY_WHY_MAX], text[256];
	uint8_t message[64];
	bool needs_login;

	if (!key_load_module(&t->key, t->module, why) ||
	        !key_find_token(&t->key, &t->uri, &needs_login, why))
		fail(t, why);
	if (needs_login) {
		must("cannot report",
		        ipc_send_blocking(IPC_SUPERVISOR_FD, message,
		                message_empty(message, sizeof(message), MESSAGE_TOKEN_LOGIN, t->id),
		                NULL, 0));
		if (!key_log_in(&t->key, secret_slice(&t->pin), why))
			fail(t, why);
	}
	secret_free(&t->pin);
	snprintf(text, sizeof(text), "token %s", t->key.token);
	if (pkcs11_uri_names_key(&t->uri)) {
		if (!key_find(&t->key, &t->uri, why))
			fail(t, why);
		snprintf(text, sizeof(text), "token %s, key of kind %s", t->key.token,
		        t->key.kind == MESSAGE_TOKEN_RSA ? "RSA" : "EC");
	}
	tell(t->id, MESSAGE_TOKEN_READY, text);
}

/* Takes the pair to a new keeper in place of the earlier one, whose keeper is gone. */
static void take_keeper(struct token *t)
{
	struct ipc_message message;

	if (ipc_receive_blocking(IPC_SUPERVISOR_FD, 0, received, &message) < 0)
		_exit(0); /* the supervisor is gone */
	if (message.head.type != MESSAGE_TOKEN_KEEPER || !reader_done(&message.body) ||
	        message.fd_count != 1)
		die(EXIT_FAILED, "the supervisor breaks the protocol");
	if (t->keeper >= 0)
		close(t->keeper);
	t->keeper = message.fds[0];
}

static void answer(struct token *t, uint64_t id, struct slice signature, const char *why)
{
	static uint8_t reply[MESSAGE_SIGNATURE_MAX + KEY_WHY_MAX + 64];
	const struct message_token_signature m = {.kind = t->key.kind,
	        .signature = signature,
	        .error = signature.n ? SLICE("") : slice_from_string(why)};

	ipc_send_blocking(t->keeper, reply,
	        message_token_signature_encode(
	                reply, sizeof(reply), MESSAGE_TOKEN_SIGNATURE, id, &m),
	        NULL, 0);
}

static void sign(struct token *t, uint64_t id, uint16_t scheme, struct slice digest)
{
	uint8_t signature[MESSAGE_SIGNATURE_MAX];
	char why[KEY_WHY_MAX];
	size_t n = key_sign(&t->key, scheme, digest, signature, why);

	answer(t, id, slice_of((const char *)signature, n), why);
	if (n == 0 && (t->key.broken || scheme == MESSAGE_SCHEME_ANY))
		fail(t, why);
}

static void refuse_key(struct token *t, uint64_t id, const char *why)
{
	answer(t, id, SLICE(""), why);
	if (t->key.broken)
		fail(t, why);
}

static void take_question(struct token *t)
{
	const bool one_key = pkcs11_uri_names_key(&t->uri);
	struct message_token_key_sign by_key;
	struct message_token_sign by_ca;
	struct ipc_message message;
	char why[KEY_WHY_MAX];

	if (ipc_receive_blocking(t->keeper, 0, question, &message) < 0) {
		close(t->keeper);
		t->keeper = -1;
		return;
	}
	if (message.fd_count == 0 && one_key && message.head.type == MESSAGE_TOKEN_SIGN &&
	        message_token_sign_decode(&message.body, &by_ca) == 0)
		sign(t, message.head.id, MESSAGE_SCHEME_ANY, by_ca.digest);
	else if (message.fd_count > 0 || one_key || message.head.type != MESSAGE_TOKEN_KEY_SIGN ||
	         message_token_key_sign_decode(&message.body, &by_key) != 0)
		die(EXIT_FAILED, "the keeper breaks the protocol");
	else if (!keys_select(&t->keys, &t->key, by_key.uri, why) ||
	         !key_fits(&t->key, by_key.scheme, why))
		refuse_key(t, message.head.id, why);
	else
		sign(t, message.head.id, by_key.scheme, by_key.digest);
}

int main(int argc, char **argv)
{
	static struct token t = {.keeper = -1};

	log_open_role("vethguard-token", argc, argv, EXIT_FAILED);
	jail_start(IPC_SUPERVISOR_FD + 1);
	await_start(&t);
	set_environment(&t);
	enter_jail(&t);
	open_key(&t);
	for (;;) {
		struct pollfd waits[] = {{.fd = IPC_SUPERVISOR_FD, .events = POLLIN},
		        {.fd = t.keeper, .events = POLLIN}};

		if (poll(waits, 2, -1) < 0 && errno != EINTR)
			die(EXIT_FAILED, "poll: %s", strerror(errno));
		if (waits[0].revents)
			take_keeper(&t);
		else if (waits[1].revents)
			take_question(&t);
	}
}
