/* SPDX-License-Identifier: Apache-2.0 */
/* client_hello: hand-made and real hellos, split at every byte over records and segments, and what
 * must be refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <openssl/ssl.h>

#include "vethguard/wire/client_hello.h"

/* --- a hello by hand: each part can be replaced --- */

struct parts {
	uint16_t legacy_version;
	struct slice session, suites, compressions;
	struct slice extensions; /* encoded list without its length */
	bool no_extensions;
	struct slice tail; /* inside the message, after the extensions */
};

static const struct parts usual = {
        .legacy_version = 0x0303,
        .session = {"0123456789abcdef0123456789abcdef", 32},
        .suites = {"\x13\x01\x13\x02", 4},
        .compressions = {"\0", 1},
        .tail = {"", 0},
};

static uint8_t message[70000];
static uint8_t records[70000];

static size_t make_message(const struct parts *parts)
{
	struct writer w = writer_over(message, sizeof(message));
	size_t n;

	writer_u8(&w, 1);
	writer_bytes(&w, "\0\0\0", 3);
	writer_u16(&w, parts->legacy_version);
	writer_bytes(&w, "rrrrrrrrrrrrrrrrrrrrrrrrrrrrrrrr", 32);
	writer_vector(&w, 1, parts->session);
	writer_vector(&w, 2, parts->suites);
	writer_vector(&w, 1, parts->compressions);
	if (!parts->no_extensions)
		writer_vector(&w, 2, parts->extensions);
	writer_bytes(&w, parts->tail.p, parts->tail.n);
	assert_false(w.failed);
	n = w.len - 4;
	message[1] = (uint8_t)(n >> 16);
	message[2] = (uint8_t)(n >> 8);
	message[3] = (uint8_t)n;
	return w.len;
}

/* Puts the message into records of at most piece bytes, the first of them of first bytes. */
static size_t make_records(size_t n, size_t first, size_t piece)
{
	struct writer w = writer_over(records, sizeof(records));
	size_t size = first;

	for (size_t at = 0; at < n; at += size, size = piece) {
		if (at && size != piece)
			size = piece;
		if (size > n - at)
			size = n - at;
		writer_u8(&w, 22);
		writer_u16(&w, 0x0301);
		writer_vector(&w, 2, slice_of(message + at, size));
		if (size == n - at)
			break;
	}
	assert_false(w.failed);
	return w.len;
}

static enum client_hello_status parse_parts(const struct parts *parts, struct client_hello *out)
{
	size_t n = make_message(parts);

	return client_hello_parse(records, make_records(n, 16384, 16384), out);
}

static enum client_hello_status parse_extensions(struct slice extensions, struct client_hello *out)
{
	struct parts parts = usual;

	parts.extensions = extensions;
	return parse_parts(&parts, out);
}

#define SNI_EXAMPLE                \
	"\0\0\0\x10\0\x0e\0\0\x0b" \
	"example.com"
#define ALPN_BOTH "\0\x10\0\x0e\0\x0c\2h2\x08http/1.1"
#define VERSIONS "\0\x2b\0\7\6\x1a\x1a\3\4\3\3"

static void reads_what_is_there(void **state)
{
	struct client_hello hello;

	(void)state;
	assert_int_equal(
	        parse_extensions(SLICE(SNI_EXAMPLE ALPN_BOTH VERSIONS), &hello), CLIENT_HELLO_DONE);
	assert_string_equal(hello.sni, "example.com");
	assert_int_equal(hello.sni_n, 11);
	assert_true(hello.has_alpn && hello.alpn_h2 && hello.alpn_http11);
	assert_false(hello.alpn_other);
	assert_false(hello.ech);
	assert_int_equal(hello.version, 0x0304);

	assert_int_equal(parse_extensions(SLICE("\xfe\x0d\0\3abc"
	                                        "\0\x10\0\5\0\3\2xx"),
	                         &hello),
	        CLIENT_HELLO_DONE);
	assert_true(hello.ech);
	assert_true(hello.alpn_other && hello.has_alpn);
	assert_false(hello.alpn_h2 || hello.alpn_http11);
	assert_string_equal(hello.sni, "");
	assert_int_equal(hello.version, 0x0303);

	assert_int_equal(parse_extensions(SLICE(""), &hello), CLIENT_HELLO_DONE);
	assert_false(hello.has_alpn);
}

