/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tls module costs, both sides in one process and in memory: CPU microseconds per
 * handshake and side, per minted leaf, per record; heap bytes per idle connection. Each figure is
 * the least of several rounds.
 * make build/tests/bench/bench_tls builds it.
 */
#include <malloc.h>

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include "cpu.h"
#include "../unit/tls/pair.h"
#include "tls/ca/ca_private.h"
#include "vethguard/base/hash.h"
#include "vethguard/issuer/leaf_issuer.h"

#define ROUNDS 5

static struct slice none = {"", 0};

struct sides {
	double server, client;
	unsigned resumed;
};

/* One connection from nothing to its end, each side's time apart. */
static void visit(struct pair *pair, int version, struct sides *sides)
{
	uint8_t byte;
	size_t n;
	double t = cpu_us();

	pair->c = tls_connect_new(
	        pair->client, SLICE("a.example"), NULL, PAIR_ALPN, SLICE("k"), &pair->to_server);
	SSL_set_max_proto_version(pair->c->ssl, version);
	tls_handshake(pair->c);
	sides->client += cpu_us() - t;
	t = cpu_us();
	pair->s = tls_accept_new(pair->server, PAIR_ALPN, &pair->to_client);
	sides->server += cpu_us() - t;
	for (int i = 0; i < 3; i++) {
		t = cpu_us();
		pair_step(pair, pair->s, &pair->to_server);
		sides->server += cpu_us() - t;
		t = cpu_us();
		if (i == 2 || tls_handshake(pair->c) == TLS_OK)
			pair_read(pair, pair->c, &pair->to_client, &byte, 1, &n);
		else
			pair_step(pair, pair->c, &pair->to_client);
		sides->client += cpu_us() - t;
	}
	sides->resumed += pair_resumed(pair->s);
	t = cpu_us();
	tls_free(pair->s);
	sides->server += cpu_us() - t;
	t = cpu_us();
	tls_free(pair->c);
	sides->client += cpu_us() - t;
	pair->s = pair->c = NULL;
	pair->to_server.len = pair->to_client.len = 0;
}

static void bench_handshakes(int version, bool resumed)
{
	enum { COUNT = 300 };
	struct sides best = {1e9, 1e9, 0};

	for (int round = 0; round < ROUNDS; round++) {
		struct pair pair;
		struct sides sides = {0};
		pair_init(&pair);
		struct sides ignored = {0};
		visit(&pair, version, &ignored);
		for (int i = 0; i < COUNT; i++) {
			if (!resumed) { /* a fresh client knows no session */
				tls_client_free(pair.client);
				pair.client = tls_client_new(pair.trust);
			}
			visit(&pair, version, &sides);
		}
		if (sides.resumed != (resumed ? COUNT : 0))
			abort();
		best.server = sides.server < best.server ? sides.server : best.server;
		best.client = sides.client < best.client ? sides.client : best.client;
		pair_fini(&pair);
	}
	printf("handshake tls1.%d %-8s server %6.1f us  client %6.1f us\n",
	        version == TLS1_3_VERSION ? 3 : 2, resumed ? "resumed" : "full",
	        best.server / COUNT, best.client / COUNT);
}

static bool add(X509 *leaf, int nid, void *value, bool is_critical)
{
	return X509_add1_ext_i2d(leaf, nid, value, is_critical, 0) == 1;
}

static bool add_extensions(
        X509 *leaf, const struct ca *issuer, const struct ca_leaf_key *key, const char *host)
{
	BASIC_CONSTRAINTS *constraints = BASIC_CONSTRAINTS_new();
	ASN1_BIT_STRING *usage = ASN1_BIT_STRING_new();
	EXTENDED_KEY_USAGE *purposes = EXTENDED_KEY_USAGE_new();
	ASN1_OCTET_STRING *id = ASN1_OCTET_STRING_new();
	AUTHORITY_KEYID *above = AUTHORITY_KEYID_new();
	GENERAL_NAMES *names = GENERAL_NAMES_new();
	GENERAL_NAME *name = GENERAL_NAME_new();
	ASN1_IA5STRING *text = ASN1_IA5STRING_new();
	bool good;

	ASN1_BIT_STRING_set_bit(usage, 0, 1);
	sk_ASN1_OBJECT_push(purposes, OBJ_nid2obj(NID_server_auth));
	ASN1_OCTET_STRING_set(id, key->id, CA_KEY_ID_BYTES);
	above->keyid = ASN1_OCTET_STRING_new();
	ASN1_OCTET_STRING_set(above->keyid, issuer->key_id, CA_KEY_ID_BYTES);
	ASN1_STRING_set(text, host, -1);
	GENERAL_NAME_set0_value(name, GEN_DNS, text);
	sk_GENERAL_NAME_push(names, name);
	good = add(leaf, NID_basic_constraints, constraints, true) &&
	       add(leaf, NID_key_usage, usage, true) &&
	       add(leaf, NID_ext_key_usage, purposes, false) &&
	       add(leaf, NID_subject_key_identifier, id, false) &&
	       add(leaf, NID_authority_key_identifier, above, false) &&
	       add(leaf, NID_subject_alt_name, names, false);
	BASIC_CONSTRAINTS_free(constraints);
	ASN1_BIT_STRING_free(usage);
	EXTENDED_KEY_USAGE_free(purposes);
	ASN1_OCTET_STRING_free(id);
	AUTHORITY_KEYID_free(above);
	GENERAL_NAMES_free(names);
	return good;
}

