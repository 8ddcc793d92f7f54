/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The root CA as a file, so that sandboxes which outlive this keeper trust what the next one signs.
 * The supervisor opens the file and never reads it; the keeper has no file system and gets the
 * descriptor with its first message. An empty file is filled. Any other file is either exactly what
 * this file writes, or refused: making another root in place of a damaged one would leave every
 * sandbox without trust, and nobody would know why.
 *
 * Format: eight bytes; the certificate (DER) and the key (PKCS#8), each after its length in two
 * bytes, the most significant first; the SHA-256 of all before.
 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/authority.h"
#include "vethguard/base/cursor.h"
#include "vethguard/tls/digest.h"

#define MAGIC "vgroot1\n"
#define MAGIC_BYTES 8
#define FILE_MAX (MAGIC_BYTES + 2 + CA_CERTIFICATE_MAX + 2 + CA_KEY_MAX + DIGEST_SHA256_BYTES)

static int sum(struct slice text, uint8_t out[DIGEST_SHA256_BYTES])
{
	struct digest digest;
	int rc = digest_init(&digest);

	if (rc == 0) {
		rc = digest_sha256(&digest, &text, 1, out);
		digest_fini(&digest);
	}
	return rc;
}

static int write_all(int fd, const uint8_t *p, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t done = pwrite(fd, p + at, n - at, (off_t)at);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		at += (size_t)done;
	}
	return fsync(fd) < 0 ? -errno : 0;
}

static int save(int fd, const struct ca *root)
{
	struct secret file, key;
	int rc = ca_key_der(root, &key);

	if (rc < 0)
		return rc;
	rc = secret_alloc(&file, FILE_MAX);
	if (rc == 0) {
		struct writer w = writer_over(file.p, file.cap);
		struct slice certificate = ca_certificate_der(root);

		writer_bytes(&w, MAGIC, MAGIC_BYTES);
		writer_vector(&w, 2, certificate);
		writer_vector(&w, 2, secret_slice(&key));
		uint8_t digest[DIGEST_SHA256_BYTES];

		rc = sum(slice_of(file.p, w.len), digest);
		writer_bytes(&w, digest, sizeof(digest));
		if (rc == 0)
			rc = w.failed ? -EOVERFLOW : write_all(fd, file.p, w.len);
	}
	secret_free(&file);
	secret_free(&key);
	return rc;
}

static struct ca *make(int fd, const char **why)
{
	struct ca *root = authority_new();

	if (!root) {
		*why = "no root CA can be made: no memory or no randomness";
		return NULL;
	}
	if (save(fd, root) == 0)
		return root;
	*why = "the root CA's file cannot be written";
	ca_free(root);
	return NULL;
}

static struct ca *parse(struct slice file)
{
	struct reader r = reader_over(file.p, file.n);
	struct slice magic = reader_bytes(&r, MAGIC_BYTES);
	struct slice certificate = reader_vector(&r, 2, CA_CERTIFICATE_MAX);
	struct slice key = reader_vector(&r, 2, CA_KEY_MAX);

	struct slice before = slice_of(file.p, file.n - r.left);
	uint8_t digest[DIGEST_SHA256_BYTES], found[DIGEST_SHA256_BYTES];

	reader_copy(&r, found, sizeof(found));
	if (!reader_done(&r) || !slice_equals(magic, SLICE(MAGIC)) || sum(before, digest) != 0 ||
	        memcmp(digest, found, sizeof(digest)) != 0)
		return NULL;
	return ca_from_der(certificate, key);
}

static struct ca *load(int fd, size_t size, const char **why)
{
	struct secret file;
	struct ca *root = NULL;

	*why = "no memory for the root CA";
	if (secret_alloc(&file, FILE_MAX) < 0)
		return NULL;
	*why = "the root CA's file is damaged. Put it back from a copy; without one, remove it: "
	       "another root is made, which sandboxes that exist do not trust";
	if (size <= FILE_MAX && pread(fd, file.p, file.cap, 0) == (ssize_t)size)
		root = parse(slice_of(file.p, size));
	secret_free(&file);
	return root;
}

struct ca *authority_open(int fd, const char **why)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= 0)
		return st.st_size == 0 ? make(fd, why) : load(fd, (size_t)st.st_size, why);
	*why = "the root CA's file is no regular file";
	return NULL;
}
