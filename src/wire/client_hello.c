/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two passes. The first walks the TLS records and gathers the handshake message in them (RFC 8446
 * section 5.1 allows any split); only this pass can answer "more". The second reads the complete
 * message with a sticky cursor, so that any wrong length in it is an error and never a reason to
 * wait. Whatever two readers could understand in two ways is refused: a repeated extension, a
 * second name, bytes after the message in its last record. Each refusal has its alert: decode_error
 * unless another one is set.
 */
#include "vethguard/wire/client_hello.h"

#define RECORD_HEADER_BYTES 5
#define RECORD_LEAST 20 /* change_cipher_spec, the lowest record type */
#define RECORD_HANDSHAKE 22
#define RECORD_MOST 24
#define VERSION_MAJOR 3
#define VERSION_LEAST 0x0300
#define SSLV2_HELLO_BYTES 5 /* bytes that identify it */
#define RECORD_FRAGMENT_MAX 16384
#define HANDSHAKE_HEADER_BYTES 4
#define HANDSHAKE_CLIENT_HELLO 1
#define RANDOM_BYTES 32
#define SESSION_ID_MAX 32

enum extension {
	EXTENSION_SERVER_NAME = 0,
	EXTENSION_ALPN = 16,
	EXTENSION_SUPPORTED_VERSIONS = 43,
	EXTENSION_ECH = 0xfe0d
};

struct handshake {
	uint8_t bytes[CLIENT_HELLO_MAX];
	size_t len;  /* bytes gathered */
	size_t need; /* bytes of the whole message once its header is complete; else 0 */
	uint8_t alert;
};

/* Sets the alert for a refusal. Returns false, for the caller to return. */
static bool refuse(uint8_t *alert, uint8_t description)
{
	*alert = description;
	return false;
}

/* Appends one fragment. False: it cannot be part of a ClientHello. */
static bool gather(struct handshake *h, struct slice fragment)
{
	size_t room = sizeof(h->bytes) - h->len;

	if (fragment.n > room)
		return refuse(&h->alert, TLS_ALERT_ILLEGAL_PARAMETER);
	memcpy(h->bytes + h->len, fragment.p, fragment.n);
	h->len += fragment.n;
	if (h->len && h->bytes[0] != HANDSHAKE_CLIENT_HELLO)
		return refuse(&h->alert, TLS_ALERT_UNEXPECTED_MESSAGE);
	if (h->len >= HANDSHAKE_HEADER_BYTES && h->need == 0) {
		h->need = HANDSHAKE_HEADER_BYTES +
		          ((size_t)h->bytes[1] << 16 | (size_t)h->bytes[2] << 8 | h->bytes[3]);
		if (h->need > sizeof(h->bytes))
			return refuse(&h->alert, TLS_ALERT_ILLEGAL_PARAMETER);
	}
	return h->need == 0 || h->len <= h->need || refuse(&h->alert, TLS_ALERT_UNEXPECTED_MESSAGE);
}

/* The first bytes tell TLS from anything else: a handshake record of a version 3.x. */
static bool looks_like_tls(const uint8_t *p, size_t n)
{
	return (n < 1 || p[0] == RECORD_HANDSHAKE) && (n < 2 || p[1] == VERSION_MAJOR);
}

/* Walks one record, as far as it has arrived. */
static enum client_hello_status walk_record(struct reader *r, struct handshake *h)
{
	size_t n;
	struct slice fragment;

	if (!looks_like_tls(r->p, r->left)) {
		refuse(&h->alert, TLS_ALERT_UNEXPECTED_MESSAGE);
		return CLIENT_HELLO_BAD;
	}
	if (r->left < RECORD_HEADER_BYTES)
		return CLIENT_HELLO_MORE;
	reader_bytes(r, 3);
	n = reader_u16(r);
	if (n == 0 || n > RECORD_FRAGMENT_MAX) {
		refuse(&h->alert, n ? TLS_ALERT_RECORD_OVERFLOW : TLS_ALERT_UNEXPECTED_MESSAGE);
		return CLIENT_HELLO_BAD;
	}
	fragment = reader_bytes(r, n < r->left ? n : r->left);
	if (!gather(h, fragment))
		return CLIENT_HELLO_BAD;
	/* a record longer than its content may be is wrong before its end arrives */
	if (h->need && n - fragment.n > h->need - h->len) {
		refuse(&h->alert, TLS_ALERT_UNEXPECTED_MESSAGE);
		return CLIENT_HELLO_BAD;
	}
	return fragment.n < n ? CLIENT_HELLO_MORE : CLIENT_HELLO_DONE;
}

