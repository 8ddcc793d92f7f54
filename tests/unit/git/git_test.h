/* SPDX-License-Identifier: Apache-2.0 */
/* git_test: bodies of git's protocol, made piece by piece. */
#ifndef VETHGUARD_TESTS_UNIT_GIT_GIT_TEST_H
#define VETHGUARD_TESTS_UNIT_GIT_GIT_TEST_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "vethguard/git/body.h"
#include "vethguard/tls/digest.h"

#define GIT_TEST_ROOM (1u << 20)
#define ZERO "0000000000000000000000000000000000000000"
#define ID_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define ID_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define CAPS " report-status side-band-64k agent=git/2.39.5"

struct git_test {
	size_t n;
	size_t pack; /* where the pack begins */
	uint32_t objects;
	char text[GIT_TEST_ROOM];
};

static inline struct git_test *git_test_new(void)
{
	return calloc(1, sizeof(struct git_test));
}

static inline void git_test_add(struct git_test *t, const void *p, size_t n)
{
	assert_true(n <= sizeof(t->text) - t->n);
	memcpy(t->text + t->n, p, n);
	t->n += n;
}

/* A pkt-line. A '|' stands for a NUL. */
static inline void git_test_line(struct git_test *t, const char *line)
{
	char head[5];
	size_t n = strlen(line), at;

	snprintf(head, sizeof(head), "%04x", (unsigned)(n + 4));
	git_test_add(t, head, 4);
	at = t->n;
	git_test_add(t, line, n);
	for (size_t i = at; i < t->n; i++)
		if (t->text[i] == '|')
			t->text[i] = '\0';
}

static inline void git_test_raw(struct git_test *t, const char *text)
{
	git_test_add(t, text, strlen(text));
}

static inline void git_test_begin_pack(struct git_test *t)
{
	t->pack = t->n;
	git_test_add(t, "PACK\0\0\0\2\0\0\0\0", 12);
}

static inline void git_test_deflate(struct git_test *t, const void *p, size_t n)
{
	uLongf room = compressBound(n);
	uint8_t *packed = malloc(room);

	assert_int_equal(compress2(packed, &room, p, n, 6), Z_OK);
	git_test_add(t, packed, room);
	free(packed);
}

/* The head of an object of the pack. Returns where it begins. */
static inline size_t git_test_object_head(struct git_test *t, unsigned type, size_t size)
{
	size_t at = t->n - t->pack;
	uint8_t byte = (uint8_t)(type << 4 | (size & 15));

	for (size >>= 4; size; size >>= 7) {
		byte |= 0x80;
		git_test_add(t, &byte, 1);
		byte = size & 0x7f;
	}
	git_test_add(t, &byte, 1);
	t->objects++;
	return at;
}

static inline size_t git_test_object(struct git_test *t, unsigned type, const char *text, size_t n)
{
	size_t at = git_test_object_head(t, type, n);

	git_test_deflate(t, text, n);
	return at;
}

static inline void git_test_end_pack(struct git_test *t)
{
	t->text[t->pack + 10] = (char)(t->objects >> 8);
	t->text[t->pack + 11] = (char)t->objects;
	git_test_add(t, ZERO, 20); /* the server compares the hash */
}

/* Writes a commit with these parents (NULL ends) and its id in hex digits. */
static inline size_t git_test_commit_text(
        char *out, size_t room, char id[65], const char *message, const char *const parents[])
{
	char head[32];
	uint8_t raw[DIGEST_SHA256_BYTES];
	size_t n = (size_t)snprintf(out, room, "tree %s\n", ID_A);

	for (size_t i = 0; parents[i]; i++)
		n += (size_t)snprintf(out + n, room - n, "parent %s\n", parents[i]);
	n += (size_t)snprintf(out + n, room - n,
	        "author A <a@x> 1 +0000\ncommitter A <a@x> 1 +0000\n\n%s\n", message);
	{
		int head_n = snprintf(head, sizeof(head), "commit %zu", n);
		const struct slice parts[] = {slice_of(head, (size_t)head_n + 1), slice_of(out, n)};

		assert_int_equal(digest_once(false, parts, 2, raw), 0);
	}
	for (size_t i = 0; i < DIGEST_SHA1_BYTES; i++)
		snprintf(id + 2 * i, 3, "%02x", raw[i]);
	return n;
}

/* Adds the commit to the pack. */
static inline size_t git_test_commit(
        struct git_test *t, char id[65], const char *message, const char *const parents[])
{
	char text[8192];
	size_t n = git_test_commit_text(text, sizeof(text), id, message, parents);

	return git_test_object(t, 1, text, n);
}

static inline bool git_test_field(const void *context, size_t *at, struct policy_field *out)
{
	const char *const *lines = context;
	const char *line = lines[*at], *colon = line ? strchr(line, ':') : NULL;

	if (!colon)
		return false;
	*out = (struct policy_field){
	        slice_of(line, (size_t)(colon - line)), slice_trim(slice_from_string(colon + 1))};
	++*at;
	return true;
}

static const char *const git_test_push[] = {
        "Content-Type: application/x-git-receive-pack-request", NULL};
static const char *const git_test_fetch[] = {
        "Content-Type: application/x-git-upload-pack-request", NULL};

static inline void git_test_read(
        struct policy_body *body, const char *const *fields, struct slice text)
{
	const struct policy_fields f = {fields, git_test_field};

	git_body_read(body, &f, text);
}

#endif
