/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the mask keeps back at the end of a piece of text: the same whether a guess of the value is
 * right or wrong, in every order of pieces and pauses; no more of the value than may be seen; and
 * nothing for longer than need be.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "vethguard/credential/mask.h"

#define VALUE "the-long-secret-value+1/and-more" /* 32 bytes: four may be seen */

static struct mask *mask_of(const char *value)
{
	struct slice s = slice_from_string(value);

	return mask_new(&s, 1);
}

static void take(struct mask_stream *s, const char *p, size_t n, struct buf *out)
{
	struct slice rest;

	assert_int_equal(mask_stream_take(s, (const uint8_t *)p, n, out, &rest), 0);
	assert_int_equal(buf_append_slice(out, rest), 0);
}

static void test_what_waits(void **state)
{
	static const struct {
		const char *value, *piece;
		size_t held;
	} rows[] = {
	        {VALUE, "data: hello\n\n", 0},
	        {VALUE, "{\"a\": \"hello\"}", 0},
	        {VALUE, "so it ends?", 0},
	        {VALUE, "hello", 5},
	        {VALUE, "so it ends.", 5},
	        {VALUE, "the-long", 8},
	        {VALUE, "thx-long", 8},
	        {VALUE, "\\u0074\\u0068", 12},
	        {VALUE, "a %68%65%6", 8},
	        /* a beginning could reach back so far, and with escapes farther */
	        {VALUE, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 52},
	        {VALUE, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa%61aaaaaaaaaaaaaaaaaaaaaaaaaa", 64},
	        /* a value with other bytes: all but control characters */
	        {"a value with spaces in it", "data: hello\n\n", 0},
	        {"a value with spaces in it", "data: hello", 11},
	        {"a value with spaces in it", "data\x01 hello", 6},
	        {"a value with \xc3\xa4 in it!", "\nx: hellu\xc3", 9},
	        {"p\xc3\xa4ssword-of-mine", "x {\"hello\"}", 11},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct mask *mask = mask_of(rows[i].value);
		size_t n = strlen(rows[i].piece);
		struct mask_stream s;
		struct buf out;

		buf_init(&out, 4096);
		mask_stream_init(&s, mask);
		assert_int_equal(mask_stream_feed(&s, (const uint8_t *)rows[i].piece, n, &out), 0);
		if (s.held != rows[i].held)
			fail_msg("%s: %zu instead of %zu", rows[i].piece, s.held, rows[i].held);
		assert_int_equal(out.len, n - s.held);
		assert_int_equal(mask_stream_end(&s, &out), 0);
		assert_int_equal(out.len, n);
		assert_memory_equal(buf_bytes(&out), rows[i].piece, n);
		assert_int_equal(s.held, 0);
		mask_stream_fini(&s);
		buf_fini(&out);
		mask_free(mask);
	}
}

/* A stream under one of two masks. */
struct side {
	struct mask *mask;
	char value[32];
	struct mask_stream stream;
	struct buf out;
};

static void side_begin(struct side *side, size_t n)
{
	static const char keys[] = "abcdefghijklmnopqrstuvwxyz0123456789%\\-+";
	struct slice value = slice_of(side->value, n);

	for (size_t i = 0; i < n; i++)
		side->value[i] = keys[(size_t)rand() % (sizeof(keys) - 1)];
	side->mask = mask_new(&value, 1);
	assert_non_null(side->mask);
	mask_stream_init(&side->stream, side->mask);
	buf_init(&side->out, 1 << 16);
}

static void side_end(struct side *side)
{
	mask_stream_fini(&side->stream);
	mask_free(side->mask);
	buf_fini(&side->out);
}

/* A guess of one's beginning or something else. */
static size_t piece_of(const struct side *side, size_t value_n, char *out)
{
	static const char others[] = "ab0 .;\n%\\\"x";
	size_t n = 0, of = (size_t)rand() % value_n, end = of + (size_t)rand() % (value_n - of);

	switch (rand() % 6) {
	case 0: /* something else */
		for (int i = rand() % 6; i >= 0; i--)
			out[n++] = others[(size_t)rand() % (sizeof(others) - 1)];
		return n;
	case 1: /* how it goes on */
		memcpy(out, side->value + of, end - of);
		return end - of;
	case 2:
		for (; n < 12 * (end / 6); n += 3)
			sprintf(out + n, "%%%02x", (unsigned char)side->value[n / 3]);
		return n;
	case 3: /* out of a full chunk */
		for (n = 0; n < 150; n++)
			out[n] = others[(size_t)rand() % (sizeof(others) - 1)];
		/* fall through */
	default:
		memcpy(out + n, side->value, end);
		return n + end;
	}
}

enum then { GO_ON, PAUSE, SHOW, TAKE, CLEAN };

static void side_piece(struct side *side, const char *p, size_t n, enum then then)
{
	struct mask_stream *s = &side->stream;

	if (then == CLEAN && mask_stream_clean(s, (const uint8_t *)p, n)) {
		assert_int_equal(buf_append(&side->out, p, n), 0);
		return;
	}
	if (then == TAKE) {
		take(s, p, n, &side->out);
		return;
	}
	assert_int_equal(mask_stream_feed(s, (const uint8_t *)p, n, &side->out), 0);
	if (then == SHOW)
		assert_int_equal(mask_stream_show(s, &side->out), 0);
	else if (then != GO_ON)
		assert_int_equal(mask_stream_pause(s, &side->out), 0);
}

/* Two values of a length, and one upstream that sends guesses of either: as long as it sends
 * neither as a whole, what goes out, and when, is the same byte for byte. */
static void test_waiting_tells_nothing_of_the_value(void **state)
{
	unsigned compared = 0, long_waits = 0;

	(void)state;
	srand(4711);
	for (int round = 0; round < 3000; round++) {
		size_t n = 8 + (size_t)rand() % 20;
		bool messages = rand() % 2; /* which are shown, but never wait in pieces */
		struct side sides[2];

		side_begin(&sides[0], n);
		side_begin(&sides[1], n);
		for (int i = 0; i < 12; i++) {
			char piece[512];
			size_t k = piece_of(&sides[rand() % 2], n, piece);
			enum then then = messages ? (rand() % 2 ? SHOW : GO_ON)
			                          : (rand() % 3 ? TAKE : PAUSE);

			side_piece(&sides[0], piece, k, then);
			side_piece(&sides[1], piece, k, then);
			if (sides[0].stream.found || sides[1].stream.found)
				break;
			assert_int_equal(sides[0].out.len, sides[1].out.len);
			assert_memory_equal(buf_bytes(&sides[0].out), buf_bytes(&sides[1].out),
			        sides[0].out.len);
			compared++;
			long_waits += sides[0].stream.held - sides[0].stream.shown > MASK_SHOWN_MAX;
		}
		side_end(&sides[0]);
		side_end(&sides[1]);
	}
	assert_true(compared > 20000 && long_waits > 5000);
}

/* The same through mask_stream_take() as through feed and pause, whatever was found. */
static void test_what_is_not_copied_is_the_same(void **state)
{
	(void)state;
	srand(12);
	for (int round = 0; round < 2000; round++) {
		size_t n = 8 + (size_t)rand() % 20;
		struct side side, other;

		side_begin(&side, n);
		other = (struct side){.mask = side.mask};
		mask_stream_init(&other.stream, side.mask);
		buf_init(&other.out, 1 << 16);
		for (int i = 0; i < 12; i++) {
			char piece[512];
			size_t k = rand() % 4
			                   ? piece_of(&side, n, piece)
			                   : (size_t)sprintf(piece, "%.*s.\n", (int)n, side.value);

			side_piece(&side, piece, k, rand() % 2 ? TAKE : CLEAN);
			side_piece(&other, piece, k, PAUSE);
			assert_int_equal(side.out.len, other.out.len);
			assert_memory_equal(
			        buf_bytes(&side.out), buf_bytes(&other.out), side.out.len);
			assert_int_equal(side.stream.found, other.stream.found);
		}
		mask_stream_fini(&other.stream);
		buf_fini(&other.out);
		side_end(&side);
	}
}

/* Feeds text cut at two places, with a pause after each piece; what came out is in out. */
static void feed_with_pauses(
        const struct mask *mask, const char *text, size_t first, size_t second, struct buf *out)
{
	const size_t cuts[] = {0, first, second, strlen(text)};
	struct mask_stream s;

	mask_stream_init(&s, mask);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(mask_stream_feed(&s, (const uint8_t *)text + cuts[i],
		                         cuts[i + 1] - cuts[i], out),
		        0);
		assert_int_equal(mask_stream_pause(&s, out), 0);
		assert_int_equal(mask_stream_pause(&s, out), 0); /* once is enough */
	}
	assert_int_equal(mask_stream_end(&s, out), 0);
	assert_int_equal(s.found, 1);
	mask_stream_fini(&s);
}

