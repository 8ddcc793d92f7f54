/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers to clients. A proof that is unknown, expired, revoked or from the wrong network gets the
 * same answer as a missing one, byte by byte.
 */
#include <stdio.h>

#include "gateway/visitor.h"
#include "vethguard/wire/socks5.h"

#define ANSWER_MAX 1024

static const char prove[] =
        "This proxy takes the token of a session: as \"Proxy-Authorization: Bearer TOKEN\", or as "
        "the password of Basic. A token that has expired or was revoked is refused like an unknown "
        "one.\n";
static const char away[] = "The session exists, but nothing serves it at the moment. Try again.\n";

static const char *phrase(unsigned status)
{
	switch (status) {
	case 407:
		return "Proxy Authentication Required";
	case 431:
		return "Request Header Fields Too Large";
	case 503:
		return "Service Unavailable";
	case 505:
		return "HTTP Version Not Supported";
	default:
		return "Bad Request";
	}
}

static void answer_http(struct visitor *c, unsigned status, const char *text)
{
	static const char challenges[] =
	        "Proxy-Authenticate: Basic realm=\"vethguard\", charset=\"UTF-8\"\r\n"
	        "Proxy-Authenticate: Bearer realm=\"vethguard\"\r\n";
	char out[ANSWER_MAX];
	int n = snprintf(out, sizeof(out),
	        "HTTP/1.1 %u %s\r\n%s%sContent-Type: text/plain\r\nContent-Length: "
	        "%zu\r\nConnection: close\r\nProxy-Connection: close\r\n\r\n%s",
	        status, phrase(status), status == 407 ? challenges : "",
	        status == 503 ? "Retry-After: 1\r\n" : "", strlen(text), text);

	front_write(&c->front, out, (size_t)n);
}

static void answer_socks(struct visitor *c, enum answer answer)
{
	static const uint8_t no_method[] = {SOCKS5_VERSION, SOCKS5_NO_METHOD};
	static const uint8_t refused[] = {SOCKS5_LOGIN_VERSION, SOCKS5_LOGIN_WRONG};

	if (answer == ANSWER_NO_METHOD)
		front_write(&c->front, no_method, sizeof(no_method));
	else if (answer != ANSWER_MALFORMED)
		front_write(&c->front, refused, sizeof(refused));
}

void visitor_answer(struct visitor *c, enum answer answer, unsigned status, const char *why)
{
	char text[ANSWER_MAX / 2];

	visitor_leave_question(c);
	if (c->socks) {
		answer_socks(c, answer);
	} else if (answer == ANSWER_PROVE) {
		answer_http(c, 407, prove);
	} else if (answer == ANSWER_AWAY) {
		answer_http(c, 503, away);
	} else {
		snprintf(text, sizeof(text), "This is no request that a proxy takes: %s.\n", why);
		answer_http(c, status, text);
	}
	front_end(&c->front);
	visitor_enter(c, VISITOR_LINGER);
	loop_deadline_set(&c->gateway->waits[WAIT_LINGER], &c->deadline);
}
