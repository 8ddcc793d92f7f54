/* SPDX-License-Identifier: Apache-2.0 */
/* The answer of an egress proxy: only a whole, plain head opens a tunnel, and no byte behind
 * it is consumed. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>

#include "proxy/dial/egress.h"

static enum egress_answer parse(const char *text, size_t *head, unsigned *status)
{
	/* In memory of its own size, so that a read beyond it shows. */
	size_t n = strlen(text);
	uint8_t *copy = malloc(n ? n : 1);
	enum egress_answer answer;

	memcpy(copy, text, n);
	*head = 0;
	*status = 0;
	answer = egress_answer_parse(copy, n, head, status);
	free(copy);
	return answer;
}

static void test_what_is_no_answer(void **state)
{
	static const char *const bad[] = {
	        "HTTP/2.0 200 OK\r\n\r\n",
	        "HTTP/1.2 200 OK\r\n\r\n",
	        "http/1.1 200 OK\r\n\r\n",
	        " HTTP/1.1 200 OK\r\n\r\n",
	        "HTTP/1.1  200 OK\r\n\r\n",
	        "HTTP/1.1 2000 OK\r\n\r\n",
	        "HTTP/1.1 20 OK\r\n\r\n",
	        "HTTP/1.1 2x0 OK\r\n\r\n",
	        "HTTP/1.1 200OK\r\n\r\n",
	        "HTTP/1.1 20\r\n\r\n",
	        "\r\nHTTP/1.1 200 OK\r\n\r\n",
	        "HTTP/1.1 200 OK\n\n",
	        "HTTP/1.1 200 OK\r\nA: b\n\r\n",
	        "HTTP/1.1 200 OK\r\nA: b\rc\r\n\r\n",
	        "HTTP/1.1 200 OK\r\n folded: x\r\n\r\n",
	        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
	        "HTTP/1.1 200 OK\r\n: no name\r\n\r\n",
	        "HTTP/1.1 200 OK\r\nA: \x01\r\n\r\n",
	        "HTTP/1.1 200 \x7f\r\n\r\n",
	        "HTTP/1.1 100 Continue\r\n\r\n",
	        "HTTP/1.1 101 Upgrade\r\n\r\n",
	        "HTTP/1.1 199 x\r\n\r\n",
	        "HTTP/1.1 600 x\r\n\r\n",
	        "HTTP/1.1 000 x\r\n\r\n",
	        "SSH-2.0-OpenSSH\r\n",
	};
	size_t head;
	unsigned status;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (parse(bad[i], &head, &status) != EGRESS_BAD)
			fail_msg("%zu is not refused", i);
}

static void test_every_prefix_waits(void **state)
{
	static const char text[] = "HTTP/1.1 200 Connection established\r\nVia: 1.1 p\r\n\r\n";
	char part[sizeof(text)];
	size_t head;
	unsigned status;

	(void)state;
	for (size_t n = 0; n < sizeof(text) - 1; n++) {
		memcpy(part, text, n);
		part[n] = 0;
		assert_int_equal(parse(part, &head, &status), EGRESS_MORE);
	}
	assert_int_equal(parse(text, &head, &status), EGRESS_OPEN);
	assert_int_equal(head, sizeof(text) - 1);
	assert_int_equal(status, 200);
	assert_int_equal(parse("HTTP/1.0 200\r\n\r\nSSH-2.0", &head, &status), EGRESS_OPEN);
	assert_int_equal(head, 16);
	assert_int_equal(
	        parse("HTTP/1.1 299 x\r\nContent-Length: 9\r\n\r\n", &head, &status), EGRESS_OPEN);
}

static void test_the_bound(void **state)
{
	static const char begin[] = "HTTP/1.1 200 OK\r\nA: ";
	static char text[EGRESS_HEAD_MAX + 16];
	size_t head;
	unsigned status;

	(void)state;
	for (int beyond = 0; beyond < 2; beyond++) {
		size_t n = EGRESS_HEAD_MAX - 1 + (size_t)beyond * 2;

		memset(text, 'x', sizeof(text));
		memcpy(text, begin, sizeof(begin) - 1);
		memcpy(text + n - 4, "\r\n\r\n", 5);
		assert_int_equal(parse(text, &head, &status), beyond ? EGRESS_BAD : EGRESS_OPEN);
	}
	memset(text, 'x', sizeof(text));
	memcpy(text, begin, sizeof(begin) - 1);
	text[EGRESS_HEAD_MAX] = 0;
	assert_int_equal(parse(text, &head, &status), EGRESS_BAD); /* without an end */
}

static void test_refusals_are_told_apart(void **state)
{
	static const char *const answers[] = {"HTTP/1.1 407 x\r\n\r\n", "HTTP/1.1 403 x\r\n\r\n",
	        "HTTP/1.1 502 x\r\n\r\n", "HTTP/1.1 302 x\r\n\r\n"};
	const char *texts[4];
	size_t head;
	unsigned status;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(parse(answers[i], &head, &status), EGRESS_REFUSED);
		texts[i] = egress_refusal_text(EGRESS_REFUSED, status);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(texts[i], texts[k]);
	}
	assert_non_null(strstr(texts[0], "egress.password_file"));
}

static void test_not_a_byte_behind_the_head(void **state)
{
	static const char answer[] = "HTTP/1.1 200 OK\r\n\r\n220 hello";
	char rest[32];
	unsigned status;
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(write(pair[1], answer, 10), 10);
	assert_int_equal(egress_listen(pair[0], &status), EGRESS_MORE);
	assert_int_equal(write(pair[1], answer + 10, sizeof(answer) - 11), sizeof(answer) - 11);
	assert_int_equal(egress_listen(pair[0], &status), EGRESS_OPEN);
	assert_int_equal(read(pair[0], rest, sizeof(rest)), 9);
	assert_memory_equal(rest, "220 hello", 9);
	close(pair[1]);
	assert_int_equal(egress_listen(pair[0], &status), EGRESS_ENDED);
	close(pair[0]);
}

static void test_the_question(void **state)
{
	static const char plain[] = "CONNECT a.test:443 HTTP/1.1\r\nHost: a.test:443\r\n\r\n";
	static const char with[] = "CONNECT [fd00::1]:443 HTTP/1.1\r\nHost: [fd00::1]:443\r\n"
	                           "Proxy-Authorization: Basic dTpw\r\n\r\n";
	static char endless[4096];
	char got[512];
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair), 0);
	assert_int_equal(egress_ask(pair[0], "a.test:443", SLICE("")), 0);
	assert_int_equal(read(pair[1], got, sizeof(got)), sizeof(plain) - 1);
	assert_memory_equal(got, plain, sizeof(plain) - 1);
	assert_int_equal(egress_ask(pair[0], "[fd00::1]:443", SLICE("Basic dTpw")), 0);
	assert_int_equal(read(pair[1], got, sizeof(got)), sizeof(with) - 1);
	assert_memory_equal(got, with, sizeof(with) - 1);
	memset(endless, 'a', sizeof(endless) - 1);
	assert_int_equal(egress_ask(pair[0], endless, SLICE("")), -EMSGSIZE);
	close(pair[1]);
	assert_int_equal(egress_ask(pair[0], "a.test:443", SLICE("")), -EPIPE);
	close(pair[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_what_is_no_answer),
	        cmocka_unit_test(test_every_prefix_waits),
	        cmocka_unit_test(test_the_bound),
	        cmocka_unit_test(test_refusals_are_told_apart),
	        cmocka_unit_test(test_not_a_byte_behind_the_head),
	        cmocka_unit_test(test_the_question),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
