/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mask: tables of what is covered and what is not; every way to cut a text into chunks; and random
 * texts that are rich in near misses against naive_mask.h, byte for byte, with what is held back
 * after every chunk. How what is kept back can be used, and cannot, is in test_mask_waits.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "naive_mask.h"
#include "vethguard/credential/mask.h"

#define TOKEN "ghp_S3cr3t/Tok+en\"x\\y"

static struct mask *mask_of(const char *value)
{
	struct slice s = slice_from_string(value);

	return mask_new(&s, 1);
}

/* Feeds text cut at the given places; the result, NUL-terminated, in out. */
static uint64_t feed_cut(const struct mask *mask, const char *text, size_t n, const size_t *cuts,
        size_t cut_count, char *out)
{
	struct mask_stream s;
	struct buf buf;
	size_t at = 0;
	uint64_t found;

	buf_init(&buf, 1 << 20);
	assert_int_equal(mask_stream_init(&s, mask), 0);
	for (size_t i = 0; i <= cut_count; i++) {
		size_t end = i < cut_count ? cuts[i] : n;

		assert_int_equal(
		        mask_stream_feed(&s, (const uint8_t *)text + at, end - at, &buf), 0);
		at = end;
	}
	assert_int_equal(mask_stream_end(&s, &buf), 0);
	found = s.found;
	assert_int_equal(buf.len, n);
	memcpy(out, buf_slice(&buf).p, n);
	out[n] = 0;
	mask_stream_fini(&s);
	buf_fini(&buf);
	return found;
}

/* The text through every path there is: in place, whole, byte by byte, cut in 2 and in 3 at every
 * place. */
static void check(const struct mask *mask, const char *text, const char *expect, uint64_t found)
{
	size_t n = strlen(text), cuts[256];
	char out[257];
	struct mask_stream s;

	assert_true(n > 0 && n <= 256);
	assert_int_equal(n, strlen(expect));
	memcpy(out, text, n + 1);
	assert_int_equal(mask_in_place(mask, (uint8_t *)out, n), found);
	assert_string_equal(out, expect);
	assert_int_equal(feed_cut(mask, text, n, NULL, 0, out), found);
	assert_string_equal(out, expect);
	for (size_t i = 0; i < n; i++)
		cuts[i] = i + 1;
	assert_int_equal(feed_cut(mask, text, n, cuts, n - 1, out), found);
	assert_string_equal(out, expect);
	for (size_t a = 0; a <= n; a++)
		for (size_t b = a; b <= n; b++) {
			size_t two[2] = {a, b};

			assert_int_equal(feed_cut(mask, text, n, two, 2, out), found);
			assert_string_equal(out, expect);
		}
	mask_stream_init(&s, mask);
	if (found)
		assert_false(mask_stream_clean(&s, (const uint8_t *)text, n));
	mask_stream_fini(&s);
}

struct row {
	const char *value, *text, *expect;
	uint64_t found;
};

static void run_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct mask *mask = mask_of(rows[i].value);

		assert_non_null(mask);
		if (strlen(rows[i].text) != strlen(rows[i].expect))
			fail_msg("row %s: %zu bytes", rows[i].text, strlen(rows[i].text));
		check(mask, rows[i].text, rows[i].expect, rows[i].found);
		mask_free(mask);
	}
}
#define ROWS(rows) run_rows(rows, sizeof(rows) / sizeof((rows)[0]))

static void test_plain(void **state)
{
	static const struct row rows[] = {
	        {"secret", "secret", "******", 1},
	        {"secret", "a secret.", "a ******.", 1},
	        {"secret", "secret at begin and end secret", "****** at begin and end ******", 2},
	        {"secret", "secretsecretsecret", "******************", 3},
	        {"secret", "secresecret", "secre******", 1},
	        {"secret", "ssssecret", "sss******", 1},
	        {"abcabc", "abcabcabc", "*********", 1},
	        {"abcabc", "abcabcabcabc", "************", 1},
	        {"aaaaaa", "aaaaaaaaa", "*********", 1},
	        {"aaaaaa", "aaaaabaaaaaa", "aaaaab******", 1},
	        {"aabaab", "aabaaabaabaab", "aaba*********", 1},
	        {"abcdefabcd", "abcdefabcdefabcdefabcd", "**********************", 1},
	};

	(void)state;
	ROWS(rows);
}

