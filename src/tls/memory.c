/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: so that an idle connection holds no buffers, OpenSSL allocates one of 16 KiB
 * for each record that it reads or writes and frees it afterwards (SSL_MODE_RELEASE_BUFFERS).
 * malloc() serves this size from its sorted lists of free memory. That is fast while the heap is
 * young, but took a tenth of a request's time after some thousand connections had come and gone,
 * and gave each request other, cold memory. So the few buffers freed last are kept here for the
 * next record, newest first.
 *
 * Only OpenSSL's memory comes through here. Such buffers are recognized by their size alone; all of
 * them have room for the largest, so any of them fits.
 */
#include "tls/private.h"

#include <malloc.h>
#include <openssl/crypto.h>
#include <stdlib.h>

/* A record with its header, padding and OpenSSL's own rounding: 16,584 bytes are allocated to read,
 * 16,712 to write. */
#define BUFFER_LEAST 16384u
#define BUFFER_BYTES 16896u
#define BUFFER_SLACK 64u /* malloc() may give this much more */
#define BUFFERS_KEPT 8u  /* 132 KiB */

static _Thread_local struct {
	void *buffers[BUFFERS_KEPT];
	size_t count;
} kept;

#ifndef __SANITIZE_ADDRESS__ /* it would not detect a use after such a free() */
static void *take(size_t n, const char *file, int line)
{
	(void)file, (void)line;
	if (n < BUFFER_LEAST || n > BUFFER_BYTES)
		return n ? malloc(n) : NULL;
	return kept.count ? kept.buffers[--kept.count] : malloc(BUFFER_BYTES);
}

static void give_back(void *p, const char *file, int line)
{
	size_t n = malloc_usable_size(p);

	(void)file, (void)line;
	if (n >= BUFFER_BYTES && n <= BUFFER_BYTES + BUFFER_SLACK && kept.count < BUFFERS_KEPT)
		kept.buffers[kept.count++] = p;
	else
		free(p);
}

static void *resize(void *p, size_t n, const char *file, int line)
{
	if (p && n)
		return realloc(p, n);
	if (!p)
		return take(n, file, line);
	give_back(p, file, line);
	return NULL;
}

/* Fails if OpenSSL has allocated already; it then goes on with malloc(). */
void tls_memory_init(void)
{
	CRYPTO_set_mem_functions(take, resize, give_back);
}
#else
void tls_memory_init(void)
{
}
#endif

size_t tls_buffers_kept(void)
{
	return kept.count;
}

void tls_buffers_release(void)
{
	while (kept.count)
		free(kept.buffers[--kept.count]);
}
