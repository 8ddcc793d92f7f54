/* SPDX-License-Identifier: Apache-2.0 */
/* Frames, the handshake and compressed messages, each by itself: wrong ones first, and
 * everything cut in every place. test_websocket_relay.c has a whole proxy. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "proxy/http/websocket.h"
#include "vethguard/credential/inflate.h"

#define SAY(text) (const uint8_t *)(text), sizeof(text) - 1

/* Reads it all, in two pieces; the step that ended it. */
static enum websocket_step read_cut(struct websocket *w, const uint8_t *p, size_t n, size_t cut)
{
	enum websocket_step step = WEBSOCKET_PARTIAL;

	for (size_t at = 0; at < n;) {
		size_t end = at < cut ? cut : n;

		at += websocket_next(w, p + at, end - at, &step);
		if (step == WEBSOCKET_BAD)
			break;
	}
	return step;
}

/* --- wrong frames --- */

static const struct {
	const char *name;
	bool masked, deflate;
	size_t n;
	const char *p;
} wrong[] = {
#define WRONG(name, masked, deflate, bytes)                     \
	{                                                       \
		name, masked, deflate, sizeof(bytes) - 1, bytes \
	}
        WRONG("second reserved bit", false, true, "\xa1\x01x"),
        WRONG("third reserved bit", false, true, "\x91\x01x"),
        WRONG("first reserved bit, unless agreed on", false, false, "\xc1\x01x"),
        WRONG("... on a ping", false, true, "\xc9\x01x"),
        WRONG("... on a close", false, true, "\xc8\x02\x03\xe8"),
        WRONG("... on a continuation", false, true, "\x41\x01x\xc0\x01x"),
        WRONG("opcode 3", false, false, "\x83\x01x"),
        WRONG("opcode 7", false, false, "\x87\x01x"),
        WRONG("opcode 11", false, false, "\x8b\x01x"),
        WRONG("opcode 15", false, false, "\x8f\x01x"),
        WRONG("a client that does not mask", true, false, "\x81\x01x"),
        WRONG("... an empty frame", true, false, "\x81\x00"),
        WRONG("... a ping", true, false, "\x89\x00"),
        WRONG("a server that masks", false, false, "\x81\x81kkkkx"),
        WRONG("... a close", false, false, "\x88\x80kkkk"),
        WRONG("a ping in fragments", false, false, "\x09\x01x"),
        WRONG("a pong in fragments", false, false, "\x0a\x01x"),
        WRONG("a close in fragments", false, false, "\x08\x02\x03\xe8"),
        WRONG("a ping of 126 bytes", false, false, "\x89\x7e\x00\x7e"),
        WRONG("a ping with a long length", false, false, "\x89\x7f\0\0\0\0\0\x01\0\0"),
        WRONG("a close of one byte", false, false, "\x88\x01x"),
        WRONG("125 written with 16 bits", false, false, "\x81\x7e\x00\x7d"),
        WRONG("0 written with 16 bits", true, false, "\x81\xfe\x00\x00kkkk"),
        WRONG("65535 written with 64 bits", false, false, "\x81\x7f\0\0\0\0\0\0\xff\xff"),
        WRONG("0 written with 64 bits", false, false, "\x82\x7f\0\0\0\0\0\0\0\0"),
        WRONG("the top bit", false, false, "\x82\x7f\x80\0\0\0\0\0\0\0"),
        WRONG("all bits", false, false, "\x82\x7f\xff\xff\xff\xff\xff\xff\xff\xff"),
        WRONG("the top bit, masked", true, false, "\x82\xff\x80\0\0\0\0\x01\0\0kkkk"),
        WRONG("a continuation of nothing", false, false, "\x80\x01x"),
        WRONG("... not even the last", false, false, "\x00\x01x"),
        WRONG("... after a whole message", false, false, "\x81\x01x\x80\x01x"),
        WRONG("a message in a message", false, false, "\x01\x01x\x81\x01x"),
        WRONG("... of another kind", false, false, "\x01\x01x\x82\x01x"),
        WRONG("... after a ping", false, false, "\x01\x01x\x89\x00\x01\x01x"),
#undef WRONG
};