/* Bytes of the value that are seen in out, where the whole is what it should be. */
static size_t seen(const struct buf *out, const char *whole, const char *text, size_t n)
{
	size_t count = 0;

	assert_int_equal(out->len, n);
	for (size_t k = 0; k < n; k++) {
		char c = (char)buf_slice(out).p[k];

		count += c != whole[k];
		assert_true(c == whole[k] || c == text[k]);
	}
	return count;
}

/* Wherever the pauses fall: no byte is lost or doubled, and of a value at most its first few are
 * seen. */
static void test_pauses_inside_a_value(void **state)
{
	static const char *const texts[] = {"ab " VALUE " cd",
	        "ab the%2dlong%2Dsecret-value%2b1%2fand-more cd",
	        "ab \\u0074he-long-secret-value+1\\/and-more cd", "x%% " VALUE " %",
	        "dGhlLWxvbmctc2VjcmV0LXZhbHVlKzEvYW5kLW1vcmU= "};
	struct mask *mask = mask_of(VALUE);

	(void)state;
	for (size_t t = 0; t < sizeof(texts) / sizeof(*texts); t++) {
		size_t n = strlen(texts[t]);
		char whole[128];
		struct buf out;

		memcpy(whole, texts[t], n + 1);
		assert_int_equal(mask_in_place(mask, (uint8_t *)whole, n), 1);
		for (size_t i = 0; i <= n; i++)
			for (size_t j = i; j <= n; j++) {
				buf_init(&out, 4096);
				feed_with_pauses(mask, texts[t], i, j, &out);
				assert_true(seen(&out, whole, texts[t], n) <= MASK_SHOWN_MAX);
				buf_fini(&out);
			}
	}
	mask_free(mask);
}

