/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client and a server of the tls module, joined in memory, for tests. What one side writes waits
 * in a buffer until pair_carry feeds it to the other in pieces of the size that the test asks for.
 */
#ifndef VETHGUARD_TESTS_UNIT_TLS_PAIR_H
#define VETHGUARD_TESTS_UNIT_TLS_PAIR_H

#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>

#include "tls/ca/ca_private.h"
#include "vethguard/tls/ca.h"

#define PAIR_ALPN SLICE("\x08http/1.1")
#define PAIR_ALPN_BOTH SLICE("\x02h2\x08http/1.1")

struct pair {
	struct ca *root;
	struct ca *issuer;
	struct ca_leaf_key *leaf_key;
	struct ca_leaf_key *rsa_key;   /* made when first asked for */
	struct tls_identity *identity; /* shown whatever the name, where set */
	struct tls_trust *trust;       /* of root_pem */
	struct buf root_pem;
	struct tls_server *server;
	struct tls_client *client;
	struct buf to_server, to_client;
	struct tls *s, *c;
	enum tls_status s_status, c_status; /* of the last handshake step */
	char asked[300];                    /* the name that identity_for saw last */
	unsigned asked_count;
	enum tls_key_kind asked_kind;
	bool refuse;
	size_t segment; /* bytes fed at a time; 0: all */
};

/* Bytes that no cut or shift leaves as they are. */
static inline void pair_fill(uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(i * 31 + (i >> 8));
}

static inline bool pair_resumed(const struct tls *tls)
{
	return SSL_session_reused(tls->ssl);
}

static inline struct tls_identity *pair_identity_for(
        void *context, struct slice sni, enum tls_key_kind kind)
{
	struct pair *pair = context;

	pair->asked_count++;
	pair->asked_kind = kind;
	snprintf(pair->asked, sizeof(pair->asked), "%.*s", SLICE_ARG(sni));
	if (pair->refuse)
		return NULL;
	if (!pair->identity) {
		struct ip none = {.family = 4, .bytes = {192, 0, 2, 1}};
		if (kind == TLS_KEY_RSA && !pair->rsa_key)
			pair->rsa_key = ca_leaf_key_new(TLS_KEY_RSA);
		pair->identity = ca_leaf_new(pair->issuer,
		        kind == TLS_KEY_RSA ? pair->rsa_key : pair->leaf_key, sni, &none);
	}
	return pair->identity;
}

/* A leaf as any other authority might make it; key NULL: the issuer's own (self-signed where issuer
 * is NULL). */
static inline struct tls_identity *pair_custom_leaf(
        const char *san, long from_s, long to_s, EVP_PKEY *key, X509 *issuer, EVP_PKEY *issuer_key)
{
	X509 *x = X509_new();
	X509V3_CTX ctx;

	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), 4711);
	X509_gmtime_adj(X509_getm_notBefore(x), from_s);
	X509_gmtime_adj(X509_getm_notAfter(x), to_s);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_UTF8,
	        (const unsigned char *)"custom.test", -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(issuer ? issuer : x));
	X509_set_pubkey(x, key);
	X509V3_set_ctx(&ctx, issuer ? issuer : x, x, NULL, NULL, 0);
	if (san) {
		X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, NID_subject_alt_name, san);
		X509_add_ext(x, e, -1);
		X509_EXTENSION_free(e);
	}
	X509_sign(x, issuer_key, EVP_sha256());
	EVP_PKEY_up_ref(key);
	return tls_identity_new(x, key, sk_X509_new_null(), 0);
}

static inline void pair_init(struct pair *pair)
{
	memset(pair, 0, sizeof(*pair));
	pair->root = ca_new_root(SLICE("test root"), 30);
	pair->issuer = ca_new_intermediate(pair->root, SLICE("test intermediate"), 10);
	pair->leaf_key = ca_leaf_key_new(TLS_KEY_ECDSA);
	buf_init(&pair->root_pem, 65536);
	ca_pem_append(ca_certificate_der(pair->root), &pair->root_pem);
	pair->trust = tls_trust_new(buf_bytes(&pair->root_pem), pair->root_pem.len);
	pair->server = tls_server_new(pair_identity_for, pair);
	pair->client = tls_client_new(pair->trust);
	buf_init(&pair->to_server, 1 << 20);
	buf_init(&pair->to_client, 1 << 20);
	if (!pair->root || !pair->issuer || !pair->leaf_key || !pair->trust || !pair->server ||
	        !pair->client)
		abort();
}