static void needs_no_extensions(void **state)
{
	struct client_hello hello;
	struct parts parts = usual;

	(void)state;
	parts.no_extensions = true;
	parts.legacy_version = 0x0301;
	assert_int_equal(parse_parts(&parts, &hello), CLIENT_HELLO_DONE);
	assert_int_equal(hello.version, 0x0301);
	assert_int_equal(hello.sni_n, 0);
}

static void grease_is_no_version(void **state)
{
	struct client_hello hello;

	(void)state;
	assert_int_equal(
	        parse_extensions(SLICE("\0\x2b\0\5\4\xfa\xfa\x7f\x1c"), &hello), CLIENT_HELLO_DONE);
	assert_int_equal(hello.version, 0x0303);
	assert_int_equal(parse_extensions(SLICE("\0\x2b\0\3\2\3\2"), &hello), CLIENT_HELLO_DONE);
	assert_int_equal(hello.version, 0x0302);
}

static void refuses_bad_extensions(void **state)
{
	static const struct {
		const char *why;
		struct slice bytes;
	} rows[] = {
#define ROW(why, literal)                              \
	{                                              \
		why,                                   \
		{                                      \
			(literal), sizeof(literal) - 1 \
		}                                      \
	}
	        ROW("two names in one list", "\0\0\0\x0a\0\x08\0\0\1a\0\0\1b"),
	        ROW("the same name twice", "\0\0\0\x0a\0\x08\0\0\1a\0\0\1a"),
	        ROW("two server_name extensions", "\0\0\0\6\0\4\0\0\1a\0\0\0\6\0\4\0\0\1b"),
	        ROW("a name of another type", "\0\0\0\6\0\4\1\0\1a"),
	        ROW("a name and one of another type", "\0\0\0\x0a\0\x08\0\0\1a\1\0\1b"),
	        ROW("an empty name", "\0\0\0\5\0\3\0\0\0"),
	        ROW("an empty list", "\0\0\0\2\0\0"),
	        ROW("an empty server_name", "\0\0\0\0"),
	        ROW("bytes after the list", "\0\0\0\7\0\4\0\0\1ax"),
	        ROW("list longer than the extension", "\0\0\0\6\0\5\0\0\1a"),
	        ROW("name longer than the list", "\0\0\0\6\0\4\0\0\2a"),
	        ROW("NUL in the name", "\0\0\0\x08\0\6\0\0\3a\0b"),
	        ROW("space in the name", "\0\0\0\x08\0\6\0\0\3a b"),
	        ROW("newline in the name", "\0\0\0\x08\0\6\0\0\3a\nb"),
	        ROW("byte beyond ASCII in the name", "\0\0\0\x08\0\6\0\0\3a\xe4"
	                                             "b"),
	        ROW("DEL in the name", "\0\0\0\x08\0\6\0\0\3a\x7f"
	                               "b"),
	        ROW("an unknown extension twice", "\x0a\x0a\0\0\x0a\x0a\0\0"),
	        ROW("half an extension header", "\0\x17\0"),
	        ROW("extension longer than the list", "\0\x17\0\1"),
	        ROW("empty ALPN list", "\0\x10\0\2\0\0"),
	        ROW("empty ALPN name", "\0\x10\0\3\0\1\0"),
	        ROW("empty ALPN", "\0\x10\0\0"),
	        ROW("ALPN name too long", "\0\x10\0\5\0\3\3h2"),
	        ROW("ALPN with a tail", "\0\x10\0\6\0\3\2h2x"),
	        ROW("odd list of versions", "\0\x2b\0\4\3\3\4\3"),
	        ROW("no versions", "\0\x2b\0\1\0"),
	        ROW("versions with a tail", "\0\x2b\0\4\2\3\4x"),
	        ROW("versions cut short", "\0\x2b\0\2\2\3"),
#undef ROW
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct client_hello hello;

		memset(&hello, 0xff, sizeof(hello));
		if (parse_extensions(rows[i].bytes, &hello) != CLIENT_HELLO_BAD)
			fail_msg("%s", rows[i].why);
		assert_int_equal(hello.sni_n, 0); /* nothing of a bad hello is handed out */
		assert_int_equal(hello.version, 0);
	}
}