static void test_percent(void **state)
{
	static const struct row rows[] = {
	        {"sec/ret", "k=sec%2Fret&x", "k=*********&x", 1},
	        {"sec/ret", "k=sec%2fret&x", "k=*********&x", 1},
	        {"sec/ret", "%73%65%63%2f%72%65%74", "*********************", 1},
	        {"sec/ret", "%73%65%63%2F%72%65%74", "*********************", 1},
	        {"sekKJjt", "%73%65%6b%4B%4a%6A%74", "*********************", 1},
	        {"sec/ret", "s%65c/re%74", "***********", 1},
	        {"sec/ret", "%%73ec/ret", "%*********", 1},
	        {"sec/ret", "%7%73ec/ret%", "%7*********%", 1},
	        {"sec%ret", "sec%25ret", "*********", 1},
	        {"sec%ret", "sec%ret", "*******", 1},
	        {"sec%25ret", "sec%25ret", "*********", 1},
	        {"sec%25ret", "sec%2525ret", "***********", 1},
	        {"%%%%%%", "%25%25%25%25%25%25", "******************", 1},
	        {"sec ret", "a+sec+ret+b", "a+*******+b", 1},
	        {"sec re/t", "sec+re%2Ft", "**********", 1},
	        {"sec ret", "sec%20ret", "*********", 1},
	        {"s e cret", "s+e%20cret s e+cret", "********** ********", 2},
	        {"s e cret", "s%20e%2Bcret", "************", 1},
	        /* A '%' that stands for itself beside bytes that are escaped. */
	        {"sec%ret", "%73ec%ret", "*********", 1},
	        {"pA%ss\"w0rd<2026>Zq7Lm", "pA%ss%22w0rd%3C2026%3EZq7Lm",
	                "***************************", 1},
	        {"pA%ss\"w0rd<2026>Zq7Lm", "x=pA%ss%22w0rd<2026>Zq7Lm&",
	                "x=***********************&", 1},
	        {"%\"secret", "%%22secret", "**********", 1},
	        {"\"%secret", "%22%secret", "**********", 1},
	        {"secret%", "%73ecret%", "*********", 1},
	        {"secret%", "secret%25", "*********", 1},
	        {"secret%%", "%73ecret%%25", "************", 1},
	        /* A value that looks as if it were escaped. */
	        {"sec%41ret", "sec%41ret", "*********", 1},
	        {"sec%41ret", "sec%2541ret", "***********", 1},
	        {"sec%41ret", "%73ec%41ret", "***********", 1},
	        {"sec%41ret", "sec%4%31ret", "***********", 1},
	        {"%25%25%25", "%25%25%25", "*********", 1},
	        {"%25%25%25", "%2525%25%2525", "*************", 1},
	        {"%%%%%%", "%%25%%%25%%", "***********", 1},
	        /* Not occurrences. */
	        {"sec/ret", "sec%2Gret", "sec%2Gret", 0},
	        {"sec/ret", "sec%2", "sec%2", 0},
	        {"sec/ret", "sec%252Fret", "sec%252Fret", 0},
	        {"sec%ret", "sec%reT", "sec%reT", 0},
	        {"sec%25ret", "sec%ret", "sec%ret", 0},
	        {"sec%41ret", "secAret", "secAret", 0},
	        {"sec+ret", "sec ret", "sec ret", 0},
	        {"sec+ret", "sec%20ret", "sec%20ret", 0},
	};

	(void)state;
	ROWS(rows);
}