/* A value that trickles, with a pause behind every byte, or every few. */
static void test_a_value_that_trickles(void **state)
{
	static const char *const texts[] = {"ab {\"" VALUE "\"} cd", VALUE,
	        "\\u0074he-long-secret-value+1/and-more", "t\\u0068e-long-secret-value+1/and-more,",
	        "%74he-long-secret-value+1/and-more", "t%68%65-long-secret-value+1/and-more;",
	        "\\u0074\\u0068\\u0065\\u002d\\u006c\\u006f\\u006e\\u0067-secret-value+1\\/"
	        "and-more",
	        "dG\\u0068lLWxvbmctc2VjcmV0LXZhbHVlKzEvYW5kLW1vcmU= ",
	        "dGhlLWxvbmctc2VjcmV0LXZhbHVlKzEvYW5kLW1vcmU="};
	struct mask *mask = mask_of(VALUE);

	(void)state;
	for (size_t t = 0; t < sizeof(texts) / sizeof(*texts); t++) {
		const char *text = texts[t];
		size_t n = strlen(text);
		char whole[256];

		memcpy(whole, text, n + 1);
		mask_in_place(mask, (uint8_t *)whole, n);
		for (size_t step = 1; step < 8; step++) {
			struct mask_stream s;
			struct buf out;

			buf_init(&out, 4096);
			mask_stream_init(&s, mask);
			for (size_t at = 0; at < n; at += step)
				take(&s, text + at, n - at < step ? n - at : step, &out);
			assert_int_equal(mask_stream_end(&s, &out), 0);
			assert_true(seen(&out, whole, text, n) <= MASK_SHOWN_MAX);
			assert_int_equal(s.found, 1);
			mask_stream_fini(&s);
			buf_fini(&out);
		}
	}
	mask_free(mask);
}