static void test_wrong_frames(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		for (size_t cut = 0; cut < wrong[i].n; cut++) {
			struct websocket w = {
			        .masked = wrong[i].masked, .deflate = wrong[i].deflate};
			enum websocket_step step;

			if (read_cut(&w, (const uint8_t *)wrong[i].p, wrong[i].n, cut) !=
			        WEBSOCKET_BAD)
				fail_msg("%s: taken, cut at %zu", wrong[i].name, cut);
			assert_non_null(w.error);
			/* For good. */
			websocket_next(&w, SAY("\x81\x01x"), &step);
			assert_int_equal(step, WEBSOCKET_BAD);
		}
}

/* --- right ones --- */

#define MESSAGES                                                                                \
	"\x81\x05hello\x01\x02he\x89\x03you\x00\x00\x8a\x00\x80\x03llo\x82\x00\x81\x7e\x00\x7e" \
	"12345678901234567890123456789012345678901234567890123456789012345678901234567890123"   \
	"4567890123456789012345678901234567890123456\x88\x02\x03\xe8"

static void test_frames_in_any_pieces(void **state)
{
	static const char content[] =
	        "hellohe"
	        "youllo12345678901234567890123456789012345678901234567890123456789012345678901"
	        "2345678901234567890123456789012345678901234567890123456\x03\xe8";
	const uint8_t *p = (const uint8_t *)MESSAGES;
	const size_t n = sizeof(MESSAGES) - 1;

	(void)state;
	for (size_t a = 0; a <= n; a++)
		for (size_t b = a; b <= n; b += 1 + b % 7) {
			struct websocket w = {0};
			char got[300];
			size_t got_n = 0, heads = 0;

			for (size_t at = 0; at < n;) {
				size_t end = at < a ? a : at < b ? b : n, used;
				enum websocket_step step;

				used = websocket_next(&w, p + at, end - at, &step);
				assert_true(used > 0 && used <= end - at);
				assert_int_not_equal(step, WEBSOCKET_BAD);
				heads += step == WEBSOCKET_HEAD;
				if (step == WEBSOCKET_CONTENT) {
					memcpy(got + got_n, p + at, used);
					got_n += used;
				}
				at += used;
			}
			assert_int_equal(heads, 9);
			assert_int_equal(got_n, sizeof(content) - 1);
			assert_memory_equal(got, content, got_n);
			assert_true(w.closed);
		}
}

static void test_behind_a_close_nothing_counts(void **state)
{
	struct websocket w = {0};
	enum websocket_step step;
	size_t used = websocket_next(&w, SAY("\x88\x00\xff\xff\xff"), &step);

	(void)state;
	assert_int_equal(used, 2);
	assert_int_equal(step, WEBSOCKET_HEAD);
	assert_int_equal(websocket_next(&w, SAY("\xff\xff\xff"), &step), 3);
	assert_int_equal(step, WEBSOCKET_OVER);
}

static void test_lengths(void **state)
{
	static const uint64_t lengths[] = {
	        0, 1, 125, 126, 127, 65535, 65536, 65537, 1u << 31, 1ull << 40, INT64_MAX};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		uint8_t head[WEBSOCKET_HEAD_MAX];
		size_t n = websocket_write_head(head, true, WEBSOCKET_BINARY, lengths[i]);
		struct websocket w = {0};
		enum websocket_step step;

		assert_int_equal(websocket_next(&w, head, n, &step), n);
		assert_int_equal(step, WEBSOCKET_HEAD);
		assert_true(w.left == lengths[i]);
		assert_int_equal(w.head_was, n);
		assert_memory_equal(w.head, head, n);
	}
}

static void test_unmasking(void **state)
{
	uint8_t frame[6 + 100] = {0x82, 0x80 | 100, 1, 2, 3, 200};

	(void)state;
	for (size_t i = 0; i < 100; i++)
		frame[6 + i] = (uint8_t)i ^ frame[2 + i % 4];
	for (size_t cut = 6; cut < sizeof(frame); cut++) {
		struct websocket w = {.masked = true};
		uint8_t plain[100];

		for (size_t at = 0; at < sizeof(frame);) {
			size_t end = at < cut ? cut : sizeof(frame), used;
			enum websocket_step step;

			used = websocket_next(&w, frame + at, end - at, &step);
			if (step == WEBSOCKET_CONTENT)
				websocket_unmask(&w, frame + at, used, plain + at - 6);
			at += used;
		}
		for (size_t i = 0; i < 100; i++)
			assert_int_equal(plain[i], i);
	}
}