static enum client_hello_status walk_records(struct reader r, bool at_limit, struct handshake *h)
{
	enum client_hello_status status = CLIENT_HELLO_DONE;

	while (status == CLIENT_HELLO_DONE && (h->need == 0 || h->len < h->need))
		status = walk_record(&r, h);
	if (status != CLIENT_HELLO_MORE || !at_limit)
		return status;
	refuse(&h->alert, TLS_ALERT_ILLEGAL_PARAMETER);
	return CLIENT_HELLO_BAD;
}

/* RFC 6066 section 3: one host_name; no other type of name exists. */
static bool read_server_name(struct slice data, struct client_hello *out)
{
	struct reader outer = reader_over(data.p, data.n);
	struct slice list = reader_vector(&outer, 2, UINT16_MAX);
	struct reader r = reader_over(list.p, list.n);
	uint8_t type = reader_u8(&r);
	struct slice name = reader_vector(&r, 2, sizeof(out->sni) - 1);

	if (!reader_done(&outer) || !reader_done(&r) || type != 0 || name.n == 0)
		return false;
	for (size_t i = 0; i < name.n; i++)
		if (name.p[i] <= ' ' || name.p[i] >= 0x7f)
			return refuse(&out->alert, TLS_ALERT_UNRECOGNIZED_NAME);
	memcpy(out->sni, name.p, name.n);
	out->sni[name.n] = '\0';
	out->sni_n = name.n;
	return true;
}

/* RFC 7301 section 3.1. */
static bool read_alpn(struct slice data, struct client_hello *out)
{
	struct reader outer = reader_over(data.p, data.n);
	struct slice list = reader_vector(&outer, 2, UINT16_MAX);
	struct reader r = reader_over(list.p, list.n);

	if (!reader_done(&outer) || list.n == 0)
		return false;
	while (r.left) {
		struct slice name = reader_vector(&r, 1, UINT8_MAX);

		if (name.n == 0)
			return false;
		if (slice_equals(name, SLICE("h2")))
			out->alpn_h2 = true;
		else if (slice_equals(name, SLICE("http/1.1")))
			out->alpn_http11 = true;
		else
			out->alpn_other = true;
	}
	out->has_alpn = true;
	return !r.failed;
}

/* RFC 8446 section 4.2.1. Values that are not TLS versions (GREASE, drafts) do not count. */
static bool read_supported_versions(struct slice data, struct client_hello *out)
{
	struct reader outer = reader_over(data.p, data.n);
	struct slice list = reader_vector(&outer, 1, UINT8_MAX);
	struct reader r = reader_over(list.p, list.n);
	uint16_t highest = 0;

	if (!reader_done(&outer) || list.n == 0 || list.n % 2)
		return false;
	while (r.left) {
		uint16_t version = reader_u16(&r);

		if (version >> 8 == 3 && version > highest)
			highest = version;
	}
	if (highest)
		out->version = highest;
	return !r.failed;
}

static bool read_extension(uint16_t type, struct slice data, struct client_hello *out)
{
	switch (type) {
	case EXTENSION_SERVER_NAME:
		return read_server_name(data, out);
	case EXTENSION_ALPN:
		return read_alpn(data, out);
	case EXTENSION_SUPPORTED_VERSIONS:
		return read_supported_versions(data, out);
	case EXTENSION_ECH:
		out->ech = true;
		return true;
	default:
		return true;
	}
}

