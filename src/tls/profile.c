/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The only place that defines which TLS is spoken, in both directions. docs/architecture.md ("What
 * TLS is spoken") describes it in words, with the reasons; change both together.
 *
 * Towards the sandbox: what a careful public server offers, TLS 1.3, and TLS 1.2 with ECDHE and an
 * AEAD. Towards upstreams: the same, followed by AES-CBC with ECDHE, because some servers have
 * nothing better. Forward secrecy is required on both sides. Refused are DHE and RSA key exchange,
 * TLS 1.1 and older, SHA-1 signatures, and RSA keys below 2048 bits (security level 2).
 *
 * Leaves are signed by an ECDSA intermediate whatever their own key is, so a client that cannot
 * verify ECDSA at all is not served. RSA leaves are for clients that can, but whose ClientHello
 * does not permit an ECDSA P-256 key in the handshake: a cipher list with only ECDHE-RSA (common in
 * scripts), TLS 1.2 with only the group P-384, or signature algorithms without P-256.
 */
#include "tls/private.h"

#include "vethguard/base/cursor.h"

#define SECURITY_LEVEL 2 /* 112 bits, SSL_CTX_set_security_level(3) */
#define SUITES_1_3                                       \
	"TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:" \
	"TLS_CHACHA20_POLY1305_SHA256"
#define SERVER_SUITES_1_2                                              \
	"ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384:" \
	"ECDHE-ECDSA-CHACHA20-POLY1305:"                               \
	"ECDHE-RSA-AES128-GCM-SHA256:ECDHE-RSA-AES256-GCM-SHA384:"     \
	"ECDHE-RSA-CHACHA20-POLY1305"
#define CLIENT_SUITES_1_2                                    \
	"ECDHE+AESGCM:ECDHE+CHACHA20:"                       \
	"ECDHE-ECDSA-AES256-SHA384:ECDHE-RSA-AES256-SHA384:" \
	"ECDHE-ECDSA-AES128-SHA256:ECDHE-RSA-AES128-SHA256:" \
	"ECDHE-ECDSA-AES256-SHA:ECDHE-RSA-AES256-SHA:ECDHE-ECDSA-AES128-SHA:ECDHE-RSA-AES128-SHA"
#define CURVES "X25519:P-256:P-384:P-521"

/* OpenSSL 3.5 has the hybrid group, and a library may be newer than its headers. So the lists
 * are tried in order, the wider one first. A client sends a key share for each group with an
 * asterisk. */
static const char *const server_groups[] = {"X25519MLKEM768:" CURVES, CURVES, NULL};
static const char *const client_groups[] = {"*X25519MLKEM768:*" CURVES, CURVES, NULL};

static bool set_groups(SSL_CTX *ctx, const char *const *lists)
{
	for (; *lists; lists++)
		if (SSL_CTX_set1_groups_list(ctx, *lists) == 1)
			return true;
	return false;
}

static bool set_versions(SSL_CTX *ctx)
{
	SSL_CTX_set_security_level(ctx, SECURITY_LEVEL);
	return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
	       SSL_CTX_set_ciphersuites(ctx, SUITES_1_3) == 1;
}

bool tls_profile_server(SSL_CTX *ctx)
{
	return set_versions(ctx) && SSL_CTX_set_cipher_list(ctx, SERVER_SUITES_1_2) == 1 &&
	       set_groups(ctx, server_groups);
}

bool tls_profile_client(SSL_CTX *ctx)
{
	return set_versions(ctx) && SSL_CTX_set_cipher_list(ctx, CLIENT_SUITES_1_2) == 1 &&
	       set_groups(ctx, client_groups);
}

/* --- which key a ClientHello permits --- */

#define GROUP_P256 0x0017
#define LIST_MAX 6

/* IANA's numbers; lists end with 0. In TLS 1.2 the curve is not part of ECDSA's signature
 * algorithms (RFC 8446 section 4.2.3). */
struct needs {
	uint16_t suites_1_2[LIST_MAX + 1];
	uint16_t sigalgs_1_2[LIST_MAX + 1];
	uint16_t sigalgs_1_3[LIST_MAX + 1];
};

static const struct needs needs[TLS_KEY_KINDS] = {
        [TLS_KEY_ECDSA] = {.suites_1_2 = {0xc02b, 0xc02c, 0xcca9},
                .sigalgs_1_2 = {0x0403, 0x0503, 0x0603},
                .sigalgs_1_3 = {0x0403}},
        [TLS_KEY_RSA] = {.suites_1_2 = {0xc02f, 0xc030, 0xcca8},
                .sigalgs_1_2 = {0x0401, 0x0501, 0x0601, 0x0804, 0x0805, 0x0806},
                .sigalgs_1_3 = {0x0804, 0x0805, 0x0806}},
};

/* What a ClientHello offers: each a list of 16-bit numbers. */
struct offer {
	struct slice suites, sigalgs, groups, versions;
	bool has_groups;
};

/* True if one of the wanted numbers is in the list. */
static bool has_any(struct slice list, const uint16_t *wanted)
{
	struct reader r = reader_over(list.p, list.n);

	while (r.left >= 2) {
		uint16_t value = reader_u16(&r);

		for (const uint16_t *w = wanted; *w; w++)
			if (value == *w)
				return true;
	}
	return false;
}

static bool has(struct slice list, uint16_t wanted)
{
	return has_any(list, (const uint16_t[]){wanted, 0});
}

/* Gets the list in an extension that is only a list. False: the extension is missing. A malformed
 * list is empty here, and OpenSSL refuses it later. */
static bool extension_list(SSL *ssl, unsigned type, unsigned length_bytes, struct slice *list)
{
	const unsigned char *p;
	size_t n;

	*list = slice_of("", 0);
	if (!SSL_client_hello_get0_ext(ssl, type, &p, &n))
		return false;
	struct reader r = reader_over(p, n);
	*list = reader_vector(&r, length_bytes, UINT16_MAX);
	return true;
}

static void read_offer(SSL *ssl, struct offer *offer)
{
	const unsigned char *p;
	size_t n = SSL_client_hello_get0_ciphers(ssl, &p);

	offer->suites = slice_of(p, n);
	extension_list(ssl, TLSEXT_TYPE_signature_algorithms, 2, &offer->sigalgs);
	extension_list(ssl, TLSEXT_TYPE_supported_versions, 1, &offer->versions);
	offer->has_groups = extension_list(ssl, TLSEXT_TYPE_supported_groups, 2, &offer->groups);
}

static bool fits(const struct offer *offer, enum tls_key_kind kind)
{
	const struct needs *need = &needs[kind];

	if (has(offer->versions, TLS1_3_VERSION))
		return has_any(offer->sigalgs, need->sigalgs_1_3);
	return has_any(offer->suites, need->suites_1_2) &&
	       has_any(offer->sigalgs, need->sigalgs_1_2) &&
	       /* in TLS 1.2 groups also concern keys in certificates (RFC 8422 section 5.1.1) */
	       (kind == TLS_KEY_RSA || !offer->has_groups || has(offer->groups, GROUP_P256));
}

enum tls_key_kind tls_profile_key_kind(SSL *ssl)
{
	struct offer offer;

	read_offer(ssl, &offer);
	/* If neither kind fits, OpenSSL finds the alert. No RSA key is made for that. */
	return !fits(&offer, TLS_KEY_ECDSA) && fits(&offer, TLS_KEY_RSA) ? TLS_KEY_RSA
	                                                                 : TLS_KEY_ECDSA;
}