static void test_close_frames(void **state)
{
	(void)state;
	for (int masked = 0; masked < 2; masked++) {
		uint8_t frame[WEBSOCKET_CLOSE_BYTES], code[2];
		size_t n = websocket_write_close(frame, 1002, masked), at;
		struct websocket w = {.masked = masked};
		enum websocket_step step;

		at = websocket_next(&w, frame, n, &step);
		assert_int_equal(step, WEBSOCKET_HEAD);
		assert_int_equal(websocket_next(&w, frame + at, n - at, &step), 2);
		websocket_unmask(&w, frame + at, 2, code);
		assert_int_equal(code[0] << 8 | code[1], 1002);
		assert_true(w.closed);
	}
}

/* --- the handshake --- */

static void add(struct http_fields *fields, const char *name, const char *value)
{
	assert_true(http_add(fields, slice_from_string(name), slice_from_string(value)));
	fields->items[fields->count - 1].known = http_name_of(slice_from_string(name));
}

static struct http_fields asked, answered;

static void ask_and_answer(const char *offer, const char *choice)
{
	asked.count = answered.count = 0;
	add(&asked, "sec-websocket-KEY", "dGhlIHNhbXBsZSBub25jZQ==");
	add(&asked, "Sec-WebSocket-Version", "13");
	if (offer)
		add(&asked, "Sec-WebSocket-Extensions", offer);
	add(&answered, "upgrade", "WebSocket");
	add(&answered, "Sec-Websocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
	if (choice)
		add(&answered, "sec-websocket-extensions", choice);
}

static void test_answers_to_another_question(void **state)
{
	struct websocket_deflate d;

	(void)state;
	ask_and_answer(NULL, NULL);
	assert_null(websocket_check_answer(&asked, &answered, &d));
	assert_false(d.agreed);
	for (size_t i = 0; i < 2; i++) { /* each missing, each twice */
		ask_and_answer(NULL, NULL);
		asked.items[i].dropped = true;
		assert_non_null(websocket_check_answer(&asked, &answered, &d));
		ask_and_answer(NULL, NULL);
		asked.items[asked.count++] = asked.items[i];
		assert_non_null(websocket_check_answer(&asked, &answered, &d));
		ask_and_answer(NULL, NULL);
		answered.items[i].dropped = true;
		assert_non_null(websocket_check_answer(&asked, &answered, &d));
		ask_and_answer(NULL, NULL);
		answered.items[answered.count++] = answered.items[i];
		assert_non_null(websocket_check_answer(&asked, &answered, &d));
	}
	static const char *const accepts[] = {"", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo",
	        "S3PPLMBITXAQ9KYGZZHZRBK+XOO=", "dGhlIHNhbXBsZSBub25jZQ==",
	        "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=x"};
	for (size_t i = 0; i < sizeof(accepts) / sizeof(*accepts); i++) {
		ask_and_answer(NULL, NULL);
		answered.items[1].value = slice_from_string(accepts[i]);
		assert_non_null(websocket_check_answer(&asked, &answered, &d));
	}
	ask_and_answer(NULL, NULL);
	asked.items[1].value = SLICE("8");
	assert_non_null(websocket_check_answer(&asked, &answered, &d));
	ask_and_answer(NULL, NULL);
	answered.items[0].value = SLICE("h2c");
	assert_non_null(websocket_check_answer(&asked, &answered, &d));
}

static void test_choices_that_were_not_offered(void **state)
{
	static const char *const choices[] = {"", "x", "permessage-deflate,", "permessage-deflat",
	        "permessage-deflate, permessage-deflate", "permessage-deflate; x",
	        "permessage-deflate;", "permessage-deflate; client_max_window_bits",
	        "permessage-deflate; client_max_window_bits=7",
	        "permessage-deflate; client_max_window_bits=16",
	        "permessage-deflate; client_max_window_bits=\"10",
	        "permessage-deflate; client_max_window_bits=10; client_max_window_bits=10",
	        "permessage-deflate; client_no_context_takeover=1",
	        "permessage-deflate; server_no_context_takeover; server_no_context_takeover",
	        "permessage-deflate; server_max_window_bits", "permessage-deflate x",
	        "permessage-deflate; server_max_window_bits=015", "permessage-bzip2"};
	struct websocket_deflate d;

	(void)state;
	for (size_t i = 0; i < sizeof(choices) / sizeof(*choices); i++) {
		ask_and_answer("permessage-deflate; client_max_window_bits", choices[i]);
		if (!websocket_check_answer(&asked, &answered, &d))
			fail_msg("taken: %s", choices[i]);
	}
	ask_and_answer(NULL, "permessage-deflate"); /* nothing was offered */
	assert_non_null(websocket_check_answer(&asked, &answered, &d));
	ask_and_answer("permessage-deflate", "permessage-deflate");
	asked.items[2].dropped = true; /* it was taken out of the request */
	assert_non_null(websocket_check_answer(&asked, &answered, &d));
	ask_and_answer("permessage-deflate", "permessage-deflate");
	answered.items[answered.count++] = answered.items[2];
	assert_non_null(websocket_check_answer(&asked, &answered, &d));
}

static void test_choices(void **state)
{
	static const struct {
		const char *choice;
		bool forgets;
		uint8_t bits;
	} good[] = {{"permessage-deflate", false, 15},
	        {"Permessage-Deflate;client_no_context_takeover", true, 15},
	        {"permessage-deflate ; server_no_context_takeover ; client_max_window_bits=9",
	                false, 9},
	        {"permessage-deflate; client_max_window_bits=\"12\"; "
	         "server_max_window_bits=8; client_no_context_takeover",
	                true, 12}};
	struct websocket_deflate d;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		ask_and_answer("permessage-deflate", good[i].choice);
		assert_null(websocket_check_answer(&asked, &answered, &d));
		assert_true(d.agreed);
		assert_int_equal(d.forgets, good[i].forgets);
		assert_int_equal(d.window_bits, good[i].bits);
	}
}

