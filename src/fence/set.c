/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: setting a fence writes everything the plan holds, whether or not it is
 * there, in one transaction: create what is missing, empty each chain and refill it, empty the set
 * of ports and refill it. The kernel switches to the new generation at once, and a chain that is
 * flushed and refilled in one transaction is never seen empty. Counters are kept.
 *
 * Removing reads what is there and deletes that, on condition that nobody changed the rules in
 * between; the last fence of a namespace takes the tables with it.
 */
#include "vethguard/fence/fence.h"

#include <errno.h>
#include <libnftnl/chain.h>
#include <string.h>

#include "objects.h"

#define REMOVE_TRIES 8 /* each lost to somebody else's change of the same namespace's rules */

static const uint32_t families[] = {NFPROTO_NETDEV, NFPROTO_INET};

static void batch_tables(struct nft_batch *b, const struct fence_spec *spec)
{
	for (size_t i = 0; i < 2; i++)
		batch_table(b, NFT_MSG_NEWTABLE, families[i], FENCE_TABLE);
	batch_counters(b, NFT_MSG_NEWOBJ, spec->interface);
}

static void batch_sets(struct nft_batch *b, const struct fence_spec *spec)
{
	char name[FENCE_NAME_MAX];

	for (enum set_kind kind = 0; kind < SET_KIND_COUNT; kind++) {
		struct set_plan plan = set_plan(kind, spec, name);

		batch_set(b, NFT_MSG_NEWSET, &plan);
		if (kind >= SET_PLANNED_COUNT)
			continue;
		if (kind == SET_UDP || kind == SET_EXTENSIONS)
			batch_elements_flush(b, &plan);
		batch_elements(b, NFT_MSG_NEWSETELEM, kind, spec);
	}
}

/* All but the hook, which needs the interface. */
static void batch_before_hook(struct nft_batch *b, const struct fence_spec *spec)
{
	struct chain_plan chains[FENCE_CHAINS_MAX];
	size_t count = fence_plan(spec, chains) - 1;

	batch_tables(b, spec);
	for (size_t i = 0; i < count; i++)
		batch_chain(b, NFT_MSG_NEWCHAIN, &chains[i]);
	batch_sets(b, spec);
	for (size_t i = 0; i < count; i++)
		batch_rules(b, &chains[i], spec);
}

static void batch_hook(struct nft_batch *b, const struct fence_spec *spec)
{
	struct chain_plan chains[FENCE_CHAINS_MAX];
	const struct chain_plan *hook = &chains[fence_plan(spec, chains) - 1];

	batch_chain(b, NFT_MSG_NEWCHAIN, hook);
	batch_rules(b, hook, spec);
	if (spec->udp_port_count)
		batch_elements(b, NFT_MSG_NEWSETELEM, SET_UDP, spec);
}