static void refuses_bad_bodies(void **state)
{
	struct client_hello hello;
	struct parts parts = usual;

	(void)state;
	parts.tail = SLICE("x");
	assert_int_equal(parse_parts(&parts, &hello), CLIENT_HELLO_BAD);
	parts = usual;
	parts.no_extensions = true;
	parts.tail = SLICE("\0");
	assert_int_equal(parse_parts(&parts, &hello), CLIENT_HELLO_BAD);
	parts = usual;
	parts.suites = SLICE("");
	assert_int_equal(parse_parts(&parts, &hello), CLIENT_HELLO_BAD);
	parts.suites = SLICE("\x13\x01\x13");
	assert_int_equal(parse_parts(&parts, &hello), CLIENT_HELLO_BAD);
	parts = usual;
	parts.compressions = SLICE("");
	assert_int_equal(parse_parts(&parts, &hello), CLIENT_HELLO_BAD);
	parts.compressions = SLICE("\1");
	assert_int_equal(parse_parts(&parts, &hello), CLIENT_HELLO_BAD);
	parts = usual;
	parts.session = SLICE("0123456789abcdef0123456789abcdef0");
	assert_int_equal(parse_parts(&parts, &hello), CLIENT_HELLO_BAD);
}

/* The alert and the reason of a refusal. */
static void refusals_have_alerts(void **state)
{
	static const struct {
		const char *why;
		uint8_t alert;
		struct slice bytes; /* of a record */
	} rows[] = {
#define ROW(why, alert, literal)                                    \
	{                                                           \
		why, TLS_ALERT_##alert,                             \
		{                                                   \
			"\x16\3\1" literal, sizeof(literal) - 1 + 3 \
		}                                                   \
	}
	        ROW("an empty record", UNEXPECTED_MESSAGE, "\0\0"),
	        ROW("a record of 16385 bytes", RECORD_OVERFLOW, "\x40\1"),
	        ROW("a record of 65535 bytes", RECORD_OVERFLOW, "\xff\xff"),
	        ROW("a ServerHello", UNEXPECTED_MESSAGE, "\0\1\2"),
	        ROW("an alert in between", UNEXPECTED_MESSAGE, "\0\1\1\x15\3\1\0\2\2\x28"),
	        ROW("another message behind it", UNEXPECTED_MESSAGE, "\0\x0a\1\0\0\5\3\3"),
	        ROW("a message of 65536 bytes", ILLEGAL_PARAMETER, "\0\4\1\1\0\0"),
	        ROW("a message of 16 KiB", ILLEGAL_PARAMETER, "\0\4\1\0\x3f\xfd"),
	        ROW("an empty message", DECODE_ERROR, "\0\4\1\0\0\0"),
	        ROW("a message cut short", DECODE_ERROR, "\0\6\1\0\0\2\3\3"),
#undef ROW
	};
	struct client_hello hello;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (client_hello_parse((const uint8_t *)rows[i].bytes.p, rows[i].bytes.n, &hello) !=
		                CLIENT_HELLO_BAD ||
		        hello.alert != rows[i].alert)
			fail_msg("%s: %u", rows[i].why, hello.alert);
}

static uint8_t alert_of(const struct parts *parts)
{
	struct client_hello hello;

	return parse_parts(parts, &hello) == CLIENT_HELLO_BAD ? hello.alert : 0;
}