static void test_json(void **state)
{
	static const struct row rows[] = {
	        {"se\"c/r\\t", "se\\\"c/r\\\\t", "**********", 1},
	        {"se\"c/r\\t", "se\\\"c\\/r\\\\t", "***********", 1},
	        {"sec/ret", "\"sec\\/ret\"", "\"********\"", 1},
	        {"sec/ret", "sec\\u002fret", "************", 1},
	        {"sec/ret", "sec\\u002Fret", "************", 1},
	        {"sec<>&", "sec\\u003c\\u003E\\u0026", "*********************", 1},
	        {"secret", "\\u0073\\u0065\\u0063\\u0072\\u0065\\u0074",
	                "************************************", 1},
	        {"se\tcret", "se\\tcret", "********", 1},
	        {"secret\\", "secret\\\\", "********", 1},
	        {"secret", "\\\\u0073ecret", "\\***********", 1},
	        {"\\\\\\\\\\\\", "\\\\\\\\\\\\\\\\\\\\\\\\", "************", 1},
	        /* A '\\' that stands for itself beside bytes that are escaped. */
	        {"se\\cret", "\\u0073e\\cret", "************", 1},
	        {"a\\b\"cdef", "a\\b\\\"cdef", "*********", 1},
	        {"a\\b\"cdef", "a\\\\b\"cdef", "*********", 1},
	        {"\\secret", "\\\\u0073ecret", "************", 1},
	        {"secret\\", "\\u0073ecret\\", "************", 1},
	        {"\\\\\\\\\\\\", "\\\\\\\\\\\\\\\\\\", "*********", 1},
	        /* A value that looks as if it were escaped. */
	        {"sec\\nret", "sec\\nret", "********", 1},
	        {"sec\\nret", "sec\\\\nret", "*********", 1},
	        {"sec\\nret", "\\u0073ec\\nret", "*************", 1},
	        {"sec\\u0041ret", "sec\\u0041ret", "************", 1},
	        {"sec\\u0041ret", "sec\\\\u0041re\\u0074", "******************", 1},
	        {"sec\\u0041ret", "sec\\u005cu0041ret", "*****************", 1},
	        /* Both kinds of escapes: a form's value in JSON. */
	        {"a/b\"c+d", "a\\/b%22c%2Bd", "************", 1},
	        {"a/b c%d", "a\\/b\\u002Bc%25d", "***************", 1},
	        /* UTF-8: by code point, by surrogates, by byte. */
	        {"p\xc3\xa4sswd", "p\\u00e4sswd", "***********", 1},
	        {"p\xc3\xa4sswd", "p\\u00E4sswd", "***********", 1},
	        {"p\xc3\xa4sswd", "p\\u00c3\\u00a4sswd", "*****************", 1},
	        {"\xc3\xa4sswdd", "\\u00e4sswdd", "***********", 1},
	        {"\xe2\x82\xacsswd", "\\u20ACsswd", "**********", 1},
	        {"\xf0\x9f\x98\x80sswd", "\\ud83d\\uDE00sswd", "****************", 1},
	        {"sswd\xf0\x9f\x98\x80", "sswd\\ud83d\\uDE00", "****************", 1},
	        {"p\xc3\x83sswd", "p\\u00c3sswd", "***********", 1},
	        {"p\xc3\x83sswd", "p\\u00c3\\u0083sswd", "*****************", 1},
	        {"p\xc3\x83sswd", "p\xc3%83sswd", "*********", 1},
	        {"p\xe4sswdd", "p\\u00e4sswdd", "************", 1},
	        /* Not occurrences. */
	        {"sec/ret", "sec\\u002gret", "sec\\u002gret", 0},
	        {"sec/ret", "sec\\U002fret", "sec\\U002fret", 0},
	        {"secret", "s\\ecret", "s\\ecret", 0},
	        {"se\\cret", "se\\u005Ccre\\t", "se\\u005Ccre\\t", 0},
	        {"sec\\nret", "sec\nret", "sec\nret", 0},
	        {"sec\\u0041ret", "secAret", "secAret", 0},
	        {"p\xc3\xa4sswd", "p\\u00e5sswd", "p\\u00e5sswd", 0},
	        {"\xf0\x9f\x98\x80sswd", "\\ud83d\\uDE01sswd", "\\ud83d\\uDE01sswd", 0},
	};

	(void)state;
	ROWS(rows);
}

static void test_base64(void **state)
{
	static const struct row rows[] = {
	        /* base64 of "secret", "xsecret", "xxsecret", then with more behind. */
	        {"secret", "c2VjcmV0", "********", 1},
	        {"secret", "eHNlY3JldA==", "eH*******A==", 1},
	        {"secret", "eHhzZWNyZXQ=", "eHh*******Q=", 1},
	        {"secret", "c2VjcmV0eHh4", "********eHh4", 1},
	        {"secret", "\"c2VjcmV0\"", "\"********\"", 1},
	        /* "?\?>>?\?>>": both alphabets, and '/' as JSON and URLs write it. */
	        {"?\?>>?\?>>", "Pz8+Pj8/Pj4=", "**********4=", 1},
	        {"?\?>>?\?>>", "Pz8-Pj8_Pj4", "**********4", 1},
	        {"?\?>>?\?>>", "Pz8+Pj8\\/Pj4=", "***********4=", 1},
	        {"?\?>>?\?>>", "Pz8%2BPj8%2fPj4%3d", "**************4%3d", 1},
	        {"?\?>>?\?>>", "Pz8+Pj8%2FPj4=", "************4=", 1},
	        {"?\?>>?\?>>", "Pz8%2BPj8\\/Pj4%3D", "*************4%3D", 1},
	        {"?\?>>?\?>>", "Pz8\\u002BPj8/Pj4=", "***************4=", 1},
	        /* Not occurrences: other case, alphabets mixed, a line break. */
	        {"secret", "C2VjcmV0", "C2VjcmV0", 0},
	        {"?\?>>?\?>>", "Pz8+Pj8_Pj4", "Pz8+Pj8_Pj4", 0},
	        {"secret", "c2Vj\ncmV0", "c2Vj\ncmV0", 0},
	};

	(void)state;
	ROWS(rows);
}

