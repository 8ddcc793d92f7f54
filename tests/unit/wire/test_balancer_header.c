/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of load balancers: whose connection it is, and what is refused. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "vethguard/wire/balancer_header.h"

#define SIGNATURE "\r\n\r\n\0\r\nQUIT\n"
#define IN4 "\xc0\0\2\1\x0a\0\0\1\x30\x39\1\xbb" /* 192.0.2.1 port 12345 to 10.0.0.1 */
#define PORTS "\x30\x39\1\xbb"
#define IN6 "\x20\1\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1"
#define MAPPED "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\2\1"

#define PARSE(text, out) balancer_header_parse((const uint8_t *)(text), sizeof(text) - 1, out)

static void names(const struct balancer_header *h, const char *address)
{
	struct ip ip;

	assert_true(ip_parse(slice_from_string(address), &ip));
	assert_true(ip_equals(&ip, &h->source));
	assert_int_equal(h->source_port, 12345);
	assert_false(h->local);
}

static void test_sources(void **state)
{
	static const char with_tlv[] = SIGNATURE "\x21\x11\0\x13" IN4 "\1\0\4abcdrest";
	struct balancer_header h;

	(void)state;
	assert_int_equal(PARSE(SIGNATURE "\x21\x11\0\x0c" IN4, &h), BALANCER_HEADER_DONE);
	names(&h, "192.0.2.1");
	assert_int_equal(h.used, 28);
	assert_int_equal(PARSE(with_tlv, &h), BALANCER_HEADER_DONE);
	names(&h, "192.0.2.1");
	assert_int_equal(h.used, 35);
	assert_int_equal(PARSE(SIGNATURE "\x21\x21\0\x24" IN6 IN6 PORTS, &h), BALANCER_HEADER_DONE);
	names(&h, "2001:db8::1");
	assert_int_equal(
	        PARSE(SIGNATURE "\x21\x21\0\x24" MAPPED IN6 PORTS, &h), BALANCER_HEADER_DONE);
	names(&h, "192.0.2.1");
	assert_int_equal(PARSE(SIGNATURE "\x20\0\0\0", &h), BALANCER_HEADER_DONE);
	assert_true(h.local && !h.source.family);
	assert_int_equal(PARSE(SIGNATURE "\x20\x11\0\x0c" IN4, &h), BALANCER_HEADER_DONE);
	assert_true(h.local && !h.source.family);
	for (size_t n = 0; n < 35; n++)
		assert_int_equal(balancer_header_parse((const uint8_t *)with_tlv, n, &h),
		        BALANCER_HEADER_MORE);
}

static void test_refused(void **state)
{
	struct balancer_header h;

	(void)state;
#define REFUSES(text) assert_int_equal(PARSE(text, &h), BALANCER_HEADER_BAD)
	REFUSES("PROXY TCP4 192.0.2.1 10.0.0.1 1 2\r\n");
	REFUSES("GET / HTTP/1.1\r\n");
	REFUSES("\x16\3\1");
	REFUSES("\r\n\r\n\0\r\nQUIX");
	REFUSES(SIGNATURE "\x11\x11\0\x0c" IN4); /* another version */
	REFUSES(SIGNATURE "\x22\x11\0\x0c" IN4); /* another command */
	REFUSES(SIGNATURE "\x31");
	REFUSES(SIGNATURE "\x21\0\0\0");         /* of nobody */
	REFUSES(SIGNATURE "\x21\0\0\x0c" IN4);   /* of no family */
	REFUSES(SIGNATURE "\x21\x12\0\x0c" IN4); /* UDP */
	REFUSES(SIGNATURE "\x21\x31\0\x0c" IN4); /* a Unix socket */
	REFUSES(SIGNATURE "\x21\x11\0\x0b" IN4); /* too short for its family */
	REFUSES(SIGNATURE "\x21\x21\0\x0c" IN4);
	REFUSES(SIGNATURE "\x21\x11\xff\xff" IN4); /* too long */
	REFUSES(SIGNATURE "\x21\x11\3\xf1" IN4);
	REFUSES(SIGNATURE "\x21\x11\0\x0c\0\0\0\0\x0a\0\0\1" PORTS);         /* 0.0.0.0 */
	REFUSES(SIGNATURE "\x21\x11\0\x0c\xe0\0\0\1\x0a\0\0\1" PORTS);       /* 224.0.0.1 */
	REFUSES(SIGNATURE "\x21\x11\0\x0c\xff\xff\xff\xff\x0a\0\0\1" PORTS); /* broadcast */
	assert_int_equal(h.source.family, 0);
	assert_int_equal(PARSE(SIGNATURE "\x21\x11\3\xf0" IN4, &h), BALANCER_HEADER_MORE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_sources),
	        cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