static inline void pair_hang_up(struct pair *pair)
{
	tls_free(pair->s);
	tls_free(pair->c);
	pair->s = pair->c = NULL;
	buf_fini(&pair->to_server);
	buf_fini(&pair->to_client);
	tls_identity_release(pair->identity);
	pair->identity = NULL;
}

static inline void pair_fini(struct pair *pair)
{
	pair_hang_up(pair);
	tls_client_free(pair->client);
	tls_server_free(pair->server);
	tls_trust_free(pair->trust);
	buf_fini(&pair->root_pem);
	ca_leaf_key_free(pair->leaf_key);
	ca_leaf_key_free(pair->rsa_key);
	ca_free(pair->issuer);
	ca_free(pair->root);
}

static inline void pair_dial(
        struct pair *pair, const char *host, struct slice client_alpn, struct slice server_alpn)
{
	struct slice name = slice_from_string(host);
	struct ip address = {.family = 4, .bytes = {192, 0, 2, 1}};

	pair->s = tls_accept_new(pair->server, server_alpn, &pair->to_client);
	pair->c =
	        tls_connect_new(pair->client, name, &address, client_alpn, name, &pair->to_server);
	if (!pair->s || !pair->c)
		abort();
}

/* One step of one side with what the other has written, in segments. Leaves nothing in the buffer.
 */
static inline enum tls_status pair_step(struct pair *pair, struct tls *tls, struct buf *from)
{
	enum tls_status status = TLS_WANT_READ;

	while (from->len > 0) {
		size_t n =
		        pair->segment > 0 && pair->segment < from->len ? pair->segment : from->len;
		tls_feed(tls, buf_bytes(from), n);
		status = tls_handshake(tls);
		size_t left = tls_input_left(tls);
		buf_consume(from, n - left);
		if (status != TLS_WANT_READ)
			return status;
	}
	return status;
}

/* Runs both handshakes until neither moves. True where both are done. */
static inline bool pair_shake(struct pair *pair)
{
	pair->c_status = tls_handshake(pair->c);
	pair->s_status = TLS_WANT_READ;
	for (int i = 0; i < 8; i++) {
		if (pair->to_server.len > 0 && pair->s_status == TLS_WANT_READ)
			pair->s_status = pair_step(pair, pair->s, &pair->to_server);
		if (pair->to_client.len > 0 && pair->c_status == TLS_WANT_READ)
			pair->c_status = pair_step(pair, pair->c, &pair->to_client);
	}
	return pair->c_status == TLS_OK && pair->s_status == TLS_OK;
}

/* Reads on tls what waits in from until nothing more comes; appends to out[cap]. */
static inline enum tls_status pair_read(
        struct pair *pair, struct tls *tls, struct buf *from, uint8_t *out, size_t cap, size_t *n)
{
	enum tls_status status = TLS_WANT_READ;

	*n = 0;
	do {
		size_t piece =
		        pair->segment > 0 && pair->segment < from->len ? pair->segment : from->len;
		size_t got;
		tls_feed(tls, buf_bytes(from), piece);
		while ((status = tls_read(tls, out + *n, cap - *n, &got)) == TLS_OK && got > 0)
			*n += got;
		buf_consume(from, piece - tls_input_left(tls));
	} while (from->len > 0 && status == TLS_WANT_READ);
	return status;
}

#define PAIR_DATA_MAX 70000

/* `from` sends bytes; `to` receives these, and no more. */
static inline void pair_pass(
        struct pair *pair, struct tls *from, struct tls *to, struct buf *way, size_t bytes)
{
	static uint8_t sent[PAIR_DATA_MAX], got[PAIR_DATA_MAX + 1];
	size_t n;

	pair_fill(sent, bytes);
	assert_int_equal(tls_write(from, sent, bytes), TLS_OK);
	assert_int_equal(pair_read(pair, to, way, got, sizeof(got), &n), TLS_WANT_READ);
	assert_int_equal(n, bytes);
	assert_memory_equal(sent, got, n);
}

static inline void pair_both_ways(struct pair *pair, size_t bytes)
{
	pair_pass(pair, pair->c, pair->s, &pair->to_server, bytes);
	pair_pass(pair, pair->s, pair->c, &pair->to_client, bytes);
}

#endif
