/* SPDX-License-Identifier: Apache-2.0 */
#include "vethguard/tls/sign_key.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include "tls/signature/raw_signature.h"

#define P256_BITS 256

_Static_assert(SIGN_KEY_SIGNATURE_BYTES == RAW_SIGNATURE_BYTES, "both kinds have this length");

static bool is_usable(EVP_PKEY *key)
{
	char group[32];
	size_t n;

	if (EVP_PKEY_is_a(key, "ED25519"))
		return true;
	return EVP_PKEY_is_a(key, "EC") && EVP_PKEY_get_bits(key) == P256_BITS &&
	       EVP_PKEY_get_group_name(key, group, sizeof(group), &n) == 1 &&
	       strcmp(group, "prime256v1") == 0;
}

static int no_passphrase(char *text, int size, int writing, void *context)
{
	(void)text, (void)size, (void)writing, (void)context;
	return -1;
}

static const char *read_key(struct slice pem, bool is_public, struct sign_key *out)
{
	BIO *bio = pem.n <= INT32_MAX ? BIO_new_mem_buf(pem.p, (int)pem.n) : NULL;
	EVP_PKEY *key = NULL;

	out->handle = NULL;
	if (bio)
		key = is_public ? PEM_read_bio_PUBKEY(bio, NULL, no_passphrase, NULL)
		                : PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, NULL);
	BIO_free(bio);
	if (!key && is_public && memmem(pem.p, pem.n, "PRIVATE KEY", 11))
		return "it is a private key: 'openssl pkey -pubout' prints its public key";
	if (!key)
		return is_public ? "it is not a public key in PEM (BEGIN PUBLIC KEY)"
		                 : "it is not a private key in PEM without a passphrase";
	if (is_usable(key)) {
		out->handle = key;
		return NULL;
	}
	EVP_PKEY_free(key);
	return "its key is neither Ed25519 nor P-256";
}

const char *sign_key_public(struct slice pem, struct sign_key *out)
{
	return read_key(pem, true, out);
}

const char *sign_key_private(struct slice pem, struct sign_key *out)
{
	return read_key(pem, false, out);
}

void sign_key_fini(struct sign_key *key)
{
	EVP_PKEY_free(key->handle);
	key->handle = NULL;
}

/* --- signatures --- */

static bool is_p256(EVP_PKEY *key)
{
	return EVP_PKEY_is_a(key, "EC");
}

bool sign_key_verify(const struct sign_key *key, const uint8_t signature[SIGN_KEY_SIGNATURE_BYTES],
        struct slice text)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	uint8_t der[DER_SIGNATURE_MAX];
	const bool ec = key->handle && is_p256(key->handle);
	const size_t n = ec ? raw_signature_to_der(signature, der) : SIGN_KEY_SIGNATURE_BYTES;
	bool good = context && key->handle && n &&
	            EVP_DigestVerifyInit(
	                    context, NULL, ec ? EVP_sha256() : NULL, NULL, key->handle) == 1 &&
	            EVP_DigestVerify(
	                    context, ec ? der : signature, n, (const uint8_t *)text.p, text.n) == 1;

	EVP_MD_CTX_free(context);
	return good;
}

int sign_key_sign(
        const struct sign_key *key, struct slice text, uint8_t signature[SIGN_KEY_SIGNATURE_BYTES])
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	const bool ec = is_p256(key->handle);
	uint8_t made[DER_SIGNATURE_MAX];
	size_t n = sizeof(made);
	bool good = context &&
	            EVP_DigestSignInit(
	                    context, NULL, ec ? EVP_sha256() : NULL, NULL, key->handle) == 1 &&
	            EVP_DigestSign(context, made, &n, (const uint8_t *)text.p, text.n) == 1;

	EVP_MD_CTX_free(context);
	if (good && ec)
		good = raw_signature_from_der(made, n, signature);
	else if (good && n == SIGN_KEY_SIGNATURE_BYTES)
		memcpy(signature, made, n);
	else
		good = false;
	return good ? 0 : -EKEYREJECTED;
}
