/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tls module costs, both sides in one process and in memory: CPU microseconds per
 * handshake and side, per minted leaf, per record; heap bytes per idle connection. Each figure is
 * the least of several rounds.
 * make build/tests/bench/bench_tls builds it.
 */
#include <malloc.h>
#include <time.h>

#include "../unit/tls/pair.h"
#include "vethguard/issuer/leaf_issuer.h"

#define ROUNDS 5

static struct slice none = {"", 0};

static double cpu_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

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
	return 0;
}