static void test_offers(void **state)
{
	static const struct {
		const char *offer;
		bool passes;
	} offers[] = {{"permessage-deflate", true},
	        {"permessage-deflate; client_max_window_bits", true},
	        {"permessage-deflate; server_max_window_bits=10, permessage-deflate", true},
	        {"permessage-deflate; client_max_window_bits; server_no_context_takeover", true},
	        {"x-webkit-deflate-frame", false}, {"permessage-deflate, bbf-usp-protocol", false},
	        {"bbf-usp-protocol, permessage-deflate", false}, {"", false}, {",", false},
	        {"permessage-deflate; client_max_window_bits=99", false}};

	(void)state;
	for (size_t i = 0; i < sizeof(offers) / sizeof(*offers); i++) {
		ask_and_answer(offers[i].offer, NULL);
		websocket_limit_offer(&asked);
		if (asked.items[2].dropped == offers[i].passes)
			fail_msg("%s", offers[i].offer);
	}
}

static void test_keys(void **state)
{
	char one[WEBSOCKET_KEY_MAX + 1], other[WEBSOCKET_KEY_MAX + 1];

	(void)state;
	websocket_key(one);
	websocket_key(other);
	assert_int_equal(strlen(one), 24);
	assert_string_not_equal(one, other);
	assert_false(websocket_accepts(one, SLICE("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")));
	assert_true(websocket_accepts(
	        "dGhlIHNhbXBsZSBub25jZQ==", SLICE("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")));
}

/* --- compressed messages --- */

struct sink {
	uint8_t *p;
	size_t n, max;
	uint64_t total;
};

static void swallow(void *context, const uint8_t *p, size_t n)
{
	struct sink *s = context;

	if (s->n + n <= s->max) {
		memcpy(s->p + s->n, p, n);
		s->n += n;
	}
	s->total += n;
}

/* A message as RFC 7692 section 7.2.1 has it. */
static size_t deflate_message(
        z_stream *z, const void *p, size_t n, bool final, uint8_t *out, size_t cap)
{
	z->next_in = (Bytef *)(uintptr_t)p;
	z->avail_in = (uInt)n;
	z->next_out = out;
	z->avail_out = (uInt)cap;
	if (final) {
		assert_int_equal(deflate(z, Z_FINISH), Z_STREAM_END);
		*z->next_out++ = 0; /* section 7.2.3.4 */
		return cap - z->avail_out + 1;
	}
	assert_int_equal(deflate(z, Z_SYNC_FLUSH), Z_OK);
	return cap - z->avail_out - 4;
}

#define PHRASE "the quick brown fox and vethguard-key-0123 jump over the lazy dog"

