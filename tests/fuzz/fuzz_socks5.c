/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a greeting, a login, a request and a datagram of SOCKS5, as a server's answers, and
 * as a token. Beyond memory safety: the answer for a prefix never contradicts the answer for more
 * of the same bytes, what is accepted lies within what came, and what is refused has a reply, a
 * reason and nothing else.
 */
#include <stdint.h>
#include <stdlib.h>

#include "vethguard/wire/socks5.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool fact)
{
	if (!fact)
		abort();
}

static void check_greeting(const uint8_t *data, size_t size)
{
	struct socks5_greeting g, shorter;
	enum socks5_status status = socks5_greeting_parse(data, size, &g);
	enum socks5_status before = socks5_greeting_parse(data, size / 2, &shorter);

	require(g.used <= size && g.used <= SOCKS5_GREETING_MAX);
	require((status == SOCKS5_DONE) == (g.used != 0));
	require((status == SOCKS5_BAD) == (*g.why != 0));
	require(status != SOCKS5_MORE || size < SOCKS5_GREETING_MAX);
	require(before == SOCKS5_MORE || before == status);
	require(before != SOCKS5_DONE ||
	        (shorter.used == g.used && shorter.password == g.password &&
	                shorter.no_authentication == g.no_authentication));
}

static bool lies_in(struct slice s, const uint8_t *data, size_t n)
{
	return !s.n || ((const uint8_t *)s.p >= data && (const uint8_t *)s.p + s.n <= data + n);
}

static void check_login(const uint8_t *data, size_t size)
{
	struct socks5_login l, shorter;
	enum socks5_status status = socks5_login_parse(data, size, &l);
	enum socks5_status before = socks5_login_parse(data, size / 2, &shorter);

	require(l.used <= size && l.used <= SOCKS5_LOGIN_MAX);
	require((status == SOCKS5_DONE) == (l.used != 0));
	require((status == SOCKS5_BAD) == (*l.why != 0));
	require(status != SOCKS5_MORE || size < SOCKS5_LOGIN_MAX);
	require(before == SOCKS5_MORE || before == status);
	require(before != SOCKS5_DONE || shorter.used == l.used);
	require(lies_in(l.user, data, l.used) && lies_in(l.password, data, l.used));
	require(status == SOCKS5_DONE || (!l.user.n && !l.password.n));
}

static void check_request(const uint8_t *data, size_t size)
{
	struct socks5_request r, shorter;
	enum socks5_status status = socks5_request_parse(data, size, &r);
	enum socks5_status before = socks5_request_parse(data, size / 2, &shorter);

	require(r.used <= size && r.used <= SOCKS5_REQUEST_MAX);
	require((status == SOCKS5_DONE) == (r.used != 0));
	require((status == SOCKS5_BAD) == (*r.why != 0));
	require((status == SOCKS5_BAD) == (r.reply != SOCKS5_SUCCEEDED));
	require(status == SOCKS5_DONE || r.port == 0);
	require(status != SOCKS5_DONE || r.port != 0 || r.command == SOCKS5_UDP_ASSOCIATE);
	require((status == SOCKS5_DONE) ==
	        (r.command == SOCKS5_CONNECT || r.command == SOCKS5_UDP_ASSOCIATE));
	require((status == SOCKS5_DONE) == (r.name.n != 0 || r.address.family != 0));
	require(!r.name.n || !r.address.family);
	require(status != SOCKS5_MORE || size < SOCKS5_REQUEST_MAX);
	require(before == SOCKS5_MORE || before == status);
	if (r.name.n)
		require((const uint8_t *)r.name.p >= data &&
		        (const uint8_t *)r.name.p + r.name.n <= data + r.used);
}

/* A header that was read is written again as it came. */
static void check_header(const uint8_t *data, size_t size)
{
	uint8_t again[SOCKS5_HEADER_MAX];
	struct socks5_header h, shorter;
	bool good = socks5_header_parse(data, size, &h);

	require(h.used <= size && h.used <= SOCKS5_HEADER_MAX);
	require(good == (h.used != 0) && good == (h.port != 0));
	require(good == (h.name.n != 0 || h.address.family != 0));
	require(!h.name.n || !h.address.family);
	if (!good)
		return;
	require(lies_in(h.name, data, h.used));
	require(socks5_header_write(h.name, &h.address, h.port, again) == h.used);
	require(memcmp(again, data, h.used) == 0);
	require(!socks5_header_parse(data, h.used - 1, &shorter));
	require(socks5_header_parse(data, h.used, &shorter) && shorter.used == h.used);
}

static void check_association(const uint8_t *data, size_t size)
{
	struct socks5_association a, shorter;
	enum socks5_status status = socks5_association_parse(data, size, &a);
	enum socks5_status before = socks5_association_parse(data, size / 2, &shorter);

	require(a.used <= size && a.used <= SOCKS5_ANSWERS_MAX);
	require((status == SOCKS5_DONE) == (a.used != 0));
	require((status == SOCKS5_DONE) == (a.port != 0));
	require((status == SOCKS5_DONE) == (a.address.family != 0));
	require((status == SOCKS5_BAD) == (*a.why != 0));
	require(status == SOCKS5_BAD || (!a.login_wrong && !a.reply));
	require(!a.login_wrong || !a.reply);
	require(status != SOCKS5_MORE || size < SOCKS5_ANSWERS_MAX);
	require(before == SOCKS5_MORE || before == status);
	require(before != SOCKS5_DONE || shorter.used == a.used);
}

/* A server reads the token that its client has written. */
static void check_ask(const uint8_t *data, size_t size)
{
	uint8_t out[SOCKS5_ASK_MAX];
	const size_t n = socks5_ask_association(slice_of(data, size), out);
	struct socks5_greeting g;
	struct socks5_login l;
	struct socks5_request r;
	size_t at;

	require(n <= sizeof(out) && (n == 0) == (!size || size > SOCKS5_TOKEN_MAX));
	if (!n)
		return;
	require(socks5_greeting_parse(out, n, &g) == SOCKS5_DONE && g.password);
	at = g.used;
	require(socks5_login_parse(out + at, n - at, &l) == SOCKS5_DONE);
	require(l.password.n == size || l.user.n + l.password.n == size);
	require(memcmp(l.password.p, data + size - l.password.n, l.password.n) == 0);
	at += l.used;
	require(socks5_request_parse(out + at, n - at, &r) == SOCKS5_DONE);
	require(r.command == SOCKS5_UDP_ASSOCIATE && at + r.used == n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	check_association(data, size);
	check_ask(data, size);
	check_header(data, size);
	check_greeting(data, size);
	check_login(data, size);
	check_request(data, size);
	return 0;
}
