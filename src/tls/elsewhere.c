/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: OpenSSL asks for a signature in the middle of the handshake, and the token
 * gives it much later. OpenSSL waits by a job (ASYNC_start_job(3)), which has a stack of its own:
 * ASYNC_pause_job() leaves the job in the middle of SSL_do_handshake(), which then returns; the
 * next call of SSL_do_handshake() goes on there. A job's stack has 32 KiB, so only what follows the
 * server's request for a certificate runs in one (SSL_MODE_ASYNC): on_asked() stops the handshake
 * there once. The server's certificate is verified by then.
 *
 * The certificate's public key takes the place of the private one. The provider of library.c offers
 * digest_sign() in place of OpenSSL's own function. For such a connection it computes the digest,
 * waits for the signature, and verifies it with the public key; so its context is initialized for
 * verifying. For every other connection it signs as OpenSSL does.
 */
#include "tls/elsewhere.h"

#include <openssl/async.h>
#include <openssl/core_dispatch.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <stdlib.h>

#include "vethguard/base/log.h"

#define ALGORITHMS_MAX 64
#define FUNCTIONS_MAX 64
#define DER_SIGNATURE_MAX 160 /* of P-521 */

typedef void (*function)(void);
enum kind { KIND_RSA, KIND_EC, KINDS };

/* OpenSSL's own functions, and those that are offered in their place. */
static struct {
	OSSL_FUNC_signature_digest_sign_init_fn *sign_init;
	OSSL_FUNC_signature_digest_sign_update_fn *sign_update;
	OSSL_FUNC_signature_digest_sign_final_fn *sign_final;
	OSSL_FUNC_signature_digest_verify_init_fn *verify_init;
	OSSL_FUNC_signature_digest_verify_update_fn *verify_update;
	OSSL_FUNC_signature_digest_verify_final_fn *verify_final;
	OSSL_DISPATCH offered[FUNCTIONS_MAX + 1];
} kinds[KINDS];
static OSSL_ALGORITHM algorithms[ALGORITHMS_MAX + 1];
static unsigned kinds_found;

/* The connection whose handshake is under way, if its key is elsewhere. */
static _Thread_local struct tls *current;

static const struct {
	int hash, type; /* NIDs */
	uint16_t scheme;
	const char *digest;
} schemes[] = {
        {NID_sha256, EVP_PKEY_RSA, 0x0401, "SHA256"},
        {NID_sha384, EVP_PKEY_RSA, 0x0501, "SHA384"},
        {NID_sha512, EVP_PKEY_RSA, 0x0601, "SHA512"},
        {NID_sha256, EVP_PKEY_EC, 0x0403, "SHA256"},
        {NID_sha384, EVP_PKEY_EC, 0x0503, "SHA384"},
        {NID_sha512, EVP_PKEY_EC, 0x0603, "SHA512"},
        {NID_sha256, EVP_PKEY_RSA_PSS, 0x0804, "SHA256"},
        {NID_sha384, EVP_PKEY_RSA_PSS, 0x0805, "SHA384"},
        {NID_sha512, EVP_PKEY_RSA_PSS, 0x0806, "SHA512"},
};

static const char *const state_names[] = {
        [ELSEWHERE_IDLE] = "IDLE",
        [ELSEWHERE_ASKED] = "ASKED",
        [ELSEWHERE_WAITING] = "WAITING",
        [ELSEWHERE_ANSWERED] = "ANSWERED",
        [ELSEWHERE_GIVEN_UP] = "GIVEN_UP",
};
_Static_assert(
        sizeof(state_names) / sizeof(state_names[0]) == ELSEWHERE_STATE_COUNT, "a name per state");

static void enter(struct elsewhere *e, enum elsewhere_state state)
{
	log_debug(
	        "a signature from elsewhere: %s -> %s", state_names[e->state], state_names[state]);
	e->state = state;
}

