/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers to clients that no worker gives. A proof that is unknown, expired, revoked or from the
 * wrong network gets the same answer as a missing one, byte by byte.
 */
#include <stdio.h>

#include "gateway/visitor.h"
#include "vethguard/wire/client_hello.h"
#include "vethguard/wire/socks5.h"

#define ANSWER_MAX 1024
#define METHOD_MAX 64
#define PREFLIGHT_MAX 2048 /* bytes of the fields that a page may send */

static const char prove[] =
        "This proxy takes the token of a session: as \"Proxy-Authorization: Bearer TOKEN\", or as "
        "the password of Basic. A token that has expired or was revoked is refused like an unknown "
        "one.\n";
static const char prove_base[] =
        "A base URL needs the token of a session: https://GATEWAY/s/TOKEN/https/HOST/..., or where "
        "a "
        "name of the gateway stands for a host, the token as \"Authorization: Bearer TOKEN\". A "
        "token "
        "that has expired or was revoked is refused like an unknown one.\n";
static const char prove_callback[] =
        "A question about a request needs the token of a session for callbacks, as "
        "\"X-Vethguard-Token: TOKEN\"; a callback of a provider needs the provider's signature "
        "too. A token or signature that has expired, was revoked or was used before is refused "
        "like "
        "an unknown one.\n";
static const char away[] = "The session exists, but nothing serves it at the moment. Try again.\n";

/* Pages in a browser may read the answer. */
#define CROSS_ORIGIN                         \
	"Access-Control-Allow-Origin: *\r\n" \
	"Cross-Origin-Resource-Policy: cross-origin\r\n"

static const char *phrase(unsigned status)
{
	switch (status) {
	case 401:
		return "Unauthorized";
	case 407:
		return "Proxy Authentication Required";
	case 413:
		return "Content Too Large";
	case 431:
		return "Request Header Fields Too Large";
	case 501:
		return "Not Implemented";
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
	static const char base_challenge[] = "WWW-Authenticate: Bearer realm=\"vethguard\"\r\n";
	const bool base = message_form_is_base(c->form);
	char out[ANSWER_MAX];
	int n = snprintf(out, sizeof(out),
	        "HTTP/1.1 %u %s\r\n%s%sContent-Type: text/plain\r\nContent-Length: "
	        "%zu\r\nConnection: close\r\n%s\r\n%s",
	        status, phrase(status),
	        status == 407           ? challenges
	        : status == 401 && base ? base_challenge
	                                : "",
	        status == 503 ? "Retry-After: 1\r\n" : "", strlen(text),
	        base                             ? CROSS_ORIGIN
	        : message_form_is_asked(c->form) ? "Cache-Control: no-store\r\n"
	                                         : "Proxy-Connection: close\r\n",
	        text);

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

void visitor_alert(struct visitor *c, uint8_t description)
{
	/* A fatal alert in a record of its own (RFC 8446 sections 5.1 and 6). */
	const uint8_t alert[] = {21, 3, 3, 0, 2, 2, description};

	front_write(&c->front, alert, sizeof(alert));
}

static void end(struct visitor *c)
{
	front_end(&c->front);
	visitor_enter(c, VISITOR_LINGER);
	loop_deadline_set(&c->gateway->waits[WAIT_LINGER], &c->deadline);
}

void visitor_answer(struct visitor *c, enum answer answer, unsigned status, const char *why)
{
	char text[ANSWER_MAX / 2];

	visitor_leave_question(c);
	if (c->tls_inside) {
		visitor_alert(c, answer == ANSWER_PROVE       ? TLS_ALERT_ACCESS_DENIED
		                 : answer == ANSWER_MALFORMED ? c->alert
		                                              : TLS_ALERT_INTERNAL_ERROR);
	} else if (c->socks) {
		answer_socks(c, answer);
	} else if (answer == ANSWER_PROVE) {
		if (c->form == MESSAGE_FORM_PROXY)
			answer_http(c, 407, prove);
		else if (message_form_is_asked(c->form))
			answer_http(c, 401, prove_callback);
		else
			answer_http(c, 401, prove_base);
	} else if (answer == ANSWER_AWAY) {
		answer_http(c, 503, away);
	} else {
		snprintf(text, sizeof(text), "The gateway does not take this request: %s.\n", why);
		answer_http(c, status, text);
	}
	end(c);
}

/* True if text may be echoed: names of fields with commas between. */
static bool is_list(struct slice text)
{
	for (size_t i = 0; i < text.n; i++)
		if (slice_token_length(slice_of(text.p + i, 1)) != 1 && text.p[i] != ',' &&
		        text.p[i] != ' ')
			return false;
	return text.n <= PREFLIGHT_MAX;
}

void visitor_answer_preflight(struct visitor *c, struct slice method, struct slice fields)
{
	char out[ANSWER_MAX + PREFLIGHT_MAX];
	int n;

	if (method.n > METHOD_MAX || !is_list(fields)) {
		visitor_answer(c, ANSWER_MALFORMED, 400,
		        "Access-Control-Request-Headers is not a list of names");
		return;
	}
	n = snprintf(out, sizeof(out),
	        "HTTP/1.1 204 No Content\r\n" CROSS_ORIGIN
	        "Access-Control-Allow-Methods: %.*s\r\n%s%.*s%sAccess-Control-Max-Age: "
	        "7200\r\nVary: Origin, Access-Control-Request-Method, "
	        "Access-Control-Request-Headers\r\nConnection: close\r\n\r\n",
	        SLICE_ARG(method), fields.n ? "Access-Control-Allow-Headers: " : "",
	        SLICE_ARG(fields), fields.n ? "\r\n" : "");
	front_write(&c->front, out, (size_t)n);
	end(c);
}
