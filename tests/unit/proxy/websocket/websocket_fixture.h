/* SPDX-License-Identifier: Apache-2.0 */
/* websocket_fixture: a WebSocket between a sandbox's client and an upstream, through a whole proxy.
 * Included after cmocka.h. */
#ifndef VETHGUARD_TESTS_UNIT_PROXY_EXCHANGE_WEBSOCKET_FIXTURE_H
#define VETHGUARD_TESTS_UNIT_PROXY_EXCHANGE_WEBSOCKET_FIXTURE_H

#include "proxy/http/websocket.h"
#include "../fixture.h"

#define SECRET_BYTES (sizeof(SECRET_VALUE) - 1)

static struct peer *c, *o;

/* A WebSocket; with the credential where the host is c.test. */
static inline void switch_over(bool bound, const char *offer, const char *choice)
{
	char fields[600], answer[600];

	c = client(&w, bound ? NAME_C : NAME_A, bound ? "c.test" : "a.test");
	snprintf(fields, sizeof(fields), SWITCH_ASKED "%s", offer);
	ask(c, "GET /ws", bound ? "c.test" : "a.test", fields);
	o = origin(&w, true);
	expect_head(o, "GET /ws ");
	snprintf(answer, sizeof(answer), SWITCHED_FIELDS "%s\r\n", choice);
	say(o, answer);
	expect_head(c, "HTTP/1.1 101 ");
}

static inline void leave(void)
{
	assert_false(c->in.len && has(c, SECRET_VALUE, SECRET_BYTES));
	hang_up(c, false);
	hang_up(o, false);
}

static inline void expect_n(struct peer *p, const void *bytes, size_t n)
{
	UNTIL(&w, p->in.len >= n || p->eof || p->failed);
	if (p->in.len < n || memcmp(buf_bytes(&p->in), bytes, n) != 0)
		fail_msg("%zu bytes have come", p->in.len);
	buf_consume(&p->in, n);
}

#define EXPECT(peer, bytes) expect_n(peer, bytes, sizeof(bytes) - 1)
#define SAY(peer, bytes) say_n(peer, bytes, sizeof(bytes) - 1)

/* A masked frame onto out. */
static inline void frame(struct buf *out, uint8_t first, const void *p, size_t n)
{
	static const uint8_t key[4] = {0xde, 0xad, 0xbe, 0xef};
	uint8_t head[WEBSOCKET_HEAD_MAX];
	size_t head_n = websocket_write_head(head, true, 0, n);

	head[0] = first;
	head[1] |= 0x80;
	buf_append(out, head, head_n);
	buf_append(out, key, 4);
	for (size_t i = 0; i < n; i++) {
		uint8_t byte = ((const uint8_t *)p)[i] ^ key[i & 3];

		buf_append(out, &byte, 1);
	}
}

static inline size_t findings(enum event_finding finding)
{
	size_t n = 0;

	for (size_t i = 0; i < w.event_count; i++)
		n += w.events[i].kind == EVENT_FINDING && w.events[i].finding == finding;
	return n;
}

/* --- frames that end it --- */

/* The next thing that has come is a close frame, and nothing comes after it. */
static inline void expect_close(struct peer *p, uint16_t expected)
{
	struct websocket read = {.masked = p == o};
	size_t n = p == o ? 8 : 4;
	enum websocket_step step;
	uint8_t code[2];

	UNTIL(&w, p->eof || p->failed);
	if (p->in.len != n)
		fail_msg("%zu bytes instead of a close frame", p->in.len);
	assert_int_equal(websocket_next(&read, buf_bytes(&p->in), n, &step), n - 2);
	assert_int_equal(read.opcode, WEBSOCKET_CLOSE);
	websocket_next(&read, buf_bytes(&p->in) + n - 2, 2, &step);
	websocket_unmask(&read, buf_bytes(&p->in) + n - 2, 2, code);
	assert_int_equal(code[0] << 8 | code[1], expected);
	buf_consume(&p->in, n);
}

/* The frames with a key of zeros. */
static inline size_t masked(const char *p, size_t n, uint8_t *out)
{
	size_t made = 0;

	for (size_t at = 0; at < n;) {
		size_t length = (uint8_t)p[at + 1];

		out[made++] = (uint8_t)p[at];
		out[made++] = 0x80 | (uint8_t)length;
		memset(out + made, 0, 4);
		memcpy(out + made + 4, p + at + 2, length);
		made += 4 + length;
		at += 2 + length;
	}
	return made;
}

#endif
