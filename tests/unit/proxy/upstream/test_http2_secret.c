/* SPDX-License-Identifier: Apache-2.0 */
/* A credential on its way to an upstream that speaks HTTP/2: in no compression table, and in no
 * memory that could be swapped out or dumped once it has been sent. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "../http2_origin.h"

#define HEAD_BYTES 9 /* of a frame (RFC 9113 section 4.1) */
#define PREFACE_BYTES 24
#define LITERAL_NEVER_INDEXED 0x10 /* RFC 7541 section 6.2.3 */

/* --- the table --- */

static void expect_not_in_table(nghttp2_hd_inflater *inflater)
{
	size_t n = nghttp2_hd_inflate_get_num_table_entries(inflater);

	assert_true(n > 61); /* something did enter the dynamic part */
	for (size_t i = 1; i <= n; i++) {
		const nghttp2_nv *e = nghttp2_hd_inflate_get_table_entry(inflater, i);

		assert_null(memmem(e->value, e->valuelen, "TOKEN", 5));
		assert_null(memmem(e->value, e->valuelen, "Zm9v", 4));
	}
}

/* Reads one header block; how many fields with the credential were in it, each marked. */
static size_t inflate(nghttp2_hd_inflater *inflater, const uint8_t *p, size_t n)
{
	size_t found = 0;

	for (;;) {
		nghttp2_nv field;
		int flags = 0;
		ssize_t used = nghttp2_hd_inflate_hd2(inflater, &field, &flags, p, n, 1);

		assert_true(used >= 0);
		p += used;
		n -= (size_t)used;
		if (flags & NGHTTP2_HD_INFLATE_EMIT &&
		        memmem(field.value, field.valuelen, "TOKEN", 5)) {
			assert_true(field.flags & NGHTTP2_NV_FLAG_NO_INDEX);
			found++;
		}
		if (flags & NGHTTP2_HD_INFLATE_FINAL)
			break;
	}
	nghttp2_hd_inflate_end_headers(inflater);
	return found;
}

/* The next HEADERS frame that has come; its length, or 0. What is before it is taken. */
static size_t next_block(struct peer *p, uint8_t **block)
{
	while (p->in.len >= HEAD_BYTES) {
		uint8_t *f = buf_bytes(&p->in);
		size_t n = (size_t)f[0] << 16 | (size_t)f[1] << 8 | f[2];

		if (p->in.len < HEAD_BYTES + n)
			break;
		if (f[3] == NGHTTP2_HEADERS) {
			assert_int_equal(f[4] & ~NGHTTP2_FLAG_END_STREAM, NGHTTP2_FLAG_END_HEADERS);
			*block = f + HEAD_BYTES;
			return n;
		}
		buf_consume(&p->in, HEAD_BYTES + n);
	}
	return 0;
}

static void never_in_the_table(unsigned name, const char *host)
{
	const nghttp2_nv more[] = {
	        nv("x-some", "value"), nv("authorization", "Basic Zm9vOmJhcg==")};
	struct h2 *c = enliven(h2_client_of(name, host));
	nghttp2_hd_inflater *inflater;
	struct peer *o = NULL;

	nghttp2_hd_inflate_new(&inflater);
	for (int i = 0; i < 3; i++) {
		uint8_t *block;
		size_t n;

		h2_ask_with(c, "GET", host, "/x", more, 2, NULL);
		if (!o) {
			o = accept_tls("\x02h2");
			ALL_UNTIL(o->in.len >= PREFACE_BYTES);
			buf_consume(&o->in, PREFACE_BYTES);
			say_n(o, "\0\0\0\4\0\0\0\0\0", HEAD_BYTES);
		}
		ALL_UNTIL((n = next_block(o, &block)));
		assert_int_equal(inflate(inflater, block, n), 1);
		buf_consume(&o->in, HEAD_BYTES + n);
		expect_not_in_table(inflater);
	}
	nghttp2_hd_inflate_del(inflater);
	leave(c, true);
	hang_up(o, true);
}

static void test_never_in_the_compression_table(void **state)
{
	(void)state;
	never_in_the_table(NAME_C, "c.test");
	never_in_the_table(NAME_Q, "q.test");
}

/* The same for a credential of the sandbox's own. */
static void test_the_sandboxs_own(void **state)
{
	const nghttp2_nv more[] = {nv("authorization", "Basic Zm9vOmJhcg==")};
	struct h2 *c = enliven(h2_client());
	nghttp2_hd_inflater *inflater;
	struct peer *o;
	uint8_t *block;
	size_t n;

	(void)state;
	nghttp2_hd_inflate_new(&inflater);
	h2_ask_with(c, "GET", "a.test", "/x", more, 1, NULL);
	o = accept_tls("\x02h2");
	ALL_UNTIL(o->in.len >= PREFACE_BYTES);
	buf_consume(&o->in, PREFACE_BYTES);
	ALL_UNTIL((n = next_block(o, &block)));
	assert_int_equal(inflate(inflater, block, n), 0);
	expect_not_in_table(inflater);
	nghttp2_hd_inflate_del(inflater);
	leave(c, true);
	hang_up(o, true);
}

/* --- memory --- */

/* The value to find, each byte inverted, so that this copy is not found itself. */
struct needle {
	uint8_t inverted[64];
	size_t n;
};