static void test_a_short_end_does_not_wait(void **state)
{
	static const struct {
		const char *value, *message;
		size_t waits;
	} rows[] = {{VALUE, "100%", 0}, {VALUE, "a back\\slash \\", 0}, {VALUE, "what t", 0},
	        {VALUE, "so th", 0}, {VALUE, "so thats", 5}, {VALUE, "the-long", 8},
	        {"secret", "x se", 2}, {"secret", "x s", 0},
	        {"sk-ant-api03-0123456789abcdefghij", "x sk-a", 0},
	        {"sk-ant-api03-0123456789abcdefghij", "x sk-an", 5}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t n = strlen(rows[i].message);
		struct mask *mask = mask_of(rows[i].value);
		struct mask_stream s;
		struct buf out;

		buf_init(&out, 4096);
		mask_stream_init(&s, mask);
		take(&s, rows[i].message, n, &out);
		assert_int_equal(out.len, n - rows[i].waits);
		mask_stream_fini(&s);
		buf_fini(&out);
		mask_free(mask);
	}
}

/* When nothing more comes, text that is not a beginning of the value goes out, and a beginning is
 * counted. */
static void test_release(void **state)
{
	static const struct {
		const char *piece;
		int rc;
	} rows[] = {
	        {"hello", 0},
	        {"x-the-", 0},
	        {"the-l", -EACCES},
	        {"the-long", -EACCES},
	        {"xthe-long-secret-value+", -EACCES},
	        {"the-lonx", 0},
	        {VALUE, 0}, /* it is covered */
	        {VALUE "the-", 0},
	        {VALUE "the-l", -EACCES},
	        {"\\u0074\\u0068", 0}, /* two bytes of it */
	        {"\\u0074he-l", -EACCES},
	        {"the-\\u006", -EACCES},
	        {"xdGhlL", -EACCES},
	        {"xdGhl", 0},
	};
	struct mask *mask = mask_of(VALUE);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		size_t n = strlen(rows[i].piece);
		struct mask_stream s;
		struct buf out;
		int rc;

		buf_init(&out, 4096);
		mask_stream_init(&s, mask);
		take(&s, rows[i].piece, n, &out);
		rc = mask_stream_release(&s, &out);
		if (rc != rows[i].rc)
			fail_msg("%s: %d", rows[i].piece, rc);
		assert_int_equal(s.waited, rc < 0);
		if (rc == 0) {
			assert_int_equal(out.len, n);
			assert_null(memmem(buf_bytes(&out), n, VALUE, strlen(VALUE)));
			/* and if it goes on: the rest is covered, nothing comes twice */
			take(&s, ". ", 2, &out);
			assert_int_equal(out.len, n + 2);
		}
		mask_stream_fini(&s);
		buf_fini(&out);
	}
	mask_free(mask);
}

