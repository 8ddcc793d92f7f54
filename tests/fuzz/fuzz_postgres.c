/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a client's first message, as a message of a login, and as a server's words of SCRAM.
 * Beyond memory safety: the answer for a prefix never contradicts the answer for more of the same
 * bytes, what is accepted lies within what came, what is refused has a reason, and a startup
 * message that is written is read as the same.
 */
#include <stdint.h>
#include <stdlib.h>

#include "vethguard/sign/scram.h"
#include "vethguard/wire/postgres.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static bool lies_in(struct slice s, const uint8_t *data, size_t n)
{
	return !s.n || ((const uint8_t *)s.p >= data && (const uint8_t *)s.p + s.n <= data + n);
}

static void check_written(const struct postgres_startup *s)
{
	static uint8_t bytes[2 * POSTGRES_STARTUP_MAX];
	struct writer w = writer_over(bytes, sizeof(bytes));
	struct postgres_startup again;

	postgres_write_startup(&w, s->user, s->parameters);
	if (w.failed)
		return;
	if (postgres_startup_parse(bytes, w.len, &again) != POSTGRES_DONE) {
		require(w.len > POSTGRES_STARTUP_MAX);
		return;
	}
	require(again.used == w.len && slice_equals(again.user, s->user) &&
	        slice_equals(again.database, s->database) && again.options == 0 &&
	        again.replicates == s->replicates);
	w = writer_over(bytes, sizeof(bytes));
	postgres_write_negotiation(&w, s);
	require(!w.failed);
}

static void check_startup(const uint8_t *data, size_t size)
{
	struct postgres_startup s, shorter;
	enum postgres_status status = postgres_startup_parse(data, size, &s);
	enum postgres_status before = postgres_startup_parse(data, size / 2, &shorter);

	require(s.used <= size && s.used <= POSTGRES_STARTUP_MAX);
	require((status == POSTGRES_DONE) == (s.used != 0));
	require((status == POSTGRES_BAD) == (*s.why != 0));
	require(before == POSTGRES_MORE || before == status);
	require(status != POSTGRES_MORE || size < POSTGRES_STARTUP_MAX);
	require(before != POSTGRES_DONE || (shorter.used == s.used && shorter.kind == s.kind));
	require(lies_in(s.user, data, s.used) && lies_in(s.database, data, s.used) &&
	        lies_in(s.parameters, data, s.used));
	if (status != POSTGRES_DONE || s.kind != POSTGRES_STARTS)
		return;
	require(s.user.n > 0 && s.user.n <= POSTGRES_NAME_MAX);
	check_written(&s);
}

static void check_message(const uint8_t *data, size_t size)
{
	struct postgres_message m;
	struct postgres_authentication a;
	enum postgres_status status = postgres_message_parse(data, size, POSTGRES_MESSAGE_MAX, &m);

	require(m.used <= size && m.used <= POSTGRES_MESSAGE_MAX);
	require((status == POSTGRES_DONE) == (m.used != 0));
	require(status != POSTGRES_MORE || size < POSTGRES_MESSAGE_MAX);
	if (status != POSTGRES_DONE)
		return;
	require(lies_in(m.body, data, m.used));
	if (postgres_authentication_parse(m.body, &a))
		require(lies_in(a.data, data, m.used));
	require(lies_in(postgres_error_code(m.body), data, m.used));
}

static void check_scram(const uint8_t *data, size_t size)
{
	static char text[SCRAM_SERVER_MAX + 64];
	struct scram s;
	size_t n = size < SCRAM_SERVER_MAX ? size : SCRAM_SERVER_MAX;

	if (scram_begin(&s, SCRAM_NOT_OFFERED, SLICE("")) < 0)
		return;
	scram_challenge(&s, slice_of(data, size));
	memcpy(text, "r=", 2);
	memcpy(text + 2, s.nonce, SCRAM_NONCE);
	memcpy(text + 2 + SCRAM_NONCE, data, n);
	if (!scram_challenge(&s, slice_of(text, 2 + SCRAM_NONCE + n)))
		require(s.rounds >= SCRAM_ROUNDS_MIN && s.rounds <= SCRAM_ROUNDS_MAX &&
		        s.salt_n > 0 && s.full_n > SCRAM_NONCE);
	require(scram_verify(&s, slice_of(data, size)) || size > 0);
	scram_end(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_startup(data, size);
	check_message(data, size);
	check_scram(data, size);
	return 0;
}
