/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys are made in memory and die with this process, except those in a file (authority_file.c). A
 * long validity of certificates helps no attacker; it only keeps a sandbox that runs for months
 * from expiring. Each worker has an intermediate with path length 0, so what one worker could be
 * made to sign is worth nothing to another sandbox once it is gone.
 */
#include "keeper/authority.h"
#include "keeper/token.h"

#include <stdio.h>
#include <stdlib.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/hash.h"

#define VALID_DAYS 3650
#define NAME_BYTES 65 /* common names have at most 64 (RFC 5280, ub-common-name) */
#define MESSAGE_CA_BYTES (128 + (2 + CA_CHAIN_MAX) * CA_CERTIFICATE_MAX + CA_KEY_MAX)
#define SOON_PART 5 /* of a CA's time, its last part */

static struct slice make_name(char name[NAME_BYTES], const char *kind)
{
	uint32_t number;
	int n;

	random_bytes(&number, sizeof(number));
	n = snprintf(name, NAME_BYTES, "vethguard %s CA %08x", kind, number);
	return slice_of(name, (size_t)n);
}

struct authority *authority_of(struct ca *ca, enum message_ca_origin origin,
        const struct ca_papers *chain, const struct ca_papers *root)
{
	struct authority *a = ca ? calloc(1, sizeof(*a)) : NULL;

	if (!a) {
		ca_free(ca);
		return NULL;
	}
	a->refs = 1;
	a->ca = ca;
	a->origin = origin;
	if (chain)
		a->chain = *chain;
	if (root)
		a->root = *root;
	else
		ca_papers_add(&a->root, ca_certificate_der(ca));
	if (a->root.count == 1 && a->chain.count < CA_CHAIN_MAX &&
	        ca_describe(ca_certificate_der(ca), &a->described) == 0 &&
	        ca_describe(ca_paper(&a->root, 0), &a->root_described) == 0)
		return a;
	authority_put(a);
	return NULL;
}

struct authority *authority_get(struct authority *a)
{
	a->refs++;
	return a;
}

void authority_put(struct authority *a)
{
	if (!a || --a->refs)
		return;
	ca_free(a->ca);
	free(a);
}

struct authority *authority_new(void)
{
	char name[NAME_BYTES];

	return authority_of(
	        ca_new_root(make_name(name, "sandbox"), VALID_DAYS), MESSAGE_CA_OWN, NULL, NULL);
}

static bool is_root(const struct authority *a)
{
	return slice_equals(ca_certificate_der(a->ca), ca_paper(&a->root, 0));
}

/* Writes what clients get between the intermediate and the root. Returns how many. */
static size_t above(const struct authority *a, struct slice out[CA_CHAIN_MAX])
{
	size_t n = 0;

	if (!is_root(a))
		out[n++] = ca_certificate_der(a->ca);
	for (size_t i = 0; i < a->chain.count && n < CA_CHAIN_MAX; i++)
		out[n++] = ca_paper(&a->chain, i);
	return n;
}

struct ca *authority_intermediate(const struct authority *a, const char *names)
{
	char name[NAME_BYTES];

	if (ca_expires_s(a->ca) <= clock_real_ms() / 1000)
		return NULL;
	return ca_new_intermediate_for(
	        a->ca, &(struct ca_wanted){make_name(name, "intermediate"), VALID_DAYS, names});
}

struct token_job *authority_intermediate_later(const struct authority *a, struct token *token,
        const char *names, void (*done)(void *context, struct ca *made, const char *why),
        void *context, char why[CA_WHY_MAX])
{
	char name[NAME_BYTES];

	return token_sign(token, a->ca,
	        &(struct ca_wanted){make_name(name, "intermediate"), VALID_DAYS, names}, done,
	        context, why);
}

bool authority_ends_soon(const struct authority *a, int64_t now_s)
{
	const struct ca_description *d = &a->described;

	return d->until_s - now_s < (d->until_s - d->from_s) / SOON_PART;
}

int authority_send(const struct authority *a, const struct ca *intermediate, struct ipc_peer *peer,
        uint64_t id)
{
	struct secret key, message;
	struct message_ca ca = {
	        .root = ca_paper(&a->root, 0), .intermediate = ca_certificate_der(intermediate)};
	int rc = ca_key_der(intermediate, &key);

	if (rc < 0)
		return rc;
	ca.key = secret_slice(&key);
	ca.above_count = above(a, ca.above);
	rc = secret_alloc(&message, MESSAGE_CA_BYTES);
	if (rc == 0)
		rc = ipc_send_secret(peer, message.p,
		        message_ca_encode(message.p, message.cap, MESSAGE_CA, id, &ca), NULL, 0);
	secret_free(&message);
	secret_free(&key);
	return rc;
}