static void refused_bodies_have_alerts(void **state)
{
	static const struct {
		const char *why;
		uint8_t alert;
		struct slice extensions;
	} rows[] = {
	        {"an extension twice", TLS_ALERT_ILLEGAL_PARAMETER,
	                {"\x0a\x0a\0\0\x0a\x0a\0\0", 8}},
	        {"a blank in a name", TLS_ALERT_UNRECOGNIZED_NAME, {"\0\0\0\x08\0\6\0\0\3a b", 12}},
	        {"two names", TLS_ALERT_DECODE_ERROR, {"\0\0\0\x0a\0\x08\0\0\1a\0\0\1b", 14}},
	        {"another kind of name", TLS_ALERT_DECODE_ERROR, {"\0\0\0\6\0\4\1\0\1a", 10}},
	        {"an empty name", TLS_ALERT_DECODE_ERROR, {"\0\0\0\5\0\3\0\0\0", 9}},
	        {"an empty ALPN list", TLS_ALERT_DECODE_ERROR, {"\0\x10\0\2\0\0", 6}},
	        {"half an extension", TLS_ALERT_DECODE_ERROR, {"\0\x17\0", 3}},
	};
	struct parts parts = usual;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		parts.extensions = rows[i].extensions;
		if (alert_of(&parts) != rows[i].alert)
			fail_msg("%s: %u", rows[i].why, alert_of(&parts));
	}
	parts = usual;
	parts.legacy_version = 0x02ff;
	assert_int_equal(alert_of(&parts), TLS_ALERT_PROTOCOL_VERSION);
	parts = usual;
	parts.compressions = SLICE("\1");
	assert_int_equal(alert_of(&parts), TLS_ALERT_ILLEGAL_PARAMETER);
	parts = usual;
	parts.tail = SLICE("x");
	assert_int_equal(alert_of(&parts), TLS_ALERT_DECODE_ERROR);
}

/* RFC 8446 sections 4.2.1 and 5.1, appendix D: what is said there is passed over. */
static void versions_that_do_not_count(void **state)
{
	static const uint16_t legacy[] = {
	        0x0300, 0x0301, 0x0303, 0x0304, 0x0305, 0x03ff, 0x0400, 0x7f1c, 0xfefd, 0xffff};
	struct parts parts = usual;
	struct client_hello hello;

	(void)state;
	for (size_t i = 0; i < sizeof(legacy) / sizeof(legacy[0]); i++) {
		parts.legacy_version = legacy[i];
		parts.extensions = SLICE(SNI_EXAMPLE VERSIONS);
		assert_int_equal(parse_parts(&parts, &hello), CLIENT_HELLO_DONE);
		assert_int_equal(hello.version, 0x0304);
		assert_string_equal(hello.sni, "example.com");
		parts.extensions = SLICE("");
		assert_int_equal(parse_parts(&parts, &hello), CLIENT_HELLO_DONE);
		assert_int_equal(hello.version, legacy[i]);
	}
	parts = usual;
	parts.extensions = SLICE(SNI_EXAMPLE);
	for (unsigned minor = 0; minor < 256; minor++) {
		size_t n = make_records(make_message(&parts), 20, 20);

		for (size_t at = 0; at < n; at += 5 + 20) /* each its own */
			records[at + 2] = (uint8_t)(minor + at);
		assert_int_equal(client_hello_parse(records, n, &hello), CLIENT_HELLO_DONE);
		assert_string_equal(hello.sni, "example.com");
	}
}