static void make_needle(struct needle *needle, const volatile uint8_t *p, size_t n)
{
	assert_true(n >= 12 && n <= sizeof(needle->inverted));
	needle->n = n;
	for (size_t i = 0; i < n; i++)
		needle->inverted[i] = (uint8_t)~p[i];
}

/* The value as HPACK writes it (RFC 7541 section 5.2): a string literal begins at a whole byte. */
static inline void make_huffman_needle(struct needle *needle)
{
	static const char name[] = "authorization", value[] = "Bearer " SECRET_VALUE;
	nghttp2_nv field = nv(name, value);
	nghttp2_hd_deflater *deflater;
	uint8_t block[200];
	ssize_t n;

	field.flags = NGHTTP2_NV_FLAG_NO_INDEX;
	nghttp2_hd_deflate_new(&deflater, 4096);
	n = nghttp2_hd_deflate_hd(deflater, block, sizeof(block), &field, 1);
	nghttp2_hd_deflate_del(deflater);
	assert_true(n > 20 && block[0] >> 4 == LITERAL_NEVER_INDEXED >> 4);
	make_needle(needle, block + n - 16, 14);
	secret_wipe(block, sizeof(block));
}

static bool is_there(const struct needle *needle, const uint8_t *p, size_t n)
{
	const uint8_t first = (uint8_t)~needle->inverted[0];

	while (n >= needle->n) {
		const uint8_t *at = memchr(p, first, n - needle->n + 1);
		size_t i = 0;

		if (!at)
			return false;
		while (i < needle->n && (at[i] ^ needle->inverted[i]) == 0xff)
			i++;
		if (i == needle->n)
			return true;
		n -= (size_t)(at + 1 - p);
		p = at + 1;
	}
	return false;
}

/* Reads a private writable mapping through the kernel, since parts of it may not be readable here.
 */
static bool is_in_mapping(int memory, const struct needle *needle, size_t from, size_t to)
{
	static uint8_t bytes[1 << 16];
	size_t overlap = sizeof(needle->inverted);
	bool found = false;

	for (size_t at = from; at < to && !found; at += sizeof(bytes) - overlap) {
		size_t want = to - at < sizeof(bytes) ? to - at : sizeof(bytes);
		ssize_t n;

		/* Memory read before must not be taken for memory that holds the value. */
		if (at <= (size_t)bytes && at + want > (size_t)bytes)
			continue;
		n = pread(memory, bytes, want, (off_t)at);
		if (n > 0)
			found = is_there(needle, bytes, (size_t)n);
		secret_wipe(bytes, sizeof(bytes));
	}
	return found;
}

/* How many writable mappings hold it: those that are locked and kept out of dumps, or all others.
 */
static inline size_t mappings_with(const struct needle *needle, bool locked)
{
	FILE *maps = fopen("/proc/self/smaps", "r");
	int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
	size_t from = 0, to = 0, found = 0;
	bool writable = false;
	char line[512];

	assert_non_null(maps);
	assert_true(memory >= 0);
	while (fgets(line, sizeof(line), maps)) {
		size_t first, last;
		char mode[8];

		if (sscanf(line, "%zx-%zx %7s", &first, &last, mode) == 3) {
			writable = mode[1] == 'w';
			from = first;
			to = last;
		}
		if (writable && strncmp(line, "VmFlags:", 8) == 0 &&
		        (strstr(line, " lo") && strstr(line, " dd")) == locked)
			found += is_in_mapping(memory, needle, from, to);
	}
	fclose(maps);
	close(memory);
	return found;
}

#if !defined(__SANITIZE_ADDRESS__) /* whose shadow is terabytes, and which keeps freed memory */
static void nowhere_in_ordinary_memory(
        unsigned name, const char *host, const struct needle *needles)
{
	struct h2 *c = enliven(h2_client_of(name, host));
	struct peer *o;

	h2_ask_with(c, "GET", host, "/1", NULL, 0, NULL);
	deaf_origins = true; /* else their own memory would hold it */
	o = accept_tls("\x02h2");
	deaf_origins = false;
	for (int i = 0; i < 3; i++)
		h2_ask_with(c, "GET", host, "/2", NULL, 0, NULL);
	run_for(50);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(mappings_with(&needles[i], false), 0);
	leave(c, true);
	hang_up(o, true);
	run_for(20);
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(mappings_with(&needles[i], false), 0);
}

static void test_nowhere_in_ordinary_memory(void **state)
{
	struct needle needles[2];
	uint8_t *seen = malloc(1 << 17);

	(void)state;
	make_needle(&needles[0], (const uint8_t *)SECRET_VALUE + 7, 12);
	make_huffman_needle(&needles[1]);
	/* The search finds what is there. */
	for (size_t i = 0; i < needles[0].n; i++)
		seen[1000 + i] = (uint8_t)~needles[0].inverted[i];
	assert_true(mappings_with(&needles[0], false) > 0);
	secret_wipe(seen, 1 << 17);
	free(seen);
	assert_int_equal(mappings_with(&needles[0], false), 0);
	nowhere_in_ordinary_memory(NAME_C, "c.test", needles);
	assert_true(mappings_with(&needles[0], true) > 0); /* the store's own */
	nowhere_in_ordinary_memory(NAME_Q, "q.test", needles);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#if !defined(__SANITIZE_ADDRESS__)
		/* First: the origins of the others read the credential, into memory of this
		   program. */
		TEST(test_nowhere_in_ordinary_memory),
#endif
		TEST(test_never_in_the_compression_table),
		TEST(test_the_sandboxs_own),
	};

	world_network();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