static void test_clean_text_is_untouched(void **state)
{
	static const char *const texts[] = {"Tok", "plain text", "%", "\\", "%%%%%%%%",
	        "\\\\\\\\\\\\\\", "ghp_S3cr3t/Tok+en", "hp_S3cr3t/Tok+en\"x\\y",
	        "ghp%5FS3cr3t%2FTok", "\"\\u0067\\u0068\"", "=====", "%u0067"};
	struct mask *mask = mask_of(TOKEN);

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		check(mask, texts[i], texts[i], 0);
	mask_free(mask);
}

static void test_two_values(void **state)
{
	struct slice values[2] = {SLICE("passw0rd"), SLICE("user:passw0rd")};
	struct mask *mask = mask_new(values, 2);

	(void)state;
	check(mask, "user:passw0rd", "*************", 1);
	check(mask, "user: passw0rd", "user: ********", 1);
	check(mask, "Basic dXNlcjpwYXNzdzByZA==", "Basic *****************A==", 1);
	check(mask, "\"user\\u003apassw0rd\"", "\"******************\"", 1);
	mask_free(mask);
}

static void test_bounds(void **state)
{
	static char big[SECRET_MAX + 1];
	struct slice values[MASK_VALUES_MAX + 1];

	(void)state;
	memset(big, 'x', sizeof(big));
	for (size_t i = 0; i <= MASK_VALUES_MAX; i++)
		values[i] = slice_of(big, MASK_VALUE_MIN);
	assert_null(mask_new(values, 0));
	assert_null(mask_new(values, MASK_VALUES_MAX + 1));
	values[0].n = MASK_VALUE_MIN - 1;
	assert_null(mask_new(values, 1));
	values[0].n = SECRET_MAX + 1;
	assert_null(mask_new(values, 1));
	values[0].n = 0;
	assert_null(mask_new(values, 1));
	mask_free(NULL);
}

/* A chunk that does not fit is refused as a whole, and can be fed again. */
static void test_full_output(void **state)
{
	struct mask *mask = mask_of("secret");
	struct mask_stream s;
	struct buf out;

	(void)state;
	buf_init(&out, 8);
	mask_stream_init(&s, mask);
	assert_int_equal(mask_stream_feed(&s, (const uint8_t *)"; se", 4, &out), 0);
	assert_int_equal(s.held, 2);
	assert_int_equal(mask_stream_feed(&s, (const uint8_t *)"cret;;;", 7, &out), -ENOBUFS);
	assert_int_equal(s.held, 2);
	assert_int_equal(out.len, 2);
	assert_int_equal(mask_stream_feed(&s, (const uint8_t *)"x", SIZE_MAX, &out), -ENOBUFS);
	assert_int_equal(mask_stream_feed(&s, (const uint8_t *)"cret", 4, &out), 0);
	assert_int_equal(mask_stream_end(&s, &out), 0);
	assert_memory_equal(buf_slice(&out).p, "; ******", 8);
	assert_int_equal(s.found, 1);
	assert_int_equal(mask_stream_feed(&s, (const uint8_t *)"", 0, &out), 0);
	assert_int_equal(mask_stream_feed(&s, (const uint8_t *)"s", 1, &out), -ENOBUFS);
	buf_consume(&out, 8);
	assert_int_equal(mask_stream_feed(&s, (const uint8_t *)"s", 1, &out), 0);
	assert_int_equal(mask_stream_end(&s, &out), 0);
	assert_int_equal(out.len, 1);
	mask_stream_fini(&s);
	buf_fini(&out);
	mask_free(mask);
}

