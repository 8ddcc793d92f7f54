/* SPDX-License-Identifier: Apache-2.0 */
/* Signed tokens; see vethguard/tls/jwt.h. */
#include <errno.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <stdio.h>
#include <stdlib.h>

#include "vethguard/base/base64.h"
#include "vethguard/base/wiped.h"
#include "vethguard/tls/jwt.h"

#ifndef __SANITIZE_ADDRESS__ /* it would not detect a use after such a free() */
static void *take(size_t n, const char *file, int line)
{
	(void)file, (void)line;
	return n ? malloc(n) : NULL;
}

static void give_back(void *p, const char *file, int line)
{
	(void)file, (void)line;
	wiped_free(p);
}

static void *resize(void *p, size_t n, const char *file, int line)
{
	(void)file, (void)line;
	return wiped_realloc(p, n);
}
#endif

void tls_library_wipes_memory(void)
{
#ifndef __SANITIZE_ADDRESS__
	CRYPTO_set_mem_functions(take, resize, give_back);
#endif
}

/* base64url without padding (RFC 7515 section 2). */
static int append_base64url(struct slice bytes, struct buf *out)
{
	uint8_t *room = buf_reserve(out, BASE64_SIZE(bytes.n));

	if (!room)
		return -ENOMEM;
	buf_commit(out, base64_encode(bytes.p, bytes.n, base64_url, room));
	return 0;
}

static int no_passphrase(char *text, int size, int writing, void *context)
{
	(void)text, (void)size, (void)writing, (void)context;
	return -1;
}

static int read_key(struct slice pem, EVP_PKEY **out)
{
	BIO *bio = BIO_new_mem_buf(pem.p, (int)pem.n);

	*out = bio ? PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL) : NULL;
	BIO_free(bio);
	if (!*out || EVP_PKEY_get_base_id(*out) != EVP_PKEY_RSA)
		return -EINVAL;
	return EVP_PKEY_get_bits(*out) < JWT_KEY_BITS_MIN ? -EKEYREJECTED : 0;
}

static int sign(EVP_PKEY *key, struct slice text, struct buf *out)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	uint8_t signature[2048];
	size_t n = sizeof(signature);
	int rc = -ENOMEM;

	if (context && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
	        EVP_DigestSign(context, signature, &n, (const unsigned char *)text.p, text.n) == 1)
		rc = append_base64url(slice_of(signature, n), out);
	EVP_MD_CTX_free(context);
	return rc;
}

/* Appends the header. A key id has no character that JSON must escape. */
static int append_head(struct slice key_id, struct buf *out)
{
	char head[512];
	int n;

	for (size_t i = 0; i < key_id.n; i++)
		if ((uint8_t)key_id.p[i] < ' ' || key_id.p[i] == '"' || key_id.p[i] == '\\' ||
		        (uint8_t)key_id.p[i] >= 0x7f)
			return -EINVAL;
	n = snprintf(head, sizeof(head), "{\"alg\":\"RS256\",\"typ\":\"JWT\"%s%.*s%s}",
	        key_id.n ? ",\"kid\":\"" : "", SLICE_ARG(key_id), key_id.n ? "\"" : "");
	if (n >= (int)sizeof(head))
		return -EINVAL;
	return append_base64url(slice_of(head, (size_t)n), out);
}

int jwt_sign_rs256_as(
        struct slice key_pem, struct slice key_id, struct slice claims, struct buf *out)
{
	const size_t from = out->len;
	EVP_PKEY *key;
	int rc = read_key(key_pem, &key);

	if (rc == 0)
		rc = append_head(key_id, out);
	if (rc == 0)
		rc = buf_append(out, ".", 1);
	if (rc == 0)
		rc = append_base64url(claims, out);
	if (rc == 0) {
		struct buf text;

		buf_init(&text, out->len - from);
		rc = buf_append_slice(&text, slice_of(buf_bytes(out) + from, out->len - from));
		if (rc == 0)
			rc = buf_append(out, ".", 1);
		if (rc == 0)
			rc = sign(key, buf_slice(&text), out);
		buf_fini(&text);
	}
	EVP_PKEY_free(key);
	return rc;
}