/* The mask remembers what it released: the rest of the value is covered. */
static void test_after_a_release(void **state)
{
	struct mask *mask = mask_of(VALUE);
	struct mask_stream s;
	struct buf out;

	(void)state;
	buf_init(&out, 4096);
	mask_stream_init(&s, mask);
	take(&s, "hello,the", 9, &out);
	take(&s, "-x", 2, &out); /* three bytes before it were seen */
	assert_int_equal(out.len, 9);
	assert_int_equal(mask_stream_release(&s, &out), 0);
	assert_int_equal(out.len, 11);
	take(&s, "x", 1, &out); /* every further one waits */
	assert_int_equal(out.len, 11);
	take(&s, ",the-", 5, &out); /* but for what others stand before */
	assert_int_equal(out.len, 17);
	take(&s, "long-secret-value+1/and-more ", 29, &out);
	assert_int_equal(out.len, 46);
	assert_memory_equal(buf_bytes(&out), "hello,the-xx,the-**************************** ", 46);
	assert_int_equal(s.found, 1);
	mask_stream_fini(&s);
	buf_fini(&out);
	mask_free(mask);
}

/* Messages that are shown whole: of each what may be a beginning stays in mind, wherever it starts,
 * and the rest of the value is covered. */
static void test_after_messages(void **state)
{
	static const char *const before[] = {"", "x", "hello", "hello, ", "the-the-the-"};
	struct mask *mask = mask_of(VALUE);

	(void)state;
	for (size_t b = 0; b < sizeof(before) / sizeof(*before); b++)
		for (size_t cut = 1; cut < strlen(VALUE); cut++) {
			size_t n = strlen(before[b]) + cut, rest = strlen(VALUE) - cut;
			struct mask_stream s;
			struct buf out;

			buf_init(&out, 4096);
			mask_stream_init(&s, mask);
			assert_int_equal(mask_stream_feed(&s, (const uint8_t *)before[b],
			                         strlen(before[b]), &out),
			        0);
			assert_int_equal(
			        mask_stream_feed(&s, (const uint8_t *)VALUE, cut, &out), 0);
			assert_int_equal(mask_stream_show(&s, &out), 0);
			assert_int_equal(out.len, n);
			assert_int_equal(
			        mask_stream_feed(&s, (const uint8_t *)VALUE + cut, rest, &out), 0);
			assert_int_equal(mask_stream_show(&s, &out), 0);
			assert_int_equal(out.len, n + rest);
			assert_memory_equal(buf_bytes(&out), before[b], strlen(before[b]));
			for (size_t i = n; i < out.len; i++)
				assert_int_equal(buf_bytes(&out)[i], '*');
			assert_int_equal(s.found, 1);
			mask_stream_fini(&s);
			buf_fini(&out);
		}
	mask_free(mask);
}

/* The memory of an ended stream goes to another stream, and holds nothing of the first. */
static void test_a_tail_is_wiped_for_the_next(void **state)
{
	struct mask *mask = mask_of(VALUE);
	struct mask_stream a, b;
	struct buf out;
	uint8_t *room;

	(void)state;
	buf_init(&out, 4096);
	mask_stream_init(&a, mask);
	take(&a, "the-long-secret", 15, &out);
	room = a.tail.p;
	assert_non_null(room);
	mask_stream_fini(&a);
	assert_null(memmem(room, 15, "the", 3));
	mask_stream_init(&a, mask);
	mask_stream_init(&b, mask);
	take(&a, "hello", 5, &out);
	take(&b, "hello", 5, &out);
	assert_ptr_equal(a.tail.p, room);
	assert_ptr_not_equal(b.tail.p, room);
	mask_stream_fini(&a);
	mask_stream_fini(&b);
	buf_fini(&out);
	mask_free(mask);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_what_waits),
	        cmocka_unit_test(test_waiting_tells_nothing_of_the_value),
	        cmocka_unit_test(test_what_is_not_copied_is_the_same),
	        cmocka_unit_test(test_pauses_inside_a_value),
	        cmocka_unit_test(test_a_value_that_trickles),
	        cmocka_unit_test(test_a_short_end_does_not_wait),
	        cmocka_unit_test(test_release),
	        cmocka_unit_test(test_after_a_release),
	        cmocka_unit_test(test_after_messages),
	        cmocka_unit_test(test_a_tail_is_wiped_for_the_next),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
