/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Java keystores in the JKS format: magic, version 2, a count, entries, and a SHA-1 digest over a
 * prefix made of the password and everything before the digest. One entry is added to an existing
 * store. If the store has another format (PKCS#12), a new JKS store is made from the system's
 * bundle; Java reads it just as well. The password is the one that every distribution uses for
 * certificates, which are not secret.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "cli/guest/mounts.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/cursor.h"
#include "vethguard/tls/bundle.h"

#define JKS_MAGIC 0xfeedfeedu
#define JKS_VERSION 2u
#define JKS_TRUSTED 2u
#define JKS_HEAD 12 /* magic, version, count */
#define JKS_CERTIFICATE_MAX 65536
#define JKS_ENTRY_ROOM 256 /* an entry without its certificate */

static const char password[] = "changeit";
static const char whitener[] = "Mighty Aphrodite";

static int append_u32(struct buf *out, uint32_t v)
{
	uint8_t bytes[4];
	struct writer w = writer_over(bytes, sizeof(bytes));

	writer_u32(&w, v);
	return buf_append(out, bytes, sizeof(bytes));
}

static int append_entry(struct buf *out, const char *alias, struct slice der)
{
	uint8_t head[JKS_ENTRY_ROOM];
	struct writer w = writer_over(head, sizeof(head));

	writer_u32(&w, JKS_TRUSTED);
	writer_vector(&w, 2, slice_from_string(alias));
	writer_u64(&w, (uint64_t)clock_real_ms());
	writer_vector(&w, 2, SLICE("X.509"));
	writer_u32(&w, (uint32_t)der.n);
	if (w.failed || der.n > JKS_CERTIFICATE_MAX)
		return -EMSGSIZE;
	if (buf_append(out, head, w.len) != 0)
		return -ENOBUFS;
	return buf_append_slice(out, der);
}

/* The digest covers the password in UTF-16, the words that the format prescribes, and the store. */
static int append_digest(struct buf *out)
{
	uint8_t wide[2 * (sizeof(password) - 1)], sum[BUNDLE_SHA1_BYTES];
	struct slice parts[3] = {slice_of(wide, sizeof(wide)),
	        slice_of(whitener, sizeof(whitener) - 1), buf_slice(out)};
	int rc;

	for (size_t i = 0; i < sizeof(password) - 1; i++) {
		wide[2 * i] = 0;
		wide[2 * i + 1] = (uint8_t)password[i];
	}
	rc = bundle_sha1(parts, 3, sum);
	return rc == 0 ? buf_append(out, sum, sizeof(sum)) : rc;
}

/* Gets the number of entries of a JKS store with a correct frame. Returns false for another
 * format. */
static bool jks_count(struct slice store, uint32_t *count)
{
	struct reader r = reader_over(store.p, store.n);
	uint32_t magic = reader_u32(&r), version = reader_u32(&r);

	*count = reader_u32(&r);
	return !r.failed && magic == JKS_MAGIC && version == JKS_VERSION && *count < UINT32_MAX &&
	       r.left >= BUNDLE_SHA1_BYTES;
}

static int append_bundle(struct buf *out, struct slice bundle, uint32_t *count)
{
	struct buf der;
	char alias[32];
	int rc = 0;

	buf_init(&der, JKS_CERTIFICATE_MAX);
	while (rc == 0) {
		buf_consume(&der, der.len);
		rc = bundle_next(&bundle, &der);
		if (rc == 0) {
			snprintf(alias, sizeof(alias), "system-%u", ++*count);
			rc = append_entry(out, alias, buf_slice(&der));
		}
	}
	buf_fini(&der);
	return rc == -ENOENT ? 0 : rc;
}

static int set_count(struct buf *out, uint32_t count)
{
	struct writer w;

	if (out->len < JKS_HEAD)
		return -EBADMSG;
	w = writer_over(buf_bytes(out) + 8, 4);
	writer_u32(&w, count);
	return 0;
}

int java_store_add(struct slice old, struct slice bundle, struct slice ca_pem, struct buf *out)
{
	uint32_t count = 0;
	struct buf der;
	int rc;

	if (jks_count(old, &count)) {
		rc = buf_append(out, old.p, old.n - BUNDLE_SHA1_BYTES);
	} else {
		count = 0;
		rc = append_u32(out, JKS_MAGIC);
		if (rc == 0)
			rc = append_u32(out, JKS_VERSION);
		if (rc == 0)
			rc = append_u32(out, 0);
		if (rc == 0)
			rc = append_bundle(out, bundle, &count);
	}
	buf_init(&der, JKS_CERTIFICATE_MAX);
	if (rc == 0)
		rc = bundle_next(&ca_pem, &der);
	if (rc == 0)
		rc = append_entry(out, "vethguard", buf_slice(&der));
	buf_fini(&der);
	if (rc == 0)
		rc = set_count(out, count + 1);
	return rc == 0 ? append_digest(out) : rc;
}