/* First bytes that get an alert although they are not a ClientHello, and those that get none. */
static void strays(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		int alert; /* -1: more has to come */
	} rows[] = {
	        {"", 0, 0},
	        {"\x80\x2e\1\0\2\0\x15", 7, TLS_ALERT_PROTOCOL_VERSION},
	        {"\x80\x2e\1\3\1\0\x15", 7, TLS_ALERT_PROTOCOL_VERSION},
	        {"\x80\x2e\1\3\4", 5, TLS_ALERT_PROTOCOL_VERSION},
	        {"\x80\x2e\1\0\3", 5, 0},
	        {"\x80\x2e\1\1", 4, 0},
	        {"\x80\x2e\2", 3, 0},
	        {"\x80", 1, -1},
	        {"\x80\x2e\1", 3, -1},
	        {"\x80\x2e\1\0", 4, -1},
	        {"\x15\3\1\0\2\2\x28", 7, TLS_ALERT_UNEXPECTED_MESSAGE},
	        {"\x17\3\3\0\1x", 6, TLS_ALERT_UNEXPECTED_MESSAGE},
	        {"\x14\3\3\0\1\1", 6, TLS_ALERT_UNEXPECTED_MESSAGE},
	        {"\x18\3\3\0\1", 5, TLS_ALERT_UNEXPECTED_MESSAGE},
	        {"\x17\3", 2, -1},
	        {"\x17\2\3\0\1", 5, 0},
	        {"\x19\3\3\0\1", 5, 0},
	        {"\x13\3\3\0\1", 5, 0},
	        {"SSH-2.0-x", 9, 0},
	        {"S", 1, 0},
	        {"\0\0\0\0\0", 5, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool more;
		int alert =
		        client_hello_stray_alert((const uint8_t *)rows[i].bytes, rows[i].n, &more);

		if ((more ? -1 : alert) != rows[i].alert)
			fail_msg("row %zu", i);
	}
}

static void names_hold_their_bound(void **state)
{
	for (size_t n = 250; n <= 260; n++) {
		uint8_t extension[300];
		struct writer w = writer_over(extension, sizeof(extension));
		struct client_hello hello;

		(void)state;
		writer_u16(&w, 0);
		writer_u16(&w, (uint16_t)(n + 5));
		writer_u16(&w, (uint16_t)(n + 3));
		writer_u8(&w, 0);
		writer_u16(&w, (uint16_t)n);
		for (size_t i = 0; i < n; i++)
			writer_u8(&w, 'a');
		assert_int_equal(parse_extensions(slice_of(extension, w.len), &hello),
		        n <= 253 ? CLIENT_HELLO_DONE : CLIENT_HELLO_BAD);
		assert_int_equal(hello.sni_n, n <= 253 ? n : 0);
		assert_int_equal(strlen(hello.sni), hello.sni_n);
	}
}

static void tells_tls_from_other_things(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		enum client_hello_status status;
	} rows[] = {
	        {"", 0, CLIENT_HELLO_MORE},
	        {"\x16", 1, CLIENT_HELLO_MORE},
	        {"\x16\3", 2, CLIENT_HELLO_MORE},
	        {"\x16\3\1", 3, CLIENT_HELLO_MORE},
	        {"\x16\3\1\0", 4, CLIENT_HELLO_MORE},
	        {"G", 1, CLIENT_HELLO_NOT_TLS},
	        {"GET / HTTP/1.1\r\n", 16, CLIENT_HELLO_NOT_TLS},
	        {"PRI * HTTP/2.0\r\n", 16, CLIENT_HELLO_NOT_TLS},
	        {"\x80\x2e\1\3\1", 5, CLIENT_HELLO_NOT_TLS},     /* SSLv2 framing */
	        {"\x15\3\1\0\2\2\x28", 7, CLIENT_HELLO_NOT_TLS}, /* an alert */
	        {"\x17\3\3\0\1x", 6, CLIENT_HELLO_NOT_TLS},
	        {"\x16\2", 2, CLIENT_HELLO_NOT_TLS},
	        {"\x16\3\5", 3, CLIENT_HELLO_MORE},
	        {"\x16\3\xff", 3, CLIENT_HELLO_MORE},
	        {"\x16\4", 2, CLIENT_HELLO_NOT_TLS},
	        {"\x16\3\1\0\0", 5, CLIENT_HELLO_BAD},   /* empty fragment */
	        {"\x16\3\1\x40\1", 5, CLIENT_HELLO_BAD}, /* 16385 bytes */
	        {"\x16\3\1\xff\xff", 5, CLIENT_HELLO_BAD},
	        {"\x16\3\1\0\1\2", 6, CLIENT_HELLO_BAD},           /* ServerHello */
	        {"\x16\3\1\0\4\0\0\0\0", 9, CLIENT_HELLO_BAD},     /* HelloRequest */
	        {"\x16\3\1\0\4\1\0\0\0", 9, CLIENT_HELLO_BAD},     /* empty hello */
	        {"\x16\3\1\0\4\1\1\0\0", 9, CLIENT_HELLO_BAD},     /* 65536 bytes announced */
	        {"\x16\3\1\0\4\1\0\x3f\xfd", 9, CLIENT_HELLO_BAD}, /* 16385 with its header */
	        {"\x16\3\1\0\1\1\x17", 7, CLIENT_HELLO_BAD},       /* application data in between */
	        {"\x16\3\1\0\1\1\x14\3\1\0\1\1", 12, CLIENT_HELLO_BAD},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct client_hello hello;

		if (client_hello_parse((const uint8_t *)rows[i].bytes, rows[i].n, &hello) !=
		        rows[i].status)
			fail_msg("row %zu", i);
	}
}

