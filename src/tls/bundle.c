/* SPDX-License-Identifier: Apache-2.0 */
/* Converts certificates between the forms that trust stores use. Never used on the path of
 * traffic. */
#include <errno.h>
#include <limits.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <string.h>

#include "vethguard/tls/bundle.h"

static const struct slice pem_begin = {"-----BEGIN CERTIFICATE-----", 27};
static const struct slice pem_end = {"-----END CERTIFICATE-----", 25};

static const char *find(struct slice in, struct slice what)
{
	return in.n == 0 ? NULL : memmem(in.p, in.n, what.p, what.n);
}

/* Takes the next block, from its first dash to its last; *pem continues behind it. */
static bool next_block(struct slice *pem, struct slice *block)
{
	const char *begin = find(*pem, pem_begin), *end;

	if (!begin)
		return false;
	*pem = slice_of(begin, pem->n - (size_t)(begin - pem->p));
	end = find(*pem, pem_end);
	if (!end)
		return false;
	end += pem_end.n;
	*block = slice_of(begin, (size_t)(end - begin));
	*pem = slice_of(end, pem->n - block->n);
	return true;
}

static X509 *parse_block(struct slice block)
{
	BIO *bio;
	X509 *certificate;

	if (block.n > INT_MAX)
		return NULL;
	bio = BIO_new_mem_buf(block.p, (int)block.n);
	if (!bio)
		return NULL;
	certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL);
	BIO_free(bio);
	ERR_clear_error();
	return certificate;
}

int bundle_subject_hash(struct slice pem, char out[BUNDLE_HASH_TEXT])
{
	struct slice block;
	X509 *certificate;

	if (!next_block(&pem, &block))
		return -EBADMSG;
	certificate = parse_block(block);
	if (!certificate)
		return -EBADMSG;
	snprintf(
	        out, BUNDLE_HASH_TEXT, "%08lx", X509_subject_name_hash(certificate) & 0xffffffffUL);
	X509_free(certificate);
	return 0;
}

int bundle_next(struct slice *pem, struct buf *out)
{
	struct slice block;
	X509 *certificate;
	uint8_t *der;
	int n;

	do {
		if (!next_block(pem, &block))
			return -ENOENT;
		certificate = parse_block(block);
	} while (!certificate);
	n = i2d_X509(certificate, NULL);
	der = n > 0 ? buf_reserve(out, (size_t)n) : NULL;
	if (der) {
		i2d_X509(certificate, &der);
		buf_commit(out, (size_t)n);
	}
	X509_free(certificate);
	return der != NULL ? 0 : -ENOBUFS;
}

int bundle_sha1(const struct slice *parts, size_t count, uint8_t out[BUNDLE_SHA1_BYTES])
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	unsigned n = 0;
	int ok = context && EVP_DigestInit_ex(context, EVP_sha1(), NULL);

	for (size_t i = 0; ok && i < count; i++)
		ok = EVP_DigestUpdate(context, parts[i].p, parts[i].n);
	ok = ok && EVP_DigestFinal_ex(context, out, &n) && n == BUNDLE_SHA1_BYTES;
	EVP_MD_CTX_free(context);
	return ok ? 0 : -EIO;
}