/* Sets scheme and digest by what the handshake has agreed on. */
static bool describe(struct tls *tls, const unsigned char *p, size_t n)
{
	struct elsewhere *e = tls->elsewhere;
	int hash = NID_undef, type = NID_undef;

	if (SSL_get_signature_nid(tls->ssl, &hash) != 1 ||
	        SSL_get_signature_type_nid(tls->ssl, &type) != 1)
		return false;
	for (size_t i = 0; i < sizeof(schemes) / sizeof(schemes[0]); i++) {
		if (schemes[i].hash != hash || schemes[i].type != type)
			continue;
		e->scheme = schemes[i].scheme;
		return EVP_Q_digest(tls_library(), schemes[i].digest, NULL, p, n, e->digest,
		               &e->digest_n) == 1;
	}
	return false;
}

/* Writes r and s, of equal length, as ASN.1 (RFC 3279 section 2.2.3). Returns the length; 0: they
 * do not fit. */
static size_t to_der(const uint8_t *raw, size_t raw_n, unsigned char *out, size_t room)
{
	const int half = (int)raw_n / 2;
	ECDSA_SIG *signature = ECDSA_SIG_new();
	BIGNUM *r = BN_bin2bn(raw, half, NULL);
	BIGNUM *s = BN_bin2bn(raw + half, half, NULL);
	int n = 0;

	if (signature && r && s && ECDSA_SIG_set0(signature, r, s) == 1) {
		n = i2d_ECDSA_SIG(signature, NULL);
		n = n > 0 && (size_t)n <= room ? i2d_ECDSA_SIG(signature, &out) : 0;
	} else {
		BN_free(r);
		BN_free(s);
	}
	ECDSA_SIG_free(signature);
	return n > 0 ? (size_t)n : 0;
}

/* Runs in the job. */
static bool await(struct elsewhere *e)
{
	if (!ASYNC_get_current_job())
		return false;
	enter(e, ELSEWHERE_WAITING);
	while (e->state == ELSEWHERE_WAITING)
		if (ASYNC_pause_job() != 1)
			return false;
	return e->state == ELSEWHERE_ANSWERED;
}

static int sign_elsewhere(enum kind kind, void *ctx, unsigned char *signature, size_t *n,
        size_t room, const unsigned char *p, size_t p_n)
{
	struct tls *tls = current;
	struct elsewhere *e = tls->elsewhere;

	if (!signature) {
		*n = (size_t)EVP_PKEY_get_size(SSL_get_privatekey(tls->ssl));
		return *n > 0;
	}
	if (!describe(tls, p, p_n) || !await(e))
		return 0;
	if (kind == KIND_EC) {
		*n = to_der(e->signature, e->signature_n, signature, room);
	} else {
		*n = e->signature_n <= room ? e->signature_n : 0;
		memcpy(signature, e->signature, *n);
	}
	if (*n > 0 && kinds[kind].verify_update(ctx, p, p_n) == 1 &&
	        kinds[kind].verify_final(ctx, signature, *n) == 1)
		return 1;
	tls_fail(tls, "the token's signature is not by the key of the client's certificate");
	return 0;
}

static int sign_init(
        enum kind kind, void *ctx, const char *digest, void *key, const OSSL_PARAM params[])
{
	return (current ? kinds[kind].verify_init : kinds[kind].sign_init)(
	        ctx, digest, key, params);
}

static int digest_sign(enum kind kind, void *ctx, unsigned char *signature, size_t *n, size_t room,
        const unsigned char *p, size_t p_n)
{
	if (current)
		return sign_elsewhere(kind, ctx, signature, n, room, p, p_n);
	if (signature && kinds[kind].sign_update(ctx, p, p_n) != 1)
		return 0;
	return kinds[kind].sign_final(ctx, signature, n, room);
}

static int rsa_sign_init(void *ctx, const char *digest, void *key, const OSSL_PARAM params[])
{
	return sign_init(KIND_RSA, ctx, digest, key, params);
}

static int ec_sign_init(void *ctx, const char *digest, void *key, const OSSL_PARAM params[])
{
	return sign_init(KIND_EC, ctx, digest, key, params);
}