/* Every prefix is "more", the whole is done, and early data behind it does not matter. */
static void expect_every_prefix(const uint8_t *p, size_t n, const char *name)
{
	struct client_hello hello;
	uint8_t *copy;

	for (size_t i = 0; i < n; i++) {
		/* Each prefix in memory of its own size, so that a read past it is seen. */
		copy = test_malloc(i + 1);
		memcpy(copy + 1, p, i);
		if (client_hello_parse(copy + 1, i, &hello) != CLIENT_HELLO_MORE)
			fail_msg("prefix of %zu", i);
		test_free(copy);
	}
	assert_int_equal(client_hello_parse(p, n, &hello), CLIENT_HELLO_DONE);
	assert_string_equal(hello.sni, name);
	copy = test_malloc(n + 6);
	memcpy(copy, p, n);
	memcpy(copy + n, "\x17\3\3\0\1x", 6);
	assert_int_equal(client_hello_parse(copy, n + 6, &hello), CLIENT_HELLO_DONE);
	assert_string_equal(hello.sni, name);
	test_free(copy);
}

static void split_over_records_at_every_byte(void **state)
{
	struct parts parts = usual;
	struct client_hello hello;
	size_t n;

	(void)state;
	parts.extensions = SLICE(SNI_EXAMPLE ALPN_BOTH VERSIONS);
	n = make_message(&parts);
	for (size_t first = 1; first <= n; first++) {
		assert_int_equal(client_hello_parse(records, make_records(n, first, 16384), &hello),
		        CLIENT_HELLO_DONE);
		assert_string_equal(hello.sni, "example.com");
		assert_int_equal(client_hello_parse(records, make_records(n, first, first), &hello),
		        CLIENT_HELLO_DONE);
		assert_true(hello.alpn_h2);
	}
	expect_every_prefix(records, make_records(n, 1, 1), "example.com");
	expect_every_prefix(records, make_records(n, 3, 7), "example.com");
	expect_every_prefix(records, make_records(n, 16384, 1), "example.com");
}

static void refuses_bytes_behind_the_message_in_its_record(void **state)
{
	struct parts parts = usual;
	struct client_hello hello;
	size_t n;
	size_t total;

	(void)state;
	parts.extensions = SLICE(SNI_EXAMPLE);
	n = make_message(&parts);
	message[n] = 1;
	total = make_records(n + 1, 16384, 16384);
	assert_int_equal(client_hello_parse(records, total, &hello), CLIENT_HELLO_BAD);
	/* Already wrong when only the header of the record and of the message are there. */
	assert_int_equal(client_hello_parse(records, 9, &hello), CLIENT_HELLO_BAD);
	total = make_records(n + 1, n - 5, 16384);
	assert_int_equal(client_hello_parse(records, total, &hello), CLIENT_HELLO_BAD);
}

/* A hello of so many bytes of message, in one extension of padding. */
static size_t make_sized(size_t target)
{
	static uint8_t extensions[66000];
	struct parts parts = usual;
	struct writer w = writer_over(extensions, sizeof(extensions));
	size_t bare;

	parts.extensions = SLICE(SNI_EXAMPLE);
	bare = make_message(&parts);
	writer_bytes(&w, SNI_EXAMPLE, sizeof(SNI_EXAMPLE) - 1);
	writer_u16(&w, 21);
	writer_u16(&w, (uint16_t)(target - bare - 4));
	memset(extensions + w.len, 0, target - bare - 4);
	w.len += target - bare - 4;
	parts.extensions = slice_of(extensions, w.len);
	assert_int_equal(make_message(&parts), target);
	return target;
}