/* Bytes held back leave no copy in the output's spare room. */
static void test_held_bytes_leave_no_trace_in_the_output(void **state)
{
	struct mask *mask = mask_of("secret-value-that-is-long");
	struct mask_stream s;
	struct buf out;

	(void)state;
	buf_init(&out, 4096);
	mask_stream_init(&s, mask);
	assert_int_equal(
	        mask_stream_feed(&s, (const uint8_t *)"xx secret-value-that", 20, &out), 0);
	assert_int_equal(out.len, 3);
	assert_null(memmem(out.mem, out.cap, "secret", 6));
	assert_int_equal(mask_stream_feed(&s, (const uint8_t *)"-is-long;", 9, &out), 0);
	assert_null(memmem(out.mem, out.cap, "secret", 6));
	assert_null(memmem(s.tail.p, s.tail.cap, "secret", 6));
	mask_stream_fini(&s);
	buf_fini(&out);
	mask_free(mask);
}

static char *random_token(size_t n)
{
	char *p = malloc(n + 1);

	assert_non_null(p);
	for (size_t i = 0; i < n; i++)
		p[i] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"[rand() %
		                                                                          64];
	p[n] = 0;
	return p;
}

/* Every length around the piece size: the value in plain, percent, JSON and base64 form is covered
 * without a gap. */
static void test_long_values_in_pieces(void **state)
{
	static const size_t sizes[] = {MASK_PIECE_MAX - 1, MASK_PIECE_MAX, MASK_PIECE_MAX + 1,
	        2 * MASK_PIECE_MAX - 3, 2 * MASK_PIECE_MAX - 2, 2 * MASK_PIECE_MAX - 1,
	        2 * MASK_PIECE_MAX, 2 * MASK_PIECE_MAX + 1, 30000, SECRET_MAX};

	(void)state;
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		size_t n = sizes[k];
		char *value = random_token(n), *text = malloc(6 * n + 1), *raw = calloc(1, n + 9);
		struct mask *mask = mask_of(value);

		assert_non_null(mask);
		memcpy(text, value, n);
		assert_true(mask_in_place(mask, (uint8_t *)text, n) > 0);
		for (size_t i = 0; i < n; i++)
			assert_int_equal(text[i], '*');
		for (size_t i = 0; i < n; i++)
			sprintf(text + 6 * i, "\\u%04X", (unsigned char)value[i]);
		mask_in_place(mask, (uint8_t *)text, 6 * n);
		for (size_t i = 0; i < 6 * n; i++)
			assert_int_equal(text[i], '*');
		for (size_t lead = 0; lead < 3; lead++) {
			size_t total = (lead + n + 2) / 3 * 3;

			memcpy(raw + lead, value, n);
			naive_base64((unsigned char *)raw, total, "+/", text);
			mask_in_place(mask, (uint8_t *)text, total / 3 * 4);
			for (size_t i = lead ? lead + 1 : 0; i + 4 < total / 3 * 4; i++)
				assert_int_equal(text[i], '*');
		}
		mask_free(mask);
		free(value);
		free(text);
		free(raw);
	}
}

/* --- against the naive implementation --- */

static size_t random_value(char *out)
{
	static const char *const alphabets[] = {"ab", "abc/", "a%2", "a\\u0", "a %+\"\\/",
	        "abcdefghijklmnop0123456789", "%25", "\\u05c", "%\\", "\\\"/n",
	        "%\\\"+ u01234a/=\xc3\xa4\x83", "\xc3\x83\xe2\x82\xac\xf0\x9f\x98\x80"};
	const char *alphabet = alphabets[(size_t)rand() % (sizeof(alphabets) / sizeof(*alphabets))];
	size_t n = MASK_VALUE_MIN + (size_t)rand() % 12;

	for (size_t i = 0; i < n; i++)
		out[i] = alphabet[(size_t)rand() % strlen(alphabet)];
	return n;
}

/* Appends a pattern, whole or in part, in a random spelling. */
static size_t append_near_miss(const struct naive *naive, char *out)
{
	size_t k = (size_t)rand() % naive->count, n = naive->patterns[k].n;
	size_t from = rand() % 3 ? 0 : (size_t)rand() % n,
	       to = rand() % 2 ? n : from + (size_t)rand() % (n - from + 1);
	static const unsigned escaped[] = {0, 1, 2, 5};

	return naive_spell(naive->patterns[k].p, from, to, escaped[rand() % 4], rand, out);
}