static bool read_extensions(struct slice list, struct client_hello *out)
{
	uint8_t seen[(UINT16_MAX + 1) / 8] = {0};
	struct reader r = reader_over(list.p, list.n);

	while (r.left) {
		uint16_t type = reader_u16(&r);
		struct slice data = reader_vector(&r, 2, UINT16_MAX);
		uint8_t bit = (uint8_t)(1u << (type & 7));

		if (r.failed)
			return false;
		if (seen[type >> 3] & bit)
			return refuse(&out->alert, TLS_ALERT_ILLEGAL_PARAMETER);
		if (!read_extension(type, data, out))
			return false;
		seen[type >> 3] |= bit;
	}
	return !r.failed;
}

static bool read_hello(struct slice body, struct client_hello *out)
{
	struct reader r = reader_over(body.p, body.n);
	struct slice suites, compressions;

	out->version = reader_u16(&r);
	reader_bytes(&r, RANDOM_BYTES);
	reader_vector(&r, 1, SESSION_ID_MAX);
	suites = reader_vector(&r, 2, UINT16_MAX);
	compressions = reader_vector(&r, 1, UINT8_MAX);
	if (r.failed || suites.n == 0 || suites.n % 2)
		return false;
	if (out->version < VERSION_LEAST)
		return refuse(&out->alert, TLS_ALERT_PROTOCOL_VERSION);
	if (slice_find_byte(compressions, '\0') < 0)
		return refuse(&out->alert, TLS_ALERT_ILLEGAL_PARAMETER);
	if (r.left == 0) /* TLS 1.2 and older may have no extensions */
		return true;
	return read_extensions(reader_vector(&r, 2, UINT16_MAX), out) && reader_done(&r);
}

/* Clears everything but the alert of a bad hello. */
static enum client_hello_status bad(struct client_hello *out, uint8_t alert)
{
	memset(out, 0, sizeof(*out));
	out->alert = alert ? alert : TLS_ALERT_DECODE_ERROR;
	return CLIENT_HELLO_BAD;
}

enum client_hello_status client_hello_parse(const uint8_t *p, size_t n, struct client_hello *out)
{
	struct handshake h;
	enum client_hello_status status;
	bool at_limit = n >= CLIENT_HELLO_MAX;
	struct slice body;

	memset(out, 0, sizeof(*out));
	if (!looks_like_tls(p, n))
		return CLIENT_HELLO_NOT_TLS;
	h.len = 0;
	h.need = 0;
	h.alert = 0;
	status = walk_records(reader_over(p, at_limit ? CLIENT_HELLO_MAX : n), at_limit, &h);
	if (status == CLIENT_HELLO_BAD)
		return bad(out, h.alert);
	if (status != CLIENT_HELLO_DONE)
		return status;
	body = slice_of(h.bytes + HANDSHAKE_HEADER_BYTES, h.need - HANDSHAKE_HEADER_BYTES);
	return read_hello(body, out) ? CLIENT_HELLO_DONE : bad(out, out->alert);
}

/* True for two length bytes (the first with its highest bit set), client_hello, and version 2, or
 * 3.x from a client that also supports TLS. */
static bool looks_like_sslv2(const uint8_t *p, size_t n)
{
	if (n < 1 || !(p[0] & 0x80) || (n > 2 && p[2] != HANDSHAKE_CLIENT_HELLO))
		return false;
	return n < 4 || p[3] == VERSION_MAJOR || (p[3] == 0 && (n < 5 || p[4] == 2));
}

static bool looks_like_record(const uint8_t *p, size_t n)
{
	return n >= 1 && p[0] >= RECORD_LEAST && p[0] <= RECORD_MOST &&
	       (n < 2 || p[1] == VERSION_MAJOR);
}

uint8_t client_hello_stray_alert(const uint8_t *p, size_t n, bool *more)
{
	bool sslv2 = looks_like_sslv2(p, n), record = looks_like_record(p, n);

	*more = n < SSLV2_HELLO_BYTES && (sslv2 || record);
	if (*more)
		return 0;
	return sslv2 ? TLS_ALERT_PROTOCOL_VERSION : record ? TLS_ALERT_UNEXPECTED_MESSAGE : 0;
}