static int rsa_digest_sign(void *ctx, unsigned char *signature, size_t *n, size_t room,
        const unsigned char *p, size_t p_n)
{
	return digest_sign(KIND_RSA, ctx, signature, n, room, p, p_n);
}

static int ec_digest_sign(void *ctx, unsigned char *signature, size_t *n, size_t room,
        const unsigned char *p, size_t p_n)
{
	return digest_sign(KIND_EC, ctx, signature, n, room, p, p_n);
}

/* Takes OpenSSL's functions. Returns false if one of those that are needed is not there, or if
 * there are too many. */
static bool take_functions(enum kind kind, const OSSL_DISPATCH *in)
{
	const function init = kind == KIND_RSA ? (function)rsa_sign_init : (function)ec_sign_init;
	const function sign =
	        kind == KIND_RSA ? (function)rsa_digest_sign : (function)ec_digest_sign;
	OSSL_DISPATCH *out = kinds[kind].offered;
	size_t n = 0;

	for (; in->function_id && n < FUNCTIONS_MAX - 1; in++) {
		const OSSL_DISPATCH *f = in;

		if (f->function_id == OSSL_FUNC_SIGNATURE_DIGEST_SIGN)
			continue;
		out[n++] = *f;
		if (f->function_id == OSSL_FUNC_SIGNATURE_DIGEST_SIGN_INIT) {
			kinds[kind].sign_init = OSSL_FUNC_signature_digest_sign_init(f);
			out[n - 1].function = init;
		} else if (f->function_id == OSSL_FUNC_SIGNATURE_DIGEST_SIGN_UPDATE) {
			kinds[kind].sign_update = OSSL_FUNC_signature_digest_sign_update(f);
		} else if (f->function_id == OSSL_FUNC_SIGNATURE_DIGEST_SIGN_FINAL) {
			kinds[kind].sign_final = OSSL_FUNC_signature_digest_sign_final(f);
		} else if (f->function_id == OSSL_FUNC_SIGNATURE_DIGEST_VERIFY_INIT) {
			kinds[kind].verify_init = OSSL_FUNC_signature_digest_verify_init(f);
		} else if (f->function_id == OSSL_FUNC_SIGNATURE_DIGEST_VERIFY_UPDATE) {
			kinds[kind].verify_update = OSSL_FUNC_signature_digest_verify_update(f);
		} else if (f->function_id == OSSL_FUNC_SIGNATURE_DIGEST_VERIFY_FINAL) {
			kinds[kind].verify_final = OSSL_FUNC_signature_digest_verify_final(f);
		}
	}
	out[n++] = (OSSL_DISPATCH){OSSL_FUNC_SIGNATURE_DIGEST_SIGN, sign};
	out[n] = (OSSL_DISPATCH){0, NULL};
	return !in->function_id && kinds[kind].sign_init && kinds[kind].sign_update &&
	       kinds[kind].sign_final && kinds[kind].verify_init && kinds[kind].verify_update &&
	       kinds[kind].verify_final;
}

const OSSL_ALGORITHM *elsewhere_listen(const OSSL_ALGORITHM *all)
{
	static const char *const names[KINDS] = {[KIND_RSA] = "RSA", [KIND_EC] = "ECDSA"};
	size_t n = 0;

	for (const OSSL_ALGORITHM *a = all; a && a->algorithm_names; a++, n++) {
		const size_t first = strcspn(a->algorithm_names, ":");

		if (n == ALGORITHMS_MAX) {
			kinds_found = 0;
			return all;
		}
		algorithms[n] = *a;
		for (enum kind kind = 0; kind < KINDS; kind++)
			if (slice_equals(slice_of(a->algorithm_names, first),
			            slice_from_string(names[kind])) &&
			        take_functions(kind, a->implementation)) {
				algorithms[n].implementation = kinds[kind].offered;
				kinds_found++;
			}
	}
	return algorithms;
}

bool elsewhere_is_possible(void)
{
	return tls_library() && kinds_found == KINDS && ASYNC_is_capable();
}