static size_t random_text(const struct naive *naive, char *out, size_t room)
{
	size_t n = 0, pieces = 1 + (size_t)rand() % 6;

	for (size_t i = 0; i < pieces && room - n > 300; i++) {
		if (rand() % 4 == 0)
			out[n++] = "ab%\\u025/ +n\"x=\xc3"[rand() % 15];
		else
			n += append_near_miss(naive, out + n);
	}
	if (n == 0)
		out[n++] = 'a';
	return n;
}

static void compare_once(
        const struct mask *mask, const struct naive *naive, const char *text, size_t n)
{
	static bool covered[4096];
	struct mask_stream s;
	struct buf out;
	size_t at = 0;

	buf_init(&out, 1 << 16);
	mask_stream_init(&s, mask);
	while (at < n) {
		size_t step = rand() % 2 ? 1 : 1 + (size_t)rand() % (n - at), keep;
		bool clean = mask_stream_clean(&s, (const uint8_t *)text + at, step);

		if (clean) {
			assert_int_equal(s.held, 0);
			assert_int_equal(naive_run(naive, text + at, step, covered), step);
			assert_null(memchr(covered, true, step));
			assert_in_range(
			        step - naive_open(naive, text + at, step), 0, MASK_SHOWN_MAX);
			assert_int_equal(buf_append(&out, text + at, step), 0);
			at += step;
			continue;
		}
		assert_int_equal(mask_stream_feed(&s, (const uint8_t *)text + at, step, &out), 0);
		at += step;
		keep = naive_open(naive, text, at);
		assert_true(keep <= naive_run(naive, text, at, covered));
		assert_in_range(out.len, keep, at);
		assert_int_equal(s.held, at - out.len);
	}
	assert_int_equal(mask_stream_end(&s, &out), 0);
	naive_run(naive, text, n, covered);
	assert_int_equal(out.len, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_slice(&out).p[i], covered[i] ? '*' : text[i]);
	mask_stream_fini(&s);
	buf_fini(&out);
}

static void test_against_naive(void **state)
{
	static char text[4096], copy[4096];
	static struct naive naive;

	(void)state;
	srand(20240611);
	for (int round = 0; round < 600; round++) {
		char values[2][32];
		struct slice slices[2];
		size_t count = 1 + (size_t)rand() % 2;
		struct mask *mask;

		naive.count = 0;
		for (size_t i = 0; i < count; i++) {
			slices[i] = slice_of(values[i], random_value(values[i]));
			naive_add_value(&naive, values[i], slices[i].n);
		}
		mask = mask_new(slices, count);
		assert_non_null(mask);
		for (int k = 0; k < 4; k++) {
			static bool covered[4096];
			size_t n = random_text(&naive, text, sizeof(text));

			compare_once(mask, &naive, text, n);
			memcpy(copy, text, n);
			mask_in_place(mask, (uint8_t *)copy, n);
			naive_run(&naive, text, n, covered);
			for (size_t i = 0; i < n; i++)
				assert_int_equal(copy[i], covered[i] ? '*' : text[i]);
		}
		mask_free(mask);
	}
}

/* Looks for it only, in text cut in two. */
static bool search_cut(const struct mask *mask, const char *text, size_t n, size_t cut)
{
	struct mask_stream s;
	bool found;

	mask_stream_init(&s, mask);
	found = mask_stream_search(&s, (const uint8_t *)text, cut);
	found |= mask_stream_search(&s, (const uint8_t *)text + cut, n - cut);
	mask_stream_fini(&s);
	return found;
}

/* One value in one random spelling of every byte, between bytes that may belong to it or not: the
 * same whole, byte by byte, and cut in two at every place. */
