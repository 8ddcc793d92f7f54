/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the method is fetched and the context made once, because in OpenSSL 3 a
 * fetch costs more than hashing an audit line. No configuration file is read: an openssl.cnf must
 * not choose which SHA-256 runs.
 */
#include <errno.h>
#include <string.h>

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include "vethguard/tls/digest.h"

int digest_init(struct digest *digest)
{
	memset(digest, 0, sizeof(*digest));
	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	digest->method = EVP_MD_fetch(NULL, "SHA256", NULL);
	if (!digest->method)
		return -ENOTSUP;
	digest->context = EVP_MD_CTX_new();
	if (!digest->context) {
		digest_fini(digest);
		return -ENOMEM;
	}
	return 0;
}

void digest_fini(struct digest *digest)
{
	EVP_MD_CTX_free(digest->context);
	EVP_MD_free(digest->method);
	memset(digest, 0, sizeof(*digest));
}

int digest_sha256(struct digest *digest, const struct slice *parts, size_t count,
        uint8_t out[DIGEST_SHA256_BYTES])
{
	bool good = EVP_DigestInit_ex(digest->context, digest->method, NULL) == 1;
	unsigned size = DIGEST_SHA256_BYTES;

	for (size_t i = 0; i < count && good; i++)
		good = EVP_DigestUpdate(digest->context, parts[i].p, parts[i].n) == 1;
	good = good && EVP_DigestFinal_ex(digest->context, out, &size) == 1;
	if (good)
		return 0;
	memset(out, 0, DIGEST_SHA256_BYTES);
	return -EIO;
}

static void put_hex(uint8_t byte, char out[2])
{
	static const char digits[] = "0123456789abcdef";

	out[0] = digits[byte >> 4];
	out[1] = digits[byte & 15];
}

int digest_sha256_hex(struct digest *digest, const struct slice *parts, size_t count,
        char out[DIGEST_SHA256_HEX + 1])
{
	uint8_t raw[DIGEST_SHA256_BYTES];
	int rc = digest_sha256(digest, parts, count, raw);

	for (size_t i = 0; i < sizeof(raw); i++)
		put_hex(raw[i], out + 2 * i);
	out[DIGEST_SHA256_HEX] = '\0';
	return rc;
}

/* Hashes the concatenated parts in a context of its own. raw has room for `bytes` bytes. */
static bool hash_once(
        const EVP_MD *method, const struct slice *parts, size_t count, uint8_t *raw, unsigned bytes)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	unsigned size = bytes;
	bool good = context && EVP_DigestInit_ex(context, method, NULL) == 1;

	for (size_t i = 0; i < count && good; i++)
		good = EVP_DigestUpdate(context, parts[i].p, parts[i].n) == 1;
	good = good && EVP_DigestFinal_ex(context, raw, &size) == 1 && size == bytes;
	EVP_MD_CTX_free(context);
	return good;
}

int digest_once(
        bool sha256, const struct slice *parts, size_t count, uint8_t out[DIGEST_SHA256_BYTES])
{
	if (hash_once(sha256 ? EVP_sha256() : EVP_sha1(), parts, count, out,
	            sha256 ? DIGEST_SHA256_BYTES : DIGEST_SHA1_BYTES))
		return 0;
	memset(out, 0, DIGEST_SHA256_BYTES);
	return -EIO;
}

int digest_sha1_base64(const struct slice *parts, size_t count, char out[DIGEST_SHA1_BASE64 + 1])
{
	uint8_t raw[DIGEST_SHA256_BYTES];
	int rc = digest_once(false, parts, count, raw);

	out[0] = '\0';
	if (rc == 0)
		EVP_EncodeBlock((unsigned char *)out, raw, DIGEST_SHA1_BYTES);
	return rc;
}

int digest_md5_hex(const struct slice *parts, size_t count, char out[DIGEST_MD5_HEX + 1])
{
	uint8_t raw[DIGEST_MD5_HEX / 2];

	out[0] = '\0';
	if (!hash_once(EVP_md5(), parts, count, raw, sizeof(raw)))
		return -EIO;
	for (size_t i = 0; i < sizeof(raw); i++)
		put_hex(raw[i], out + 2 * i);
	out[DIGEST_MD5_HEX] = '\0';
	return 0;
}