static void sixteen_kilobytes_are_the_bound(void **state)
{
	struct client_hello hello;
	size_t n = make_records(make_sized(CLIENT_HELLO_MAX - 5), 16384, 16384);

	(void)state;
	assert_int_equal(n, CLIENT_HELLO_MAX);
	assert_int_equal(client_hello_parse(records, n, &hello), CLIENT_HELLO_DONE);
	assert_string_equal(hello.sni, "example.com");
	assert_int_equal(client_hello_parse(records, n - 1, &hello), CLIENT_HELLO_MORE);

	n = make_records(make_sized(CLIENT_HELLO_MAX - 4), 16384, 16384);
	assert_int_equal(
	        client_hello_parse(records, CLIENT_HELLO_MAX - 1, &hello), CLIENT_HELLO_MORE);
	assert_int_equal(client_hello_parse(records, CLIENT_HELLO_MAX, &hello), CLIENT_HELLO_BAD);
	assert_int_equal(client_hello_parse(records, n, &hello), CLIENT_HELLO_BAD);

	/* Small records cannot make it wait for ever either. */
	n = make_records(make_sized(8000), 1, 1);
	assert_int_equal(
	        client_hello_parse(records, CLIENT_HELLO_MAX - 1, &hello), CLIENT_HELLO_MORE);
	assert_int_equal(client_hello_parse(records, n, &hello), CLIENT_HELLO_BAD);
}

/* The size of a hello with an X25519MLKEM768 key share, in segments of 1400 bytes. */
static void post_quantum_hellos(void **state)
{
	static uint8_t extensions[2000];
	struct writer w = writer_over(extensions, sizeof(extensions));
	struct parts parts = usual;
	struct client_hello hello;
	size_t n;

	(void)state;
	writer_u16(&w, 51);
	writer_u16(&w, 2 + 4 + 1216 + 4 + 32);
	writer_u16(&w, 4 + 1216 + 4 + 32);
	writer_u16(&w, 0x11ec);
	writer_u16(&w, 1216);
	memset(extensions + w.len, 'k', 1216);
	w.len += 1216;
	writer_u16(&w, 29);
	writer_u16(&w, 32);
	memset(extensions + w.len, 'x', 32);
	w.len += 32;
	writer_bytes(&w, VERSIONS, sizeof(VERSIONS) - 1);
	writer_u16(&w, 0xfe0d);
	writer_u16(&w, 250);
	memset(extensions + w.len, 'e', 250);
	w.len += 250;
	writer_bytes(&w, SNI_EXAMPLE, sizeof(SNI_EXAMPLE) - 1);
	parts.extensions = slice_of(extensions, w.len);
	n = make_records(make_message(&parts), 16384, 16384);
	assert_true(n > 1500);
	assert_int_equal(client_hello_parse(records, 1400, &hello), CLIENT_HELLO_MORE);
	assert_int_equal(client_hello_parse(records, n, &hello), CLIENT_HELLO_DONE);
	assert_string_equal(hello.sni, "example.com");
	assert_true(hello.ech);
	expect_every_prefix(records, n, "example.com");
}

/* --- real hellos, as OpenSSL writes them --- */

struct real {
	int min, max; /* protocol versions */
	const char *name;
	const uint8_t *alpn;
	unsigned alpn_n;
	const char *groups;
};

static size_t make_real(const struct real *real, uint8_t *out, size_t cap)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL *ssl = SSL_new(ctx);
	BIO *in = BIO_new(BIO_s_mem());
	BIO *sent = BIO_new(BIO_s_mem());
	int n;

	SSL_set_security_level(ssl, 0);
	SSL_set_min_proto_version(ssl, real->min);
	SSL_set_max_proto_version(ssl, real->max);
	if (real->name)
		SSL_set_tlsext_host_name(ssl, real->name);
	if (real->alpn)
		SSL_set_alpn_protos(ssl, real->alpn, real->alpn_n);
	if (real->groups)
		SSL_set1_groups_list(ssl, real->groups);
	SSL_set_bio(ssl, in, sent);
	SSL_set_connect_state(ssl);
	SSL_do_handshake(ssl);
	n = BIO_read(sent, out, (int)cap);
	assert_true(n > 0);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	return (size_t)n;
}