/* Called when the server has asked for the certificate. The first call stops the handshake. */
static int on_asked(SSL *ssl, void *context)
{
	struct tls *tls = context;

	(void)ssl;
	if (tls->elsewhere->state != ELSEWHERE_IDLE)
		return 1;
	enter(tls->elsewhere, ELSEWHERE_ASKED);
	return -1;
}

bool elsewhere_present(struct tls *tls, struct tls_identity *identity)
{
	tls->elsewhere = calloc(1, sizeof(*tls->elsewhere));
	if (!tls->elsewhere || SSL_use_cert_and_key(tls->ssl, identity->leaf, identity->key,
	                               identity->chain, 1) != 1)
		return false;
	SSL_set_cert_cb(tls->ssl, on_asked, tls);
	return true;
}

int elsewhere_do_handshake(struct tls *tls, bool *waits)
{
	int rc;

	*waits = tls->elsewhere && tls->elsewhere->state == ELSEWHERE_WAITING;
	if (*waits)
		return -1;
	current = tls->elsewhere ? tls : NULL;
	rc = SSL_do_handshake(tls->ssl);
	if (rc != 1 && tls->elsewhere && SSL_want_x509_lookup(tls->ssl)) {
		SSL_set_mode(tls->ssl, SSL_MODE_ASYNC);
		rc = SSL_do_handshake(tls->ssl);
	}
	current = NULL;
	*waits = rc != 1 && tls->elsewhere && SSL_want_async(tls->ssl);
	if (tls->elsewhere && tls->elsewhere->state >= ELSEWHERE_ANSWERED)
		SSL_clear_mode(tls->ssl, SSL_MODE_ASYNC);
	return rc;
}

void elsewhere_fini(struct tls *tls)
{
	bool waits;

	if (!tls->elsewhere)
		return;
	if (tls->elsewhere->state == ELSEWHERE_WAITING) {
		enter(tls->elsewhere, ELSEWHERE_GIVEN_UP);
		tls->in_left = 0;
		tls->out = NULL; /* the alert is for nobody */
		elsewhere_do_handshake(tls, &waits);
		ERR_clear_error();
	}
	free(tls->elsewhere);
	tls->elsewhere = NULL;
}

bool tls_wants_signature(const struct tls *tls, struct tls_to_sign *out)
{
	const struct elsewhere *e = tls->elsewhere;

	if (!e || e->state != ELSEWHERE_WAITING)
		return false;
	out->scheme = e->scheme;
	out->digest = slice_of((const char *)e->digest, e->digest_n);
	return true;
}

void tls_take_signature(struct tls *tls, struct slice signature)
{
	struct elsewhere *e = tls->elsewhere;

	if (!e || e->state != ELSEWHERE_WAITING)
		return;
	e->signature_n = signature.n <= sizeof(e->signature) ? signature.n : 0;
	memcpy(e->signature, signature.p, e->signature_n);
	enter(e, ELSEWHERE_ANSWERED);
}

bool tls_identity_verifies(
        const struct tls_identity *identity, struct slice digest, struct slice signature)
{
	const bool ec = EVP_PKEY_is_a(identity->key, "EC");
	EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_pkey(tls_library(), identity->key, NULL);
	const uint8_t *p = (const uint8_t *)signature.p;
	size_t n = signature.n;
	uint8_t der[DER_SIGNATURE_MAX];
	bool good;

	if (ec) {
		n = n <= TLS_SIGNATURE_MAX ? to_der(p, n, der, sizeof(der)) : 0;
		p = der;
	}
	good = ctx && n > 0 && EVP_PKEY_verify_init(ctx) == 1 &&
	       (ec || EVP_PKEY_CTX_set_rsa_padding(ctx, RSA_PKCS1_PADDING) == 1) &&
	       EVP_PKEY_CTX_set_signature_md(ctx, EVP_sha256()) == 1 &&
	       EVP_PKEY_verify(ctx, p, n, (const uint8_t *)digest.p, digest.n) == 1;
	EVP_PKEY_CTX_free(ctx);
	ERR_clear_error();
	return good;
}