static void test_inflating_across_messages(void **state)
{
	uint8_t packed[3][300], plain[1000];
	size_t n[3];

	(void)state;
	for (int forgets = 0; forgets < 2; forgets++) {
		z_stream z = {0};

		deflateInit2(&z, 9, Z_DEFLATED, -9, 8, Z_DEFAULT_STRATEGY);
		for (size_t i = 0; i < 3; i++) {
			n[i] = deflate_message(&z, PHRASE, sizeof(PHRASE) - 1, false, packed[i],
			        sizeof(packed[i]));
			if (forgets)
				deflateReset(&z);
		}
		deflateEnd(&z);
		assert_true(forgets || n[1] < n[0] / 2);
		for (size_t cut = 0; cut <= n[0]; cut++) {
			struct inflater *w = inflater_new(8, forgets);
			struct sink s = {.p = plain, .max = sizeof(plain)};

			for (size_t i = 0; i < 3; i++) {
				size_t at = cut < n[i] ? cut : n[i];

				assert_int_equal(
				        inflater_feed(w, packed[i], at, false, swallow, &s), 0);
				assert_int_equal(inflater_feed(w, packed[i] + at, n[i] - at, true,
				                         swallow, &s),
				        0);
			}
			assert_int_equal(s.n, 3 * (sizeof(PHRASE) - 1));
			assert_memory_equal(plain, PHRASE PHRASE PHRASE, s.n);
			inflater_free(w);
		}
	}
}

/* A sender may end its stream with a message, and refer to the same window in the next one. */
static void test_inflating_an_ended_stream(void **state)
{
	uint8_t first[300], second[300], plain[400];
	struct sink s = {.p = plain, .max = sizeof(plain)};
	struct inflater *w = inflater_new(15, false);
	z_stream z = {0};
	size_t n, m;

	(void)state;
	deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
	n = deflate_message(&z, PHRASE, sizeof(PHRASE) - 1, true, first, sizeof(first));
	deflateReset(&z);
	deflateSetDictionary(&z, (const Bytef *)PHRASE, sizeof(PHRASE) - 1);
	m = deflate_message(&z, PHRASE, sizeof(PHRASE) - 1, false, second, sizeof(second));
	deflateEnd(&z);
	assert_true(m < n / 2);
	assert_int_equal(inflater_feed(w, first, n, true, swallow, &s), 0);
	assert_int_equal(inflater_feed(w, second, m, true, swallow, &s), 0);
	assert_int_equal(s.n, 2 * (sizeof(PHRASE) - 1));
	assert_memory_equal(plain, PHRASE PHRASE, s.n);
	inflater_free(w);
}

static void test_what_does_not_inflate(void **state)
{
	static const struct {
		size_t n;
		const char *p;
	} bad[] = {{1, "\x06"}, {5, "\x00\x01\x00\x00\x00"}, {3, "\x03\xff\xff"},
	        {8, "\xf2\x48\xcd\xc9\xc9\x07\xff\xff"}};
	struct sink s = {0};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct inflater *w = inflater_new(15, false);
		int rc = inflater_feed(w, (const uint8_t *)bad[i].p, bad[i].n, true, swallow, &s);

		if (rc == 0) /* it may show in the next message only */
			rc = inflater_feed(w, SAY("\x06"), true, swallow, &s);
		assert_int_equal(rc, -EBADMSG);
		inflater_free(w);
	}
}

static void test_a_bomb(void **state)
{
	const size_t n = 64u << 20;
	uint8_t *zeros = calloc(1, n), *packed = malloc(1u << 20);
	struct inflater *w = inflater_new(15, true);
	struct sink s = {0};
	z_stream z = {0};
	size_t packed_n;
	int rc = 0;

	(void)state;
	deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
	packed_n = deflate_message(&z, zeros, n, false, packed, 1u << 20);
	deflateEnd(&z);
	for (size_t at = 0; at < packed_n && rc == 0; at += 1000)
		rc = inflater_feed(w, packed + at, packed_n - at < 1000 ? packed_n - at : 1000,
		        false, swallow, &s);
	assert_int_equal(rc, -EFBIG);
	assert_true(s.total <= INFLATED_FREE + 256 * packed_n + (1u << 20));
	inflater_free(w);
	/* A quarter of it is let pass. */
	w = inflater_new(15, true);
	deflateInit2(&z, 9, Z_DEFLATED, -15, 8, Z_DEFAULT_STRATEGY);
	packed_n = deflate_message(&z, zeros, n / 4, false, packed, 1u << 20);
	deflateEnd(&z);
	s.total = 0;
	assert_int_equal(inflater_feed(w, packed, packed_n, true, swallow, &s), 0);
	assert_int_equal(s.total, n / 4);
	inflater_free(w);
	free(zeros);
	free(packed);
}