/* The certificate of ca_leaf_new() by OpenSSL's functions alone, for docs/decisions.md. */
static X509 *leaf_by_openssl(
        const struct ca *issuer, const struct ca_leaf_key *key, const char *host)
{
	uint8_t serial[16];
	X509 *leaf = X509_new();
	X509_NAME *subject = X509_NAME_new();
	BIGNUM *number;

	random_bytes(serial, sizeof(serial));
	serial[0] = (serial[0] & 0x3f) | 0x40;
	number = BN_bin2bn(serial, sizeof(serial), NULL);
	if (X509_set_version(leaf, X509_VERSION_3) != 1 ||
	        !BN_to_ASN1_INTEGER(number, X509_get_serialNumber(leaf)) ||
	        X509_set_issuer_name(leaf, X509_get_subject_name(issuer->certificate)) != 1 ||
	        !X509_gmtime_adj(X509_getm_notBefore(leaf), -48 * 3600) ||
	        !X509_gmtime_adj(X509_getm_notAfter(leaf), 120 * 3600) ||
	        X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8,
	                (const unsigned char *)host, -1, -1, 0) != 1 ||
	        X509_set_subject_name(leaf, subject) != 1 || X509_set_pubkey(leaf, key->key) != 1 ||
	        !add_extensions(leaf, issuer, key, host) ||
	        X509_sign(leaf, issuer->key, EVP_sha256()) <= 0)
		abort();
	X509_NAME_free(subject);
	BN_free(number);
	return leaf;
}

static void bench_leaf_by_openssl(const struct ca *issuer, const struct ca_leaf_key *key)
{
	enum { COUNT = 500 };
	double leaf = 1e9, sign = 1e9;

	for (int round = 0; round < ROUNDS; round++) {
		double t = cpu_us();
		for (int i = 0; i < COUNT; i++)
			X509_free(leaf_by_openssl(issuer, key, "api.example.com"));
		t = cpu_us() - t;
		leaf = t < leaf ? t : leaf;
		t = cpu_us();
		for (int i = 0; i < COUNT; i++) {
			uint8_t digest[32] = {0}, signature[80];
			size_t n = sizeof(signature);

			if (EVP_PKEY_sign(issuer->signer, signature, &n, digest, sizeof(digest)) !=
			        1)
				abort();
		}
		t = cpu_us() - t;
		sign = t < sign ? t : sign;
	}
	printf("leaf by OpenSSL's X509 functions %.1f us; of either, the signature %.1f us\n",
	        leaf / COUNT, sign / COUNT);
}

static void bench_leaf(void)
{
	enum { COUNT = 500 };
	struct ca *root = ca_new_root(SLICE("root"), 30);
	struct ca *issuer = ca_new_intermediate(root, SLICE("issuer"), 30);
	struct ca_leaf_key *key = ca_leaf_key_new(TLS_KEY_ECDSA);
	struct leaf_issuer_limits limits = {1000, 60};
	double leaf = 1e9, found = 1e9;

	for (int round = 0; round < ROUNDS; round++) {
		double t = cpu_us();
		for (int i = 0; i < COUNT; i++)
			tls_identity_release(
			        ca_leaf_new(issuer, key, SLICE("api.example.com"), NULL));
		t = cpu_us() - t;
		leaf = t < leaf ? t : leaf;
	}
	struct leaf_issuer *leaf_issuer = leaf_issuer_new(issuer, &limits);
	leaf_issuer_get(leaf_issuer, SLICE("api.example.com"), NULL, TLS_KEY_ECDSA, true, 0);
	for (int round = 0; round < ROUNDS; round++) {
		double t = cpu_us();
		for (int i = 0; i < COUNT * 100; i++)
			leaf_issuer_get(leaf_issuer, SLICE("api.example.com"), NULL, TLS_KEY_ECDSA,
			        true, 0);
		t = cpu_us() - t;
		found = t < found ? t : found;
	}
	printf("leaf minted %.1f us, found in the mint %.3f us\n", leaf / COUNT,
	        found / COUNT / 100);
	bench_leaf_by_openssl(issuer, key);
	leaf_issuer_free(leaf_issuer);
	ca_leaf_key_free(key);
	ca_free(root);
}