static void test_mixtures(void **state)
{
	static const char around[] = "%\\\"+ u01234a/=\xc3";
	static char text[4096], out[4097];
	static bool covered[4096];
	static struct naive naive;
	size_t cuts[4096];

	(void)state;
	srand(20261125);
	for (size_t i = 0; i < sizeof(cuts) / sizeof(*cuts); i++)
		cuts[i] = i + 1;
	for (int round = 0; round < 1000; round++) {
		char value[32];
		struct slice slice = slice_of(value, random_value(value));
		struct mask *mask = mask_new(&slice, 1);
		size_t n = 0, k, start, end;
		uint64_t found;

		naive.count = 0;
		naive_add_value(&naive, value, slice.n);
		k = rand() % 2 ? 0 : (size_t)rand() % naive.count;
		for (int i = rand() % 4; i > 0; i--)
			text[n++] = around[(size_t)rand() % (sizeof(around) - 1)];
		start = n;
		n += naive_spell(naive.patterns[k].p, 0, naive.patterns[k].n,
		        1 + (unsigned)rand() % 4, rand, text + n);
		end = n;
		for (int i = rand() % 8; i > 0; i--)
			text[n++] = around[(size_t)rand() % (sizeof(around) - 1)];
		naive_run(&naive, text, n, covered);
		for (size_t i = start; i < end; i++)
			assert_true(covered[i]);
		found = feed_cut(mask, text, n, cuts, n - 1, out);
		assert_true(found > 0);
		for (size_t cut = 0; cut <= n; cut++) {
			assert_true(search_cut(mask, text, n, cut));
			for (size_t i = 0; i < n; i++)
				assert_int_equal(out[i], covered[i] ? '*' : text[i]);
			assert_int_equal(feed_cut(mask, text, n, &cut, 1, out), found);
		}
		mask_free(mask);
	}
}

/* A value made to be read in two ways everywhere: the work stays within bounds. */
static void test_values_that_are_all_escape_bytes(void **state)
{
	static const char *const units[] = {"\\", "%", "%25", "\\u005c", "\\\\n"};
	static char value[100], text[600];

	(void)state;
	for (size_t k = 0; k < sizeof(units) / sizeof(*units); k++) {
		size_t unit = strlen(units[k]);
		struct mask *mask;

		for (size_t i = 0; i < sizeof(text); i++)
			text[i] = units[k][i % unit];
		memcpy(value, text, sizeof(value));
		mask = mask_new(&(struct slice){value, sizeof(value)}, 1);
		assert_non_null(mask);
		mask_in_place(mask, (uint8_t *)text, sizeof(text));
		for (size_t i = 0; i + unit < sizeof(text); i++)
			assert_int_equal(text[i], '*');
		mask_free(mask);
	}
}

/* '\\' and NUL is not an escape, least of all of a byte that has no short one. */
static void test_a_backslash_before_nul(void **state)
{
	struct mask *mask = mask_of("secret");
	uint8_t text[] = "\\\0ecret \\u0073\\\0cret %73\\\0cret";

	(void)state;
	assert_int_equal(mask_in_place(mask, text, sizeof(text)), 0);
	mask_free(mask);
}

/* A stream cut anywhere counts what the whole text counts. */
static void test_count_does_not_depend_on_cuts(void **state)
{
	static struct naive naive;
	static char text[4096], out[4097];

	(void)state;
	srand(7);
	for (int round = 0; round < 500; round++) {
		char value[32];
		struct slice slice = slice_of(value, random_value(value));
		struct mask *mask = mask_new(&slice, 1);
		size_t n, cuts[2];
		uint64_t whole;

		naive.count = 0;
		naive_add_value(&naive, value, slice.n);
		n = random_text(&naive, text, sizeof(text));
		whole = feed_cut(mask, text, n, NULL, 0, out);
		cuts[0] = (size_t)rand() % (n + 1);
		cuts[1] = cuts[0] + (size_t)rand() % (n - cuts[0] + 1);
		assert_int_equal(feed_cut(mask, text, n, cuts, 2, out), whole);
		mask_free(mask);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	        cmocka_unit_test(test_plain),
	        cmocka_unit_test(test_percent),
	        cmocka_unit_test(test_json),
	        cmocka_unit_test(test_base64),
	        cmocka_unit_test(test_clean_text_is_untouched),
	        cmocka_unit_test(test_two_values),
	        cmocka_unit_test(test_bounds),
	        cmocka_unit_test(test_full_output),
	        cmocka_unit_test(test_held_bytes_leave_no_trace_in_the_output),
	        cmocka_unit_test(test_long_values_in_pieces),
	        cmocka_unit_test(test_against_naive),
	        cmocka_unit_test(test_mixtures),
	        cmocka_unit_test(test_a_backslash_before_nul),
	        cmocka_unit_test(test_values_that_are_all_escape_bytes),
	        cmocka_unit_test(test_count_does_not_depend_on_cuts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