/* --- what frames hold --- */

static bool takes_text(const char *frames, size_t n, bool masked)
{
	struct websocket w = {.masked = masked};
	struct utf8 text = {0};
	const uint8_t *p = (const uint8_t *)frames;

	for (size_t at = 0; at < n;) {
		enum websocket_step step;
		size_t used = websocket_next(&w, p + at, n - at, &step);

		assert_int_not_equal(step, WEBSOCKET_BAD);
		at += used;
		if (step == WEBSOCKET_HEAD)
			used = 0;
		if ((step == WEBSOCKET_CONTENT || w.left == 0) &&
		        !websocket_is_text(&w, &text, p + at - used, used))
			return false;
	}
	return true;
}
#define TAKES(frames) takes_text(frames, sizeof(frames) - 1, false)

static void test_texts(void **state)
{
	(void)state;
	assert_true(TAKES("\x81\x03\xe2\x82\xac"));
	assert_true(TAKES("\x01\x01\xe2\x89\x01\xff\x00\x00\x00\x01\x82\x80\x01\xac\x81\x01x"));
	assert_true(TAKES("\x82\x01\xff\x02\x01\xff\x80\x01\xc3\x81\x00"));
	assert_true(TAKES("\x8a\x01\xff\x81\x00\x01\x00\x80\x00"));
	assert_false(TAKES("\x81\x01\xff"));
	assert_false(TAKES("\x81\x01\xc3"));
	assert_false(TAKES("\x01\x02\xc0\xaf")); /* before the message is whole */
	assert_false(TAKES("\x01\x01\xe2\x89\x02\x82\xac\x80\x00"));
	assert_false(TAKES("\x01\x01\xe2\x80\x00"));
	assert_false(TAKES("\x81\x03\xed\xa0\x80"));
	assert_true(takes_text("\x81\x83\x01\x02\x03\x04\xe3\x80\xaf", 9, true));
	assert_false(takes_text("\x81\x83\x01\x02\x03\x04\xe3\x80\x2f", 9, true));
}

static void test_what_close_frames_hold(void **state)
{
	uint16_t code;

	(void)state;
	for (unsigned c = 0; c <= UINT16_MAX; c++) {
		const uint8_t content[2] = {(uint8_t)(c >> 8), (uint8_t)c};
		bool known = (c >= 1000 && c <= 1014 && (c < 1004 || c > 1006)) ||
		             (c >= 3000 && c < 5000);

		if (!websocket_close_is_wrong(content, 2, &code) != known)
			fail_msg("code %u", c);
		assert_true(known || code == 1002);
	}
	assert_null(websocket_close_is_wrong(SAY(""), &code));
	assert_null(websocket_close_is_wrong(SAY("\x03\xe8na\xc3\xafve"), &code));
	assert_non_null(websocket_close_is_wrong(SAY("\x03\xe8na\xef"), &code));
	assert_int_equal(code, 1007);
	assert_non_null(websocket_close_is_wrong(SAY("\x03\xe8\xff\xff"), &code));
	assert_int_equal(code, 1007);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_texts),
	        cmocka_unit_test(test_what_close_frames_hold),
	        cmocka_unit_test(test_wrong_frames),
	        cmocka_unit_test(test_frames_in_any_pieces),
	        cmocka_unit_test(test_behind_a_close_nothing_counts),
	        cmocka_unit_test(test_lengths),
	        cmocka_unit_test(test_unmasking),
	        cmocka_unit_test(test_close_frames),
	        cmocka_unit_test(test_answers_to_another_question),
	        cmocka_unit_test(test_choices_that_were_not_offered),
	        cmocka_unit_test(test_choices),
	        cmocka_unit_test(test_offers),
	        cmocka_unit_test(test_keys),
	        cmocka_unit_test(test_inflating_across_messages),
	        cmocka_unit_test(test_inflating_an_ended_stream),
	        cmocka_unit_test(test_what_does_not_inflate),
	        cmocka_unit_test(test_a_bomb),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