static void bench_idle(int version)
{
	enum { COUNT = 500 };
	static struct tls *servers[COUNT], *clients[COUNT];
	struct pair pair;
	uint8_t byte;
	size_t n, server_bytes = 0, client_bytes = 0;

	pair_init(&pair);
	for (int i = 0; i < COUNT; i++) {
		pair_dial(&pair, "a.example", PAIR_ALPN, PAIR_ALPN);
		SSL_set_max_proto_version(pair.c->ssl, version);
		pair_shake(&pair);
		pair_read(&pair, pair.c, &pair.to_client, &byte, 1, &n);
		/* one exchange, as every connection has had when it idles */
		tls_write(pair.c, &byte, 1);
		pair_read(&pair, pair.s, &pair.to_server, &byte, 1, &n);
		tls_write(pair.s, &byte, 1);
		pair_read(&pair, pair.c, &pair.to_client, &byte, 1, &n);
		servers[i] = pair.s;
		clients[i] = pair.c;
	}
	pair.s = pair.c = NULL;
	size_t before = mallinfo2().uordblks;
	for (int i = 0; i < COUNT; i++)
		tls_free(servers[i]);
	server_bytes = before - mallinfo2().uordblks;
	before = mallinfo2().uordblks;
	for (int i = 0; i < COUNT; i++)
		tls_free(clients[i]);
	client_bytes = before - mallinfo2().uordblks;
	printf("idle connection tls1.%d server %zu bytes  client %zu bytes\n",
	        version == TLS1_3_VERSION ? 3 : 2, server_bytes / COUNT, client_bytes / COUNT);
	pair_fini(&pair);
}

static void bench_records(int version, size_t size)
{
	static uint8_t data[16384], got[16384];
	enum { COUNT = 4000 };
	double write = 1e9, read = 1e9;
	struct pair pair;
	size_t n;

	pair_init(&pair);
	pair_dial(&pair, "a.example", none, none);
	SSL_set_max_proto_version(pair.c->ssl, version);
	pair_shake(&pair);
	pair_read(&pair, pair.c, &pair.to_client, got, 1, &n);
	for (int round = 0; round < ROUNDS; round++) {
		double w = 0, r = 0;
		for (int i = 0; i < COUNT; i++) {
			double t = cpu_us();
			tls_write(pair.s, data, size);
			double middle = cpu_us();
			tls_feed(pair.c, buf_bytes(&pair.to_client), pair.to_client.len);
			if (tls_read(pair.c, got, sizeof(got), &n) != TLS_OK || n != size)
				abort();
			buf_consume(&pair.to_client, pair.to_client.len);
			w += middle - t;
			r += cpu_us() - middle;
		}
		write = w < write ? w : write;
		read = r < read ? r : read;
	}
	printf("record tls1.%d %5zu bytes  write %.2f us  read %.2f us",
	        version == TLS1_3_VERSION ? 3 : 2, size, write / COUNT, read / COUNT);
	if (size >= 16384)
		printf("  (%.2f and %.2f GB/s)", (double)size * COUNT / write / 1e3,
		        (double)size * COUNT / read / 1e3);
	printf("\n");
	pair_fini(&pair);
}

static void bench_trust(void)
{
	FILE *f = fopen("/etc/ssl/certs/ca-certificates.crt", "r");
	static uint8_t pem[1 << 21];
	size_t n = f ? fread(pem, 1, sizeof(pem), f) : 0, usable, unusable;

	if (f)
		fclose(f);
	if (n == 0)
		return;
	size_t before = mallinfo2().uordblks;
	double t = cpu_us();
	struct tls_trust *trust = tls_trust_new(pem, n);
	double made = cpu_us();
	size_t made_bytes = mallinfo2().uordblks - before;
	tls_trust_count(trust, &usable, &unusable);
	double indexed = cpu_us();
	printf("trust of %zu certificates (%zu unusable): made %.0f us %zu bytes, indexed %.0f us "
	       "%zu bytes\n",
	        usable, unusable, made - t, made_bytes, indexed - made,
	        mallinfo2().uordblks - before);
	tls_trust_free(trust);
}

/* The same text, all certificates parsed at once into OpenSSL's store. */
static void bench_trust_by_openssl(void)
{
	BIO *bio = BIO_new_file("/etc/ssl/certs/ca-certificates.crt", "r");
	X509_STORE *store = X509_STORE_new();
	size_t before = mallinfo2().uordblks, count = 0;
	double t = cpu_us();
	X509 *certificate;

	while (bio && (certificate = PEM_read_bio_X509(bio, NULL, NULL, NULL))) {
		X509_STORE_add_cert(store, certificate);
		X509_free(certificate);
		count++;
	}
	printf("trust of %zu certificates in OpenSSL's store: %.0f us %zu bytes\n", count,
	        cpu_us() - t, mallinfo2().uordblks - before);
	X509_STORE_free(store);
	BIO_free(bio);
}

int main(void)
{
	for (int version = TLS1_2_VERSION; version <= TLS1_3_VERSION; version++) {
		bench_handshakes(version, false);
		bench_handshakes(version, true);
		bench_idle(version);
		bench_records(version, 300);
		bench_records(version, 16384);
	}
	bench_leaf();
	bench_trust();
	bench_trust_by_openssl();
	return 0;
}