static void real_hellos(void **state)
{
	static const uint8_t both[] = "\2h2\x08http/1.1";
	static uint8_t many[4000];
	static const struct real rows[] = {
	        {TLS1_2_VERSION, TLS1_3_VERSION, "api.github.com", both, 12, NULL},
	        {TLS1_3_VERSION, TLS1_3_VERSION, "a.example", NULL, 0, "P-521"},
	        {TLS1_2_VERSION, TLS1_2_VERSION, "b.example", both + 3, 9, NULL},
	        {TLS1_2_VERSION, TLS1_3_VERSION, NULL, NULL, 0, NULL},
	        {TLS1_2_VERSION, TLS1_3_VERSION, "big.example", many, sizeof(many), NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(many); i += 4)
		memcpy(many + i, "\3h2x", 4);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		static uint8_t bytes[20000];
		struct client_hello hello;
		size_t n = make_real(&rows[i], bytes, sizeof(bytes));

		assert_int_equal(client_hello_parse(bytes, n, &hello), CLIENT_HELLO_DONE);
		assert_int_equal(hello.version, rows[i].max);
		assert_int_equal(hello.has_alpn, rows[i].alpn != NULL);
		assert_int_equal(hello.alpn_h2, rows[i].alpn == both);
		assert_int_equal(hello.alpn_other, rows[i].alpn == many);
		expect_every_prefix(bytes, n, rows[i].name ? rows[i].name : "");
		memcpy(message, bytes + 5, n - 5);
		expect_every_prefix(
		        records, make_records(n - 5, 2, 100), rows[i].name ? rows[i].name : "");
	}
}

/* Any one byte of a real hello changed, or any stretch cut out: never a crash, and a name only of
 * lawful bytes. */
static void survives_damage(void **state)
{
	static const struct real real = {
	        TLS1_2_VERSION, TLS1_3_VERSION, "damage.example", NULL, 0, NULL};
	static uint8_t bytes[2000];
	size_t n = make_real(&real, bytes, sizeof(bytes));
	size_t refused = 0;

	(void)state;
	for (size_t i = 0; i < n; i++) {
		for (int bit = 0; bit < 8; bit++) {
			struct client_hello hello;

			bytes[i] ^= (uint8_t)(1 << bit);
			refused += client_hello_parse(bytes, n, &hello) != CLIENT_HELLO_DONE;
			for (size_t j = 0; j < hello.sni_n; j++)
				assert_true(hello.sni[j] > ' ' && hello.sni[j] < 0x7f);
			bytes[i] ^= (uint8_t)(1 << bit);
		}
	}
	assert_true(refused > 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(reads_what_is_there),
	        cmocka_unit_test(needs_no_extensions),
	        cmocka_unit_test(grease_is_no_version),
	        cmocka_unit_test(refuses_bad_extensions),
	        cmocka_unit_test(refuses_bad_bodies),
	        cmocka_unit_test(refusals_have_alerts),
	        cmocka_unit_test(refused_bodies_have_alerts),
	        cmocka_unit_test(versions_that_do_not_count),
	        cmocka_unit_test(strays),
	        cmocka_unit_test(names_hold_their_bound),
	        cmocka_unit_test(tells_tls_from_other_things),
	        cmocka_unit_test(split_over_records_at_every_byte),
	        cmocka_unit_test(refuses_bytes_behind_the_message_in_its_record),
	        cmocka_unit_test(sixteen_kilobytes_are_the_bound),
	        cmocka_unit_test(post_quantum_hellos),
	        cmocka_unit_test(real_hellos),
	        cmocka_unit_test(survives_damage),
	};

	return cmocka_run_group_tests_name("client_hello", tests, NULL, NULL);
}
