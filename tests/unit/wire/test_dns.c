/* SPDX-License-Identifier: Apache-2.0 */
/* dns: queries cut at every byte, hostile names and counts, answers byte for byte. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>

#include "vethguard/wire/dns.h"

/* A slice of a literal that may initialize a static table. */
#define ROW(literal)                           \
	{                                      \
		(literal), sizeof(literal) - 1 \
	}

#define HEAD "\x12\x34\x01\x00\0\1\0\0\0\0\0\0"
#define HEAD_EDNS "\x12\x34\x01\x00\0\1\0\0\0\0\0\1"
#define NAME "\7ExAmple\3com\0"
#define OPT "\0\0\x29\x04\xd0\0\0\0\0\0\0"

static int parse(struct slice s, struct dns_query *q)
{
	return dns_query_parse((const uint8_t *)s.p, s.n, q);
}

static void reads_a_query(void **state)
{
	struct dns_query q;

	(void)state;
	assert_int_equal(parse(SLICE(HEAD NAME "\0\x1c\0\1"), &q), 0);
	assert_int_equal(q.id, 0x1234);
	assert_int_equal(q.flags, 0x0100);
	assert_int_equal(q.opcode, 0);
	assert_int_equal(q.type, DNS_AAAA);
	assert_int_equal(q.class, 1);
	assert_string_equal(q.name, "ExAmple.com");
	assert_int_equal(q.name_n, 11);
	assert_true(q.name_is_host);
	assert_false(q.edns);
	assert_true(slice_equals(q.question, SLICE(NAME "\0\x1c\0\1")));
}

static void reads_edns(void **state)
{
	struct dns_query q;

	(void)state;
	assert_int_equal(parse(SLICE(HEAD_EDNS NAME "\0\1\0\1" OPT), &q), 0);
	assert_true(q.edns);
	assert_int_equal(q.edns_size, 1232);
	assert_int_equal(q.edns_version, 0);
	assert_true(slice_equals(q.question, SLICE(NAME "\0\1\0\1")));
	/* Options inside, and version 1. */
	assert_int_equal(parse(SLICE(HEAD_EDNS NAME "\0\1\0\1"
	                                            "\0\0\x29\x10\0\0\1\x80\0\0\6\0\x0a\0\2xy"),
	                         &q),
	        0);
	assert_int_equal(q.edns_version, 1);
	assert_int_equal(q.edns_size, 4096);
}

static void cut_anywhere_is_no_query(void **state)
{
	static const char whole[] = HEAD_EDNS NAME "\0\1\0\1" OPT;
	struct dns_query q;

	(void)state;
	for (size_t n = 0; n < sizeof(whole) - 1; n++) {
		assert_int_equal(parse(slice_of(whole, n), &q), n < 12 ? -EBADMSG : -EPROTO);
		assert_int_equal(q.question.n, 0);
		if (n >= 12)
			assert_int_equal(q.id, 0x1234);
	}
	assert_int_equal(parse(slice_of(whole, sizeof(whole) - 1), &q), 0);
	assert_int_equal(parse(slice_of(whole, sizeof(whole)), &q), -EPROTO); /* a byte too many */
}

static void silent_on_responses(void **state)
{
	struct dns_query q;

	(void)state;
	assert_int_equal(
	        parse(SLICE("\x12\x34\x81\x80\0\1\0\0\0\0\0\0" NAME "\0\1\0\1"), &q), -EBADMSG);
	assert_int_equal(parse(SLICE("\x12\x34\x80\0\0\0\0\0\0\0\0\0"), &q), -EBADMSG);
	assert_int_equal(parse(SLICE(""), &q), -EBADMSG);
}

static void other_opcodes(void **state)
{
	struct dns_query q;
	char head[12] = "\x12\x34\x01\0\0\1\0\0\0\0\0";

	(void)state;
	for (int opcode = 1; opcode < 16; opcode++) {
		head[2] = (char)(opcode << 3 | 1);
		assert_int_equal(parse(slice_of(head, 12), &q), -ENOTSUP);
		assert_int_equal(q.opcode, opcode);
		assert_int_equal(q.id, 0x1234);
	}
}

