/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: each time OpenSSL 3.0 parses a certificate's public key, it collects every
 * decoder and key type that it knows, which takes longer than the signatures of a full handshake.
 * So connections and certificates here use their own library context. Its only provider passes
 * everything on to OpenSSL's default provider, but shows only the key types and decoders that a
 * certificate of the public web can need. An EC certificate then parses in a third of the time, an
 * RSA certificate in a fifth.
 *
 * The same applies to ciphers, of which the first one that is fetched loads all: only those are
 * shown for which TLS is configured here, and those that protect tickets and make random numbers.
 * If the context cannot be made, OpenSSL's default context serves as well.
 */
#include "tls/private.h"
#include "tls/record/secrets.h"

#include <openssl/core_dispatch.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/provider.h>
#include <openssl/rand.h>
#include <pthread.h>

#define ALGORITHMS_MAX 32
#define SECURE_HEAP_BYTES (512 * 1024) /* private keys of some thousand concurrent handshakes */
#define SECURE_HEAP_LEAST 32

static pthread_once_t once = PTHREAD_ONCE_INIT;
static OSSL_LIB_CTX *library;
static OSSL_PROVIDER *wide; /* OpenSSL's default provider, in its own context */
static OSSL_ALGORITHM decoders[ALGORITHMS_MAX + 1];
static OSSL_ALGORITHM key_types[ALGORITHMS_MAX + 1];
static OSSL_ALGORITHM ciphers[ALGORITHMS_MAX + 1];
static const OSSL_ALGORITHM *kdfs; /* all of them */

/* First names of the key types in certificates and handshakes, and of those used by the key
 * schedule. */
static const char *const key_type_names[] = {"EC", "RSA", "RSA-PSS", "ED25519", "ED448", "X25519",
        "X25519MLKEM768", "HMAC", "HKDF", "TLS1-PRF", NULL};
static const char *const cipher_names[] = {"AES-128-GCM", "AES-256-GCM", "ChaCha20-Poly1305",
        "AES-128-CBC", "AES-256-CBC", "AES-256-CTR", "AES-256-ECB", NULL};

static bool is_listed(const OSSL_ALGORITHM *algorithm, const char *const *list)
{
	const char *names = algorithm->algorithm_names;
	size_t n = strcspn(names, ":");

	for (; *list; list++)
		if (slice_equals(slice_of(names, n), slice_from_string(*list)))
			return true;
	return false;
}

static bool is_public_key_decoder(const OSSL_ALGORITHM *algorithm)
{
	const char *properties = algorithm->property_definition;

	return properties && strstr(properties, "input=der") &&
	       strstr(properties, "structure=SubjectPublicKeyInfo");
}

static void pick(int operation, const char *const *list, OSSL_ALGORITHM *out,
        bool (*also)(const OSSL_ALGORITHM *))
{
	int no_cache;
	const OSSL_ALGORITHM *all = OSSL_PROVIDER_query_operation(wide, operation, &no_cache);
	size_t n = 0;

	for (; all && all->algorithm_names && n < ALGORITHMS_MAX; all++)
		if (is_listed(all, list) && (!also || also(all)))
			out[n++] = *all;
}

static const OSSL_ALGORITHM *query(void *context, int operation, int *no_cache)
{
	(void)context;
	*no_cache = 0;
	if (operation == OSSL_OP_DECODER)
		return decoders;
	if (operation == OSSL_OP_KEYMGMT)
		return key_types;
	if (operation == OSSL_OP_CIPHER)
		return ciphers;
	if (operation == OSSL_OP_KDF)
		return kdfs;
	return OSSL_PROVIDER_query_operation(wide, operation, no_cache);
}

static int get_capabilities(
        void *context, const char *capability, OSSL_CALLBACK *callback, void *arg)
{
	(void)context;
	return OSSL_PROVIDER_get_capabilities(wide, capability, callback, arg);
}

static int provider_init(const OSSL_CORE_HANDLE *handle, const OSSL_DISPATCH *in,
        const OSSL_DISPATCH **out, void **context)
{
	static const OSSL_DISPATCH functions[] = {
	        {OSSL_FUNC_PROVIDER_QUERY_OPERATION, (void (*)(void))query},
	        {OSSL_FUNC_PROVIDER_GET_CAPABILITIES, (void (*)(void))get_capabilities},
	        {0, NULL},
	};

	(void)handle;
	(void)in;
	*out = functions;
	*context = OSSL_PROVIDER_get0_provider_ctx(wide);
	return 1;
}

static void make_library(void)
{
	OSSL_LIB_CTX *made;
	OSSL_PROVIDER *own = NULL;
	int no_cache;

	tls_memory_init();
#ifndef __SANITIZE_ADDRESS__
	/* Private keys, above all those of CAs, are in locked pages that no core dump contains. If
	 * less memory may be locked, OpenSSL goes on without. AddressSanitizer locks nothing, and
	 * its LeakSanitizer would report as lost what only this heap points to. */
	CRYPTO_secure_malloc_init(SECURE_HEAP_BYTES, SECURE_HEAP_LEAST);
#endif
	/* Otherwise the first fetch also learns the names of all ciphers that OpenSSL ever had,
	 * none of which is used here. The names of digests are needed: certificates are verified
	 * with them. */
	OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG | OPENSSL_INIT_NO_ADD_ALL_CIPHERS, NULL);
	/* After jailing, neither OpenSSL's configuration nor, at the first gmtime_r(), libc's time
	 * zone may be opened. */
	OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL);
	tzset();
	wide = OSSL_PROVIDER_load(NULL, "default");
	made = wide ? OSSL_LIB_CTX_new() : NULL;
	if (!made) {
		ERR_clear_error();
		return;
	}
	pick(OSSL_OP_DECODER, key_type_names, decoders, is_public_key_decoder);
	pick(OSSL_OP_KEYMGMT, key_type_names, key_types, NULL);
	pick(OSSL_OP_CIPHER, cipher_names, ciphers, NULL);
	kdfs = secrets_listen(OSSL_PROVIDER_query_operation(wide, OSSL_OP_KDF, &no_cache));
	/* OpenSSL's usual random generator uses a cipher, which the wide provider would fetch for
	 * itself together with all others. The hash-based one of NIST SP 800-90A is as good. */
	if (OSSL_PROVIDER_add_builtin(made, "vethguard", provider_init))
		own = OSSL_PROVIDER_load(made, "vethguard");
	if (own && RAND_set_DRBG_type(made, "HASH-DRBG", NULL, NULL, "SHA256") == 1 &&
	        RAND_set_DRBG_type(NULL, "HASH-DRBG", NULL, NULL, "SHA256") == 1) {
		library = made;
		ERR_clear_error();
		return;
	}
	if (own)
		OSSL_PROVIDER_unload(own);
	OSSL_LIB_CTX_free(made);
	ERR_clear_error();
}

void tls_library_init(void)
{
	pthread_once(&once, make_library);
}

OSSL_LIB_CTX *tls_library(void)
{
	return library;
}

X509 *tls_x509_parse(const uint8_t *der, size_t n)
{
	const unsigned char *p = der;
	X509 *certificate = X509_new_ex(library, NULL);

	/* d2i_X509() frees its argument on failure. */
	if (!certificate || !d2i_X509(&certificate, &p, (long)n))
		return NULL;
	if (p != der + n) {
		X509_free(certificate);
		return NULL;
	}
	return certificate;
}
