/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transparent TLS: a connection that was not made for a proxy. Its ClientHello names the host. The
 * session is proved by the client's address (on a listener for transparent TLS), or by the client's
 * certificate in a TLS connection around this one. The worker gets a SOCKS5 request for port 443 of
 * that host, and then the client's bytes. It ends the inner TLS with the session's CA.
 *
 * The client speaks no proxy protocol, so a refusal is a TLS alert.
 */
#include <errno.h>

#include "gateway/visitor.h"
#include "vethguard/policy/url.h"
#include "vethguard/wire/client_hello.h"
#include "vethguard/wire/socks5.h"

#define HTTPS_PORT 443
#define GREETING_ANSWER 2 /* bytes of the worker's answer to the greeting */
#define REPLY_AT (GREETING_ANSWER + 1)

/* Writes the greeting and the request that the client would send if it spoke SOCKS5. */
static int write_request(struct visitor *c, const char *host, size_t n)
{
	const uint8_t begin[] = {
	        SOCKS5_VERSION, 1, SOCKS5_NO_AUTHENTICATION, SOCKS5_VERSION, 1, 0, 3, (uint8_t)n};
	const uint8_t port[] = {HTTPS_PORT >> 8, HTTPS_PORT & 0xff};
	struct buf *out = &c->back.unsent;
	int rc = buf_append(out, begin, sizeof(begin));

	rc = rc ? rc : buf_append(out, host, n);
	rc = rc ? rc : buf_append(out, port, sizeof(port));
	return rc ? rc : buf_append(out, buf_bytes(&c->in), c->in.len);
}

static void refuse(struct visitor *c, uint8_t alert)
{
	c->alert = alert;
	visitor_answer(c, ANSWER_MALFORMED, 0, "");
}

/* Refuses at once and counts no wrong proof: addresses and certificates cannot be guessed. */
static void go_on(struct visitor *c, const struct client_hello *hello)
{
	struct session *s = c->transparent ? sessions_find_address(c->gateway, &c->source)
	                                   : visitor_certified(c);
	char host[POLICY_HOST_MAX + 1];
	struct ip address;
	size_t n;

	if (!s) {
		visitor_answer(c, ANSWER_PROVE, 0, "");
		return;
	}
	if (!hello->sni_n || ip_parse(slice_of(hello->sni, hello->sni_n), &address) ||
	        !url_canonical_host(slice_of(hello->sni, hello->sni_n), host, &n)) {
		refuse(c, TLS_ALERT_UNRECOGNIZED_NAME);
		return;
	}
	if (write_request(c, host, n) != 0) {
		visitor_close(c);
		return;
	}
	buf_fini(&c->in);
	c->back.swallow = GREETING_ANSWER + SOCKS5_ANSWER_BYTES;
	c->form = MESSAGE_FORM_PROXY;
	c->tunnel = true;
	visitor_prove(c, s);
}

bool visitor_hello(struct visitor *c)
{
	struct client_hello hello;

	for (;;) {
		const size_t n = c->in.len < CLIENT_HELLO_MAX ? c->in.len : CLIENT_HELLO_MAX;

		switch (client_hello_parse(buf_bytes(&c->in), n, &hello)) {
		case CLIENT_HELLO_DONE:
			go_on(c, &hello);
			return c->state != VISITOR_CLOSED;
		case CLIENT_HELLO_MORE:
			break;
		case CLIENT_HELLO_NOT_TLS:
			refuse(c, TLS_ALERT_UNEXPECTED_MESSAGE);
			return true;
		case CLIENT_HELLO_BAD:
			refuse(c, hello.alert);
			return true;
		}
		if (!visitor_take_in(c))
			return false;
	}
}

void visitor_hello_answered(struct visitor *c, const uint8_t *p, size_t n)
{
	const size_t at = GREETING_ANSWER + SOCKS5_ANSWER_BYTES - (size_t)c->back.swallow;

	if (at <= REPLY_AT && at + n > REPLY_AT && p[REPLY_AT - at] != SOCKS5_SUCCEEDED)
		visitor_alert(c, TLS_ALERT_ACCESS_DENIED);
}