/* Where the addresses are others than what the interface's own chains were made of. */
static void batch_own(struct nft_batch *b, const struct fence_spec *spec)
{
	struct chain_plan chains[FENCE_CHAINS_MAX];

	fence_plan(spec, chains);
	for (size_t i = 0; i < FENCE_OWN_CHAINS; i++) {
		batch_rules_flush(b, &chains[i]);
		batch_rules(b, &chains[i], spec);
	}
	batch_hook(b, spec);
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

/* generation: on condition that the rules are still of this one; 0: whatever they are. */
static int send_filled(
        struct nft *nft, const struct fence_spec *spec, batch_filler fill, uint32_t generation)
{
	struct nft_batch b;
	int result = nft_batch_init(&b, nft);

	if (result < 0)
		return result;
	if (generation)
		nft_batch_require_generation(&b, generation);
	fill(&b, spec);
	result = nft_batch_send(&b);
	nft_batch_fini(&b);
	return result;
}

/* A change on top of *generation, which is the next one then; 0 where others have changed something
 * since. */
static int change_on(const struct fence_spec *spec, batch_filler fill, uint32_t *generation)
{
	uint32_t before = *generation;
	struct nft nft;
	int result = fence_spec_check(spec);

	*generation = 0;
	if (result == 0)
		result = nft_open(&nft);
	if (result < 0)
		return result;
	result = before ? send_filled(&nft, spec, fill, before) : -ERESTART;
	if (result == 0)
		*generation = before + 1; /* the kernel leaves out 0, which is "not known" here */
	else if (result == -ERESTART)
		result = send_filled(&nft, spec, fill, 0);
	nft_close(&nft);
	return result;
}

int fence_set(const struct fence_spec *spec)
{
	struct nft nft;
	int result = fence_spec_check(spec);

	if (result == 0) /* newer kernels take a hook on a device that may come later; older ones
	                    refuse */
		result = fence_look_for(spec->interface);
	if (result == 0)
		result = nft_open(&nft);
	if (result < 0)
		return result;
	result = send_filled(&nft, spec, batch_fence, 0);
	nft_close(&nft);
	return result;
}

int fence_prepare(const struct fence_spec *spec, uint32_t *generation)
{
	int error = fence_generation(generation);

	return error ? error : change_on(spec, batch_before_hook, generation);
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

int fence_set_prepared(const struct fence_spec *spec, bool fits, uint32_t *generation)
{
	int error = fence_spec_check(spec) == 0 ? fence_look_for(spec->interface) : 0;

	if (error)
		return error;
	return change_on(spec, fits ? batch_hook : batch_own, generation);
}

int fence_generation(uint32_t *out)
{
	struct nft nft;
	int result = nft_open(&nft);

	*out = 0;
	if (result < 0)
		return result;
	result = nft_generation(&nft, out);
	nft_close(&nft);
	return result;
}

/* What of the fence is there. */
struct inventory {
	const char *ingress, *wire; /* names of the chains to remove */
	bool have_ingress, have_others;
	bool have_table[2]; /* as in families */
};

static int take_chain(const struct nlmsghdr *reply, void *context)
{
	struct inventory *inventory = context;
	struct nftnl_chain *c = nftnl_chain_alloc();
	const char *table, *name;

	if (!c)
		return MNL_CB_ERROR;
	if (nftnl_chain_nlmsg_parse(reply, c) == 0) {
		table = nftnl_chain_get_str(c, NFTNL_CHAIN_TABLE);
		name = nftnl_chain_get_str(c, NFTNL_CHAIN_NAME);
		if (strcmp(table, FENCE_TABLE) == 0 && strcmp(name, inventory->ingress) == 0)
			inventory->have_ingress = true;
		else if (strcmp(table, FENCE_TABLE) == 0 && strcmp(name, inventory->wire) != 0)
			inventory->have_others = true;
	}
	nftnl_chain_free(c);
	return MNL_CB_OK;
}

static int look(struct nft *nft, struct inventory *inventory)
{
	_Alignas(struct nlmsghdr) char request[NFT_REQUEST_BYTES];
	struct nlmsghdr *header;
	int result = 0;

	for (size_t i = 0; i < 2 && result == 0; i++)
		result = nft_has_table(nft, families[i], FENCE_TABLE, &inventory->have_table[i]);
	if (result < 0)
		return result;
	header = nftnl_nlmsg_build_hdr(request, NFT_MSG_GETCHAIN, NFPROTO_NETDEV, NLM_F_DUMP, 0);
	return nft_query(nft, header, take_chain, inventory);
}

/*
 * The inet side may be there in part only; nf_tables has no "delete if there" before Linux 6.3.
 * Writing all of it first makes every deletion succeed, and none of it is seen because it is one
 * transaction.
 */
static void batch_remove_one(struct nft_batch *b, const struct fence_spec *spec, bool have_ingress)
{
	struct chain_plan chains[FENCE_CHAINS_MAX];
	char name[FENCE_NAME_MAX];
	struct set_plan udp = set_plan(SET_UDP, spec, name);
	size_t count = fence_plan(spec, chains);

	batch_tables(b, spec);
	if (have_ingress) {
		batch_rules_flush(b, &chains[count - 1]);
		batch_chain(b, NFT_MSG_DELCHAIN, &chains[count - 1]);
	}
	for (size_t i = 0; i < count; i++) {
		if (chains[i].base)
			continue;
		batch_chain(b, NFT_MSG_NEWCHAIN, &chains[i]);
		batch_rules_flush(b, &chains[i]);
	}
	for (enum set_kind kind = SET_LINKS; kind <= SET_SANDBOXES; kind++) {
		struct set_plan plan = set_plan(kind, spec, name);

		batch_set(b, NFT_MSG_NEWSET, &plan);
		batch_elements(b, NFT_MSG_NEWSETELEM, kind, spec);
		batch_elements(b, NFT_MSG_DELSETELEM, kind, spec);
	}
	for (size_t i = 0; i < count; i++)
		if (!chains[i].base)
			batch_chain(b, NFT_MSG_DELCHAIN, &chains[i]);
	udp = set_plan(SET_UDP, spec, name);
	batch_set(b, NFT_MSG_NEWSET, &udp);
	batch_set(b, NFT_MSG_DELSET, &udp);
	for (enum set_kind kind = SET_SOURCES4; kind <= SET_SOURCES6; kind++) {
		struct set_plan plan = set_plan(kind, spec, name);

		batch_set(b, NFT_MSG_NEWSET, &plan);
		batch_set(b, NFT_MSG_DELSET, &plan);
	}
	batch_counters(b, NFT_MSG_DELOBJ, spec->interface);
}

static int remove_found(struct nft *nft, const struct fence_spec *spec,
        const struct inventory *inventory, uint32_t generation)
{
	struct nft_batch b;
	int result = nft_batch_init(&b, nft);

	if (result < 0)
		return result;
	nft_batch_require_generation(&b, generation);
	if (inventory->have_others) {
		batch_remove_one(&b, spec, inventory->have_ingress);
	} else {
		for (size_t i = 0; i < 2; i++)
			if (inventory->have_table[i])
				batch_table(&b, NFT_MSG_DELTABLE, families[i], FENCE_TABLE);
	}
	result = nft_batch_send(&b);
	nft_batch_fini(&b);
	return result;
}

static int remove_once(struct nft *nft, const struct fence_spec *spec)
{
	char ingress[FENCE_NAME_MAX], wire[FENCE_NAME_MAX];
	struct inventory inventory = {
	        .ingress = fence_name(ingress, FENCE_INGRESS_PREFIX, spec->interface),
	        .wire = fence_name(wire, FENCE_WIRE_PREFIX, spec->interface)};
	uint32_t generation;
	int result = nft_generation(nft, &generation);

	if (result == 0)
		result = look(nft, &inventory);
	if (result < 0)
		return result == -EINTR ? -ERESTART : result; /* a dump that was overtaken */
	if (!inventory.have_table[0] && !inventory.have_table[1])
		return 0;
	return remove_found(nft, spec, &inventory, generation);
}

int fence_remove(const char *interface)
{
	struct fence_spec spec = {.tcp_port = 1, .dns_port = 1};
	size_t n = strnlen(interface, IFNAMSIZ);
	struct nft nft;
	int result;

	if (n == 0 || n == IFNAMSIZ)
		return -EINVAL;
	memcpy(spec.interface, interface, n);
	result = nft_open(&nft);
	if (result < 0)
		return result;
	result = -ERESTART;
	for (int i = 0; i < REMOVE_TRIES && result == -ERESTART; i++)
		result = remove_once(&nft, &spec);
	nft_close(&nft);
	return result == -ERESTART ? -EAGAIN : result;
}
