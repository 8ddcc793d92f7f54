/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation. Two texts are searched: the bytes as they come, because a value may be in
 * the head of a gzip member or in a stored block, and what they inflate to. Each search keeps back
 * an end of its text (mask.h), whether or not a value begins there. Compressed bytes wait until
 * neither search keeps back anything of them: a mark records how long both texts were when the
 * bytes before it had come. Inflated bytes are not kept.
 */
#include "proxy/redact/inspect.h"

#include <errno.h>
#include <stdlib.h>

#define STEP_BYTES (64u << 10) /* inflated per step */

struct inspection {
	struct decompress *decompress;
	struct mask_stream raw;
	struct buf kept;
	uint64_t made; /* bytes after decompression */
	uint64_t come; /* compressed bytes received, including those not yet decompressed */
	/* The first `marked` bytes of kept, and the lengths of both texts when these bytes had
	 * come. */
	size_t marked;
	uint64_t marked_come, marked_made;
};

static const char found_text[] = "the upstream's compressed response holds the credential, which "
                                 "cannot be covered without changing other content";
static const char memory_text[] = "no memory to search the response";

struct inspection *inspection_new(
        const struct mask *mask, enum decompress_coding coding, struct decompress_memory *memory)
{
	struct inspection *in = calloc(1, sizeof(*in));

	if (!in)
		return NULL;
	buf_init(&in->kept, INSPECT_KEPT_MAX);
	in->decompress = decompress_new(coding, memory);
	if (in->decompress && mask_stream_init(&in->raw, mask) == 0)
		return in;
	inspection_free(in);
	return NULL;
}

void inspection_free(struct inspection *in)
{
	if (!in)
		return;
	decompress_free(in->decompress);
	mask_stream_fini(&in->raw);
	if (in->kept.len)
		secret_wipe(buf_bytes(&in->kept), in->kept.len);
	buf_fini(&in->kept);
	free(in);
}

unsigned inspection_waited(const struct inspection *in)
{
	return in->raw.waited;
}

static size_t kept_back(const struct mask_stream *s)
{
	return s->held - s->shown;
}

static void pass_kept(struct exchange *ex, size_t n)
{
	struct inspection *in = ex->redacting.inspection;

	exchange_send_body(ex, buf_bytes(&in->kept), n);
	buf_consume(&in->kept, n);
}

/* Passes on the waiting bytes that both searches have cleared. */
static void pass_certain(struct exchange *ex)
{
	struct inspection *in = ex->redacting.inspection;
	size_t raw = kept_back(&in->raw), inflated = kept_back(&ex->redacting.mask);

	if (!raw && !inflated) {
		pass_kept(ex, in->kept.len);
		in->marked = 0;
		return;
	}
	if (in->come - raw < in->marked_come || in->made - inflated < in->marked_made)
		return;
	pass_kept(ex, in->marked);
	in->marked = in->kept.len;
	in->marked_come = in->come;
	in->marked_made = in->made;
}

/* Searches p for the credential and discards the output. Returns NULL, or why the response cannot
 * go on. */
static const char *search(struct exchange *ex, struct mask_stream *s, const uint8_t *p, size_t n)
{
	struct buf *text = &ex->proxy->redacted;
	uint64_t before = s->found;
	int rc;

	if (mask_stream_clean(s, p, n))
		return NULL;
	buf_consume(text, text->len);
	rc = mask_stream_feed(s, p, n, text);
	if (rc == 0)
		rc = mask_stream_pause(s, text);
	secret_wipe(buf_bytes(text), text->len);
	if (rc < 0)
		return memory_text;
	return s->found == before ? NULL : found_text;
}

/* Searches what p[n] inflates to. */
static const char *search_inflated(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct inspection *in = ex->redacting.inspection;
	struct buf *plain = &ex->proxy->decompressed;
	const char *why = NULL;
	bool more = true;

	while (!why && (n || more)) {
		size_t used;
		int rc;

		buf_consume(plain, plain->len);
		rc = decompress_feed(in->decompress, p, n, &used, plain, STEP_BYTES);
		if (rc < 0)
			return exchange_undecodable_text(rc);
		if (n && used == 0 && plain->len == 0) /* the decoder would never make progress */
			return exchange_undecodable_text(-EBADMSG);
		in->made += plain->len;
		more = plain->len >= STEP_BYTES;
		p += used;
		n -= used;
		if (!exchange_start_is_right(ex, buf_bytes(plain), plain->len))
			why = ex->redacting.undecodable;
		else
			why = search(ex, &ex->redacting.mask, buf_bytes(plain), plain->len);
		secret_wipe(buf_bytes(plain), plain->len);
	}
	return why;
}

/* A value found in the compressed bytes counts as an echo too. Both searches always run, so that
 * each can tell whether what it kept back became a value. */
static const char *search_both(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct inspection *in = ex->redacting.inspection;
	const char *raw = search(ex, &in->raw, p, n), *inflated = search_inflated(ex, p, n);

	if (raw == found_text)
		ex->redacting.mask.found++;
	return raw ? raw : inflated;
}

void inspect_body(struct exchange *ex, const uint8_t *p, size_t n)
{
	struct inspection *in = ex->redacting.inspection;
	const char *why = NULL;

	if (!exchange_is_guessed(ex))
		why = search_both(ex, p, n);
	if (exchange_is_guessed(ex) && !why)
		why = "somebody may be guessing the credential";
	if (why) {
		ex->redacting.uncovered = why == found_text;
		exchange_mark_undecodable(ex, why);
		return;
	}
	in->come += n;
	if (buf_append(&in->kept, p, n) < 0) {
		exchange_mark_undecodable(ex, memory_text);
		return;
	}
	pass_certain(ex);
	exchange_await_more(ex);
}

bool inspection_keeps(const struct inspection *in)
{
	return in->kept.len > 0;
}

int inspect_release(struct exchange *ex)
{
	struct inspection *in = ex->redacting.inspection;
	struct buf *text = &ex->proxy->redacted;
	int rc;

	buf_consume(text, text->len);
	rc = mask_stream_release(&ex->redacting.mask, text);
	if (rc == 0)
		rc = mask_stream_release(&in->raw, text);
	secret_wipe(buf_bytes(text), text->len);
	if (rc == 0)
		pass_certain(ex);
	return rc;
}

int inspect_end(struct exchange *ex)
{
	struct inspection *in = ex->redacting.inspection;
	struct buf *text = &ex->proxy->redacted;
	uint64_t before = ex->redacting.mask.found + in->raw.found;
	int rc;

	/* Content that was cut off is passed on as it came: all of it was searched. */
	buf_consume(text, text->len);
	rc = mask_stream_end(&ex->redacting.mask, text);
	if (rc == 0)
		rc = mask_stream_end(&in->raw, text);
	secret_wipe(buf_bytes(text), text->len);
	if (rc < 0 || ex->redacting.mask.found + in->raw.found != before) {
		ex->redacting.uncovered = rc == 0;
		ex->redacting.mask.found += rc == 0;
		exchange_mark_undecodable(ex, rc < 0 ? memory_text : found_text);
		return -EBADMSG;
	}
	pass_kept(ex, in->kept.len);
	return 0;
}
