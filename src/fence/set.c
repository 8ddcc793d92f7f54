/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: setting a fence writes everything in the plan, whether or not it exists, in
 * one transaction: create what is missing, empty each chain and refill it, empty the set of ports
 * and refill it. The kernel switches to the new generation at once, and a chain that is flushed and
 * refilled in one transaction is never seen empty. Counters are kept. Nothing removes a fence: it
 * goes with its gate's namespace.
 */
#include "vethguard/fence/fence.h"

#include <errno.h>
#include <string.h>

#include "fence/objects.h"

static const uint32_t families[] = {NFPROTO_NETDEV, NFPROTO_INET};

static void batch_tables(struct nft_batch *b, const struct fence_spec *spec)
{
	for (size_t i = 0; i < 2; i++)
		batch_table(b, NFT_MSG_NEWTABLE, families[i], FENCE_TABLE);
	batch_counters(b, spec->interface);
}

static void batch_sets(struct nft_batch *b, const struct fence_spec *spec)
{
	char name[FENCE_NAME_MAX];

	for (enum set_kind kind = 0; kind < SET_KIND_COUNT; kind++) {
		struct set_plan plan = set_plan(kind, spec, name);

		batch_set(b, &plan);
		if (kind >= SET_PLANNED_COUNT)
			continue;
		if (kind == SET_UDP || kind == SET_EXTENSIONS)
			batch_elements_flush(b, &plan);
		batch_elements(b, kind, spec);
	}
}

/* Adds everything except the hook, which needs the interface, and the rules of the first chains. */
static void batch_from(struct nft_batch *b, const struct fence_spec *spec, size_t first)
{
	struct chain_plan chains[FENCE_CHAINS_MAX];
	size_t count = fence_plan(spec, chains) - 1;

	batch_tables(b, spec);
	for (size_t i = 0; i < count; i++)
		batch_chain(b, NFT_MSG_NEWCHAIN, &chains[i]);
	batch_sets(b, spec);
	for (size_t i = first; i < count; i++)
		batch_rules(b, &chains[i], spec);
}

static void batch_before_hook(struct nft_batch *b, const struct fence_spec *spec)
{
	batch_from(b, spec, 0);
}

static void batch_bare(struct nft_batch *b, const struct fence_spec *spec)
{
	batch_from(b, spec, FENCE_OWN_CHAINS);
}

static void batch_hook(struct nft_batch *b, const struct fence_spec *spec)
{
	struct chain_plan chains[FENCE_CHAINS_MAX];
	const struct chain_plan *hook = &chains[fence_plan(spec, chains) - 1];

	batch_chain(b, NFT_MSG_NEWCHAIN, hook);
	batch_rules(b, hook, spec);
	if (spec->udp_port_count)
		batch_elements(b, SET_UDP, spec);
}

static void batch_own(struct nft_batch *b, const struct fence_spec *spec, bool flush)
{
	struct chain_plan chains[FENCE_CHAINS_MAX];

	fence_plan(spec, chains);
	for (size_t i = 0; i < FENCE_OWN_CHAINS; i++) {
		if (flush)
			batch_rules_flush(b, &chains[i]);
		batch_rules(b, &chains[i], spec);
	}
	batch_hook(b, spec);
}

static void batch_on_bare(struct nft_batch *b, const struct fence_spec *spec)
{
	batch_own(b, spec, false);
}

/* Adds the rules for addresses other than those that the interface's own chains were made with. */
static void batch_on_other(struct nft_batch *b, const struct fence_spec *spec)
{
	batch_own(b, spec, true);
}

static void batch_fence(struct nft_batch *b, const struct fence_spec *spec)
{
	struct chain_plan chains[FENCE_CHAINS_MAX];
	size_t count = fence_plan(spec, chains);

	batch_tables(b, spec);
	for (size_t i = 0; i < count; i++) {
		batch_chain(b, NFT_MSG_NEWCHAIN, &chains[i]);
		batch_rules_flush(b, &chains[i]);
	}
	batch_sets(b, spec);
	for (size_t i = 0; i < count; i++)
		batch_rules(b, &chains[i], spec);
}

typedef void (*batch_filler)(struct nft_batch *b, const struct fence_spec *spec);

/* generation: send on condition that the rules still have it; 0: unconditionally. */
static int send_filled(
        struct nft *nft, const struct fence_spec *spec, batch_filler fill, uint32_t generation)
{
	struct nft_batch b;
	int rc = nft_batch_init(&b, nft);

	if (rc < 0)
		return rc;
	if (generation)
		nft_batch_require_generation(&b, generation);
	fill(&b, spec);
	rc = nft_batch_send(&b);
	nft_batch_fini(&b);
	return rc;
}

/* Makes a change on top of *generation, which then becomes the next one; 0 if others changed
 * something since. */
static int change_on(const struct fence_spec *spec, batch_filler fill, uint32_t *generation)
{
	uint32_t before = *generation;
	struct nft nft;
	int rc = fence_spec_check(spec);

	*generation = 0;
	if (rc == 0)
		rc = nft_open(&nft);
	if (rc < 0)
		return rc;
	rc = before ? send_filled(&nft, spec, fill, before) : -ERESTART;
	if (rc == 0)
		*generation = before + 1; /* the kernel leaves out 0, which means "unknown" here */
	else if (rc == -ERESTART)
		rc = send_filled(&nft, spec, fill, 0);
	nft_close(&nft);
	return rc;
}

int fence_set(const struct fence_spec *spec)
{
	struct nft nft;
	int rc = fence_spec_check(spec);

	if (rc == 0) /* newer kernels accept a hook on a device that does not exist yet;
	                    older ones refuse */
		rc = fence_look_for(spec->interface);
	if (rc == 0)
		rc = nft_open(&nft);
	if (rc < 0)
		return rc;
	rc = send_filled(&nft, spec, batch_fence, 0);
	nft_close(&nft);
	return rc;
}

int fence_prepare(const struct fence_spec *spec, bool bare, uint32_t *generation)
{
	int rc = fence_generation(generation);

	return rc ? rc : change_on(spec, bare ? batch_bare : batch_before_hook, generation);
}

bool fence_prepared_fits(const struct fence_spec *prepared, const struct fence_spec *spec)
{
	return prepared->bits4 == spec->bits4 && prepared->bits6 == spec->bits6 &&
	       ip_equals(&prepared->sandbox4, &spec->sandbox4) &&
	       ip_equals(&prepared->sandbox6, &spec->sandbox6) &&
	       ip_equals(&prepared->gate4, &spec->gate4) &&
	       ip_equals(&prepared->gate6, &spec->gate6) &&
	       memcmp(&prepared->bounds, &spec->bounds, sizeof(spec->bounds)) == 0;
}

int fence_set_prepared(
        const struct fence_spec *spec, enum fence_prepared prepared, uint32_t *generation)
{
	static const batch_filler fillers[] = {[FENCE_OTHER] = batch_on_other,
	        [FENCE_BARE] = batch_on_bare,
	        [FENCE_FITS] = batch_hook};
	int rc = fence_spec_check(spec) == 0 ? fence_look_for(spec->interface) : 0;

	if (rc)
		return rc;
	return change_on(spec, fillers[prepared], generation);
}

int fence_generation(uint32_t *out)
{
	struct nft nft;
	int rc = nft_open(&nft);

	*out = 0;
	if (rc < 0)
		return rc;
	rc = nft_generation(&nft, out);
	nft_close(&nft);
	return rc;
}
