/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CAs as a file, so that sandboxes which outlive this keeper trust what the next one signs. The
 * supervisor opens the file and never reads it; the keeper has no file system and gets the
 * descriptor. An empty file is filled. Any other file is either exactly what this file writes, or
 * refused: making another root in place of a damaged one would leave every sandbox without trust,
 * and nobody would know why. A change is written into another file, which replaces this one.
 *
 * Format 1 is that of versions that knew one root, and is still written for one: eight bytes; the
 * certificate (DER) and the key (PKCS#8), each after its length in two bytes, the most significant
 * first; the SHA-256 of all before.
 *
 * Format 2: eight bytes; the number of CAs in a byte; for each of them its origin in a byte, the
 * time of its retirement in eight bytes, certificate, key, root, the number of certificates between
 * in a byte, and these; a byte 1, the key and the text of a request that waits, or a byte 0; the
 * SHA-256.
 * CAs of the configuration are not in it: their keys stay where the operator has put them.
 */
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "keeper/authorities.h"
#include "vethguard/base/cursor.h"
#include "vethguard/base/fd.h"
#include "vethguard/tls/digest.h"

#define MAGIC_1 "vgroot1\n"
#define MAGIC_2 "vgroot2\n"
#define MAGIC_BYTES 8
#define ONE_MAX (16 + (2 + CA_CERTIFICATE_MAX) * (2 + CA_CHAIN_MAX) + 2 + CA_KEY_MAX)
#define FILE_MAX                                                                                  \
	(MAGIC_BYTES + 8 + MESSAGE_CAS_MAX * ONE_MAX + 4 + CA_KEY_MAX + AUTHORITIES_REQUEST_MAX + \
	        DIGEST_SHA256_BYTES)
_Static_assert(FILE_MAX <= SECRET_MAX, "the file is made in secret memory");

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

/* Writing. */

static int put_key(struct writer *w, int made, struct secret *key)
{
	if (made == 0)
		writer_vector(w, 2, secret_slice(key));
	secret_free(key);
	return made;
}

static int put_one(struct writer *w, const struct authority *a, int64_t retires_s)
{
	struct secret key = {0};
	int rc;

	writer_u8(w, (uint8_t)a->origin);
	writer_u64(w, (uint64_t)retires_s);
	writer_vector(w, 2, ca_certificate_der(a->ca));
	rc = ca_key_der(a->ca, &key);
	rc = put_key(w, rc, &key);
	writer_vector(w, 2, ca_paper(&a->root, 0));
	writer_u8(w, (uint8_t)a->chain.count);
	for (size_t i = 0; i < a->chain.count; i++)
		writer_vector(w, 2, ca_paper(&a->chain, i));
	return rc;
}

static int put_first_format(struct writer *w, const struct authority *a)
{
	struct secret key = {0};
	int rc = ca_key_der(a->ca, &key);

	writer_bytes(w, MAGIC_1, MAGIC_BYTES);
	writer_vector(w, 2, ca_certificate_der(a->ca));
	return put_key(w, rc, &key);
}

static int put_second_format(struct writer *w, const struct authorities *all)
{
	struct secret key = {0};
	uint8_t count = 0;
	int rc = 0;

	for (size_t i = 0; i < all->count; i++)
		count += all->list[i]->origin != MESSAGE_CA_CONFIGURED;
	writer_bytes(w, MAGIC_2, MAGIC_BYTES);
	writer_u8(w, count);
	for (size_t i = 0; i < all->count && rc == 0; i++)
		if (all->list[i]->origin != MESSAGE_CA_CONFIGURED)
			rc = put_one(w, all->list[i], all->retires_s[i]);
	writer_u8(w, all->request != NULL);
	if (rc == 0 && all->request) {
		rc = ca_request_key_der(all->request, &key);
		rc = put_key(w, rc, &key);
		writer_vector(w, 2, slice_from_string(all->request_pem));
	}
	return rc;
}

int authorities_save(const struct authorities *all, int fd)
{
	uint8_t digest[DIGEST_SHA256_BYTES];
	struct secret file;
	struct writer w;
	int rc = secret_alloc(&file, FILE_MAX);

	if (rc < 0)
		return rc;
	w = writer_over(file.p, file.cap);
	if (all->count == 1 && all->list[0]->origin == MESSAGE_CA_OWN && !all->retires_s[0] &&
	        !all->request)
		rc = put_first_format(&w, all->list[0]);
	else
		rc = put_second_format(&w, all);
	if (rc == 0)
		rc = sum(slice_of(file.p, w.len), digest);
	writer_bytes(&w, digest, sizeof(digest));
	if (rc == 0)
		rc = w.failed ? -EOVERFLOW : fd_write_all(fd, slice_of(file.p, w.len));
	if (rc == 0 && fsync(fd) < 0)
		rc = -errno;
	secret_free(&file);
	return rc;
}

/* Reading. */

static bool take_first_format(struct reader *r, struct authorities *all)
{
	struct slice certificate = reader_vector(r, 2, CA_CERTIFICATE_MAX);
	struct slice key = reader_vector(r, 2, CA_KEY_MAX);

	if (!reader_done(r))
		return false;
	return authorities_lead(all,
	               authority_of(ca_from_der(certificate, key), MESSAGE_CA_OWN, NULL, NULL),
	               0) == 0;
}

static struct authority *make_one(uint8_t origin, struct slice certificate, struct slice key,
        const struct ca_papers *chain, const struct ca_papers *root)
{
	struct ca_request *pair = ca_request_from_der(key);
	char why[CA_WHY_MAX];
	struct ca *ca = pair ? ca_request_accept(pair, certificate, why) : NULL;

	ca_request_free(pair);
	return authority_of(ca, (enum message_ca_origin)origin, chain, root);
}

static bool take_one(struct reader *r, struct authorities *all)
{
	struct ca_papers chain = {0}, root = {0};
	uint8_t origin = reader_u8(r);
	int64_t retires_s = (int64_t)reader_u64(r);
	struct slice certificate = reader_vector(r, 2, CA_CERTIFICATE_MAX);
	struct slice key = reader_vector(r, 2, CA_KEY_MAX);
	bool good = ca_papers_add(&root, reader_vector(r, 2, CA_CERTIFICATE_MAX));
	uint8_t count = reader_u8(r);

	good = good && count < CA_CHAIN_MAX && origin < MESSAGE_CA_CONFIGURED && retires_s >= 0;
	for (uint8_t i = 0; good && i < count; i++)
		good = ca_papers_add(&chain, reader_vector(r, 2, CA_CERTIFICATE_MAX));
	if (!good || r->failed || all->count == MESSAGE_CAS_MAX)
		return false;
	all->list[all->count] = make_one(origin, certificate, key, &chain, &root);
	all->retires_s[all->count] = retires_s;
	return all->list[all->count] && ++all->count;
}

static bool take_second_format(struct reader *r, struct authorities *all)
{
	uint8_t count = reader_u8(r), waits;
	struct slice text;

	for (uint8_t i = 0; i < count; i++)
		if (!take_one(r, all))
			return false;
	waits = reader_u8(r);
	if (waits == 1) {
		all->request = ca_request_from_der(reader_vector(r, 2, CA_KEY_MAX));
		text = reader_vector(r, 2, sizeof(all->request_pem) - 1);
		if (!all->request || text.n >= sizeof(all->request_pem))
			return false;
		memcpy(all->request_pem, text.p, text.n);
	}
	return waits <= 1 && reader_done(r);
}

static bool parse(struct slice file, struct authorities *all)
{
	uint8_t digest[DIGEST_SHA256_BYTES];
	struct slice body, magic;
	struct reader r;

	if (file.n < MAGIC_BYTES + DIGEST_SHA256_BYTES)
		return false;
	body = slice_of(file.p, file.n - DIGEST_SHA256_BYTES);
	if (sum(body, digest) != 0 || memcmp(digest, file.p + body.n, sizeof(digest)) != 0)
		return false;
	r = reader_over((const uint8_t *)body.p, body.n);
	magic = reader_bytes(&r, MAGIC_BYTES);
	if (slice_equals(magic, SLICE(MAGIC_1)))
		return take_first_format(&r, all);
	return slice_equals(magic, SLICE(MAGIC_2)) && take_second_format(&r, all);
}

static int load(struct authorities *all, int fd, size_t size, const char **why)
{
	struct secret file;
	bool good;

	*why = "no memory for the root CA";
	if (secret_alloc(&file, FILE_MAX) < 0)
		return -EIO;
	*why = "the root CA's file is damaged. Put it back from a copy; without one, remove it: "
	       "another root is made, which sandboxes that exist do not trust";
	good = size <= FILE_MAX && pread(fd, file.p, file.cap, 0) == (ssize_t)size &&
	       parse(slice_of(file.p, size), all);
	secret_free(&file);
	if (!good)
		authorities_fini(all);
	return good ? 0 : -EIO;
}

static int make(struct authorities *all, int fd, const char **why)
{
	*why = "no root CA can be made: no memory or no randomness";
	if (authorities_lead(all, authority_new(), 0) != 0)
		return -EIO;
	all->fresh = true;
	*why = "the root CA's file cannot be written";
	if (authorities_save(all, fd) == 0)
		return 0;
	authorities_fini(all);
	return -EIO;
}

int authorities_open(struct authorities *all, int fd, const char **why)
{
	struct stat st;

	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= 0)
		return st.st_size == 0 ? make(all, fd, why)
		                       : load(all, fd, (size_t)st.st_size, why);
	*why = "the root CA's file is not a regular file";
	return -EIO;
}
