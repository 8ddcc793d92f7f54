/* SPDX-License-Identifier: Apache-2.0 */
/* objects: tables, chains, sets and counters of the fence as messages of a batch. Private to
 * fence/. */
#ifndef VETHGUARD_SRC_FENCE_OBJECTS_H
#define VETHGUARD_SRC_FENCE_OBJECTS_H

#include "fence/nft.h"
#include "fence/plan.h"

#define FENCE_PAIR_BYTES (2 * IFNAMSIZ)
#define FENCE_TYPE_BITS 6 /* bits of each part in a key type with several parts, as in nft */

/* The properties of a set; the key's type only serves `nft list`. */
struct set_plan {
	const char *table;
	uint32_t family;
	const char *name;
	uint32_t flags, key_type, key_bytes, id;
	uint32_t size, timeout_s; /* of a set that packets fill */
};

/* First the sets that the plan fills, then those that packets fill. */
enum set_kind {
	SET_LINKS,
	SET_SANDBOXES,
	SET_UDP,
	SET_EXTENSIONS,
	SET_PLANNED_COUNT,
	SET_SOURCES4 = SET_PLANNED_COUNT,
	SET_SOURCES6,
	SET_KIND_COUNT
};

/* The plan of one set; name is storage for the name of a set that is named after the interface. */
struct set_plan set_plan(
        enum set_kind kind, const struct fence_spec *spec, char name[FENCE_NAME_MAX]);
/* The set with the elements that this spec requires, or NULL. Free it with nftnl_set_free(). */
struct nftnl_set *set_with_elements(
        const struct set_plan *plan, enum set_kind kind, const struct fence_spec *spec);

/* Each of these creates the object unless it exists; with a type argument it does what that type
 * says. */
void batch_table(struct nft_batch *b, uint16_t type, uint32_t family, const char *table);
void batch_chain(struct nft_batch *b, uint16_t type, const struct chain_plan *chain);
/* The counters of one interface in the tables of both families. */
void batch_counters(struct nft_batch *b, const char *interface);
void batch_set(struct nft_batch *b, const struct set_plan *plan);
/* Adds the elements that spec gives the set. */
void batch_elements(struct nft_batch *b, enum set_kind kind, const struct fence_spec *spec);
/* A set of interfaces, or of pairs of them (FENCE_PAIR_BYTES), that contains this interface; or
 * NULL. */
struct nftnl_set *set_with_interface(const struct set_plan *plan, const char *interface);
/* Adds this interface to a set of interfaces, or removes it. */
void batch_interface(
        struct nft_batch *b, uint16_t type, const struct set_plan *plan, const char *interface);
void batch_elements_flush(struct nft_batch *b, const struct set_plan *plan);
void batch_rules_flush(struct nft_batch *b, const struct chain_plan *chain);
void batch_rule_list(struct nft_batch *b, const struct rule_list *list);
void batch_rules(
        struct nft_batch *b, const struct chain_plan *chain, const struct fence_spec *spec);

#endif