static void malformed(void **state)
{
	static const struct {
		const char *why;
		struct slice bytes;
	} rows[] = {
	        {"no question", ROW("\x12\x34\1\0\0\0\0\0\0\0\0\0")},
	        {"two questions",
	                ROW("\x12\x34\1\0\0\2\0\0\0\0\0\0" NAME "\0\1\0\1" NAME "\0\1\0\1")},
	        {"answers in a query", ROW("\x12\x34\1\0\0\1\0\1\0\0\0\0" NAME "\0\1\0\1")},
	        {"authorities in a query", ROW("\x12\x34\1\0\0\1\0\0\0\1\0\0" NAME "\0\1\0\1")},
	        {"more additionals than there are",
	                ROW("\x12\x34\1\0\0\1\0\0\0\0\xff\xff" NAME "\0\1\0\1" OPT)},
	        {"compressed question", ROW(HEAD "\xc0\x0c\0\1\0\1")},
	        {"compressed after a label", ROW(HEAD "\1a\xc0\x0c\0\1\0\1")},
	        {"label type 01", ROW(HEAD "\x41"
	                                   "a\0\0\1\0\1")},
	        {"label type 10", ROW(HEAD "\x81"
	                                   "a\0\0\1\0\1")},
	        {"label of 64",
	                ROW(HEAD "\x40"
	                         "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	                         "\0\0\1\0\1")},
	        {"name without end", ROW(HEAD "\1a\1b\1c")},
	        {"no type", ROW(HEAD "\1a\0")},
	        {"half a class", ROW(HEAD "\1a\0\0\1\0")},
	        {"trailing byte", ROW(HEAD "\1a\0\0\1\0\1x")},
	        {"two OPT", ROW("\x12\x34\1\0\0\1\0\0\0\0\0\2" NAME "\0\1\0\1" OPT OPT)},
	        {"OPT with a name", ROW(HEAD_EDNS NAME "\0\1\0\1"
	                                               "\1a" OPT)},
	        {"OPT with a pointer", ROW(HEAD_EDNS NAME "\0\1\0\1"
	                                                  "\xc0\x0c\0\x29\4\xd0\0\0\0\0\0\0")},
	        {"OPT longer than the packet",
	                ROW(HEAD_EDNS NAME "\0\1\0\1"
	                                   "\0\0\x29\4\xd0\0\0\0\0\xff\xff")},
	        {"additional with a bad name", ROW(HEAD_EDNS NAME "\0\1\0\1"
	                                                          "\x80\0\1\0\1\0\0\0\0\0\0")},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct dns_query q;

		if (parse(rows[i].bytes, &q) != -EPROTO)
			fail_msg("%s", rows[i].why);
		assert_int_equal(q.question.n, 0);
	}
}

/* Builds a query for a name of labels of the given length until the wire name has the given size.
 */
static size_t build_long(uint8_t *out, size_t wire, size_t label)
{
	size_t n = 12;
	size_t left = wire - 1;

	memcpy(out, HEAD, 12);
	while (left) {
		size_t l = left > label + 1 ? label : left - 1;

		if (left - l - 1 == 1) /* no label of zero bytes may remain */
			l--;
		out[n++] = (uint8_t)l;
		memset(out + n, 'a', l);
		n += l;
		left -= l + 1;
	}
	memcpy(out + n, "\0\0\1\0\1", 5);
	return n + 5;
}

static void names_hold_their_bounds(void **state)
{
	static const size_t labels[] = {1, 2, 10, 62, 63};
	uint8_t bytes[600];
	struct dns_query q;

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		size_t n = build_long(bytes, 255, labels[i] == 1 ? 2 : labels[i]);

		assert_int_equal(dns_query_parse(bytes, n, &q), 0);
		assert_int_equal(q.name_n, 253);
		assert_int_equal(strlen(q.name), 253);
		n = build_long(bytes, 256, labels[i] == 1 ? 2 : labels[i]);
		assert_int_equal(dns_query_parse(bytes, n, &q), -EPROTO);
	}
	/* 127 labels of one byte are exactly 255. */
	memcpy(bytes, HEAD, 12);
	for (size_t i = 0; i < 127; i++)
		memcpy(bytes + 12 + 2 * i, "\1a", 2);
	memcpy(bytes + 12 + 254, "\0\0\1\0\1", 5);
	assert_int_equal(dns_query_parse(bytes, 12 + 254 + 5, &q), 0);
	assert_int_equal(q.name_n, 253);
}

static void names_that_are_no_hosts(void **state)
{
	static const struct {
		struct slice bytes;
		struct slice name;
		bool host;
	} rows[] = {
	        {ROW(HEAD "\0\0\1\0\1"), ROW(""), false},
	        {ROW(HEAD "\3a.b\0\0\1\0\1"), ROW("a.b"), false}, /* one label with a dot inside */
	        {ROW(HEAD "\3a\0b\0\0\1\0\1"), ROW("a\0b"), false},
	        {ROW(HEAD "\3a\nb\0\0\1\0\1"), ROW("a\nb"), false},
	        {ROW(HEAD "\2\xc3\xa4\0\0\1\0\1"), ROW("\xc3\xa4"), false},
	        {ROW(HEAD "\1*\1a\0\0\1\0\1"), ROW("*.a"), false},
	        {ROW(HEAD "\4_tcp\3a-Z\0\0\1\0\1"), ROW("_tcp.a-Z"), true},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct dns_query q;

		assert_int_equal(parse(rows[i].bytes, &q), 0);
		assert_true(slice_equals(slice_of(q.name, q.name_n), rows[i].name));
		assert_int_equal(q.name_is_host, rows[i].host);
		assert_int_equal(q.name[q.name_n], '\0');
	}
}

static void expect_answer(
        struct slice query, enum dns_rcode rcode, const struct ip *ip, struct slice expected)
{
	struct dns_query q;
	uint8_t out[DNS_ANSWER_MAX];
	size_t n;

	assert_int_equal(parse(query, &q), 0);
	n = dns_answer_build(&q, rcode, ip, 60, out, sizeof(out));
	assert_int_equal(n, expected.n);
	assert_memory_equal(out, expected.p, n);
	for (size_t cap = 0; cap < n; cap++)
		assert_int_equal(dns_answer_build(&q, rcode, ip, 60, out, cap), 0);
}

#define SOA "\0\0\6\0\1\0\0\0\x3c\0\x16\0\0\0\0\0\1\0\0\x0e\x10\0\0\2\x58\0\1\x51\x80\0\0\0\x3c"

static void answers_exactly(void **state)
{
	struct ip v4 = {.family = 4, .bytes = {10, 1, 2, 3}};
	struct ip v6 = {.family = 6, .bytes = {0xfd, [15] = 9}};
	struct ip none = {0};

	(void)state;
	expect_answer(SLICE(HEAD NAME "\0\1\0\1"), DNS_NOERROR, &v4,
	        SLICE("\x12\x34\x81\x80\0\1\0\1\0\0\0\0" NAME "\0\1\0\1"
	              "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\x0a\1\2\3"));
	expect_answer(SLICE(HEAD_EDNS NAME "\0\x1c\0\1" OPT), DNS_NOERROR, &v6,
	        SLICE("\x12\x34\x81\x80\0\1\0\1\0\0\0\1" NAME "\0\x1c\0\1"
	              "\xc0\x0c\0\x1c\0\1\0\0\0\x3c\0\x10\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
	              "\x09" OPT));
	/* No address, one of the other family, or one for another type: NODATA. */
	expect_answer(SLICE(HEAD NAME "\0\1\0\1"), DNS_NOERROR, &none,
	        SLICE("\x12\x34\x81\x80\0\1\0\0\0\1\0\0" NAME "\0\1\0\1" SOA));
	expect_answer(SLICE(HEAD NAME "\0\1\0\1"), DNS_NOERROR, &v6,
	        SLICE("\x12\x34\x81\x80\0\1\0\0\0\1\0\0" NAME "\0\1\0\1" SOA));
	expect_answer(SLICE(HEAD NAME "\0\x41\0\1"), DNS_NOERROR, &v4,
	        SLICE("\x12\x34\x81\x80\0\1\0\0\0\1\0\0" NAME "\0\x41\0\1" SOA));
	expect_answer(SLICE(HEAD NAME "\0\xff\0\1"), DNS_NOERROR, NULL,
	        SLICE("\x12\x34\x81\x80\0\1\0\0\0\1\0\0" NAME "\0\xff\0\1" SOA));
	/* An address never goes with an error. */
	expect_answer(SLICE(HEAD NAME "\0\1\0\1"), DNS_NXDOMAIN, &v4,
	        SLICE("\x12\x34\x81\x83\0\1\0\0\0\1\0\0" NAME "\0\1\0\1" SOA));
	expect_answer(SLICE(HEAD NAME "\0\1\0\1"), DNS_REFUSED, &v4,
	        SLICE("\x12\x34\x81\x85\0\1\0\0\0\0\0\0" NAME "\0\1\0\1"));
	/* RD not set stays not set; CD is copied, AD and Z are not. */
	expect_answer(SLICE("\0\1\0\x70\0\1\0\0\0\0\0\0" NAME "\0\1\0\1"), DNS_REFUSED, NULL,
	        SLICE("\0\1\x80\x95\0\1\0\0\0\0\0\0" NAME "\0\1\0\1"));
	expect_answer(SLICE(HEAD_EDNS NAME "\0\1\0\1" OPT), DNS_BADVERS, &v4,
	        SLICE("\x12\x34\x81\x80\0\1\0\0\0\0\0\1" NAME "\0\1\0\1"
	              "\0\0\x29\4\xd0\1\0\0\0\0\0"));
}

static void errors_without_a_question(void **state)
{
	struct dns_query q;
	uint8_t out[512];

	(void)state;
	assert_int_equal(parse(SLICE(HEAD "\xc0\x0c\0\1\0\1"), &q), -EPROTO);
	assert_int_equal(dns_answer_build(&q, DNS_FORMERR, NULL, 60, out, sizeof(out)), 12);
	assert_memory_equal(out, "\x12\x34\x81\x81\0\0\0\0\0\0\0\0", 12);
	assert_int_equal(parse(SLICE("\x12\x34\x11\0\0\1\0\0\0\0\0\0"), &q), -ENOTSUP);
	assert_int_equal(dns_answer_build(&q, DNS_NOTIMP, NULL, 60, out, sizeof(out)), 12);
	assert_memory_equal(out, "\x12\x34\x91\x84\0\0\0\0\0\0\0\0", 12);
}

/* The longest name with everything else fits the smallest transport (RFC 1035 section 4.2.1). */
static void answers_fit_512_bytes(void **state)
{
	struct ip v6 = {.family = 6, .bytes = {0xfd}};
	uint8_t bytes[600];
	uint8_t out[512];
	size_t n = build_long(bytes, 255, 63);
	struct dns_query q;

	(void)state;
	bytes[n - 3] = DNS_AAAA;
	bytes[11] = 1;
	memcpy(bytes + n, OPT, 11);
	assert_int_equal(dns_query_parse(bytes, n + 11, &q), 0);
	assert_true(dns_answer_build(&q, DNS_NOERROR, &v6, 60, out, sizeof(out)) > 0);
	assert_true(dns_answer_build(&q, DNS_NXDOMAIN, NULL, 60, out, sizeof(out)) > 0);
}

static void type_names(void **state)
{
	char out[16];

	(void)state;
	assert_string_equal(dns_type_name(1, out), "A");
	assert_string_equal(dns_type_name(28, out), "AAAA");
	assert_string_equal(dns_type_name(65, out), "HTTPS");
	assert_string_equal(dns_type_name(16, out), "TXT");
	assert_string_equal(dns_type_name(65535, out), "TYPE65535");
	assert_string_equal(dns_type_name(0, out), "TYPE0");
}

static void reverse_names(void **state)
{
	static const char *const bad[] = {"", "in-addr.arpa", ".in-addr.arpa", "1.in-addr.arpa",
	        "3.2.1.in-addr.arpa", "5.4.3.2.1.in-addr.arpa", "256.2.3.4.in-addr.arpa",
	        "01.2.3.4.in-addr.arpa", "..3.4.in-addr.arpa", ".1.2.3.4.in-addr.arpa",
	        "a.2.3.4.in-addr.arpa", "1.2.3.4.in-addr.arpa.", "1.2.3.4xin-addr.arpa",
	        "1.0.ip6.arpa",
	        "g.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa",
	        "9.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.df..ip6.arpa",
	        "0.9.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa"};
	struct ip ip;
	char text[IP_TEXT_MAX];

	(void)state;
	assert_true(dns_reverse_name(SLICE("4.3.2.1.in-addr.arpa"), &ip));
	assert_string_equal(ip_format(&ip, text), "1.2.3.4");
	assert_true(dns_reverse_name(SLICE("0.0.255.10.IN-ADDR.ARPA"), &ip));
	assert_string_equal(ip_format(&ip, text), "10.255.0.0");
	assert_true(dns_reverse_name(
	        SLICE("9.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.B.d.f.ip6.arpa"),
	        &ip));
	assert_string_equal(ip_format(&ip, text), "fdb0::9");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (dns_reverse_name(slice_from_string(bad[i]), &ip))
			fail_msg("%s", bad[i]);
		assert_int_equal(ip.family, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(reads_a_query),
	        cmocka_unit_test(reads_edns),
	        cmocka_unit_test(cut_anywhere_is_no_query),
	        cmocka_unit_test(silent_on_responses),
	        cmocka_unit_test(other_opcodes),
	        cmocka_unit_test(malformed),
	        cmocka_unit_test(names_hold_their_bounds),
	        cmocka_unit_test(names_that_are_no_hosts),
	        cmocka_unit_test(answers_exactly),
	        cmocka_unit_test(errors_without_a_question),
	        cmocka_unit_test(answers_fit_512_bytes),
	        cmocka_unit_test(type_names),
	        cmocka_unit_test(reverse_names),
	};

	return cmocka_run_group_tests_name("dns", tests, NULL, NULL);
}
