/* SPDX-License-Identifier: Apache-2.0 */
/* Compiles the published ports. They are few, so they have no index. */
#include "policy/compile/compile.h"

/* Writes family, bits and address, as in the key of a target that is a network. */
static struct image_text compile_network(struct compiler *c, const struct ip_prefix *network)
{
	uint8_t key[IMAGE_PREFIX_KEY] = {network->base.family, network->bits};

	if (!network->base.family)
		return compile_text(c, SLICE(""));
	memcpy(key + 2, network->base.bytes, sizeof(network->base.bytes));
	return compile_text(c, arena_copy(c->model->arena, slice_of(key, sizeof(key))));
}

static void compile_from(struct compiler *c, const struct policy_from *from)
{
	struct image_from out = {.text = compile_text(c, from->text),
	        .network = compile_network(c, &from->network),
	        .kind = from->kind};

	compile_push(c, SECTION_FROMS, &out);
}

void compile_exposes(struct compiler *c)
{
	for (size_t i = 0; i < c->model->expose_count && !c->failed; i++) {
		const struct model_expose *e = &c->model->exposes[i];
		const struct ip_prefix at = {e->at, e->at.family == 6 ? 128 : 32};
		struct image_expose out = {.name = compile_text(c, e->name),
		        .at = compile_network(c, &at),
		        .port = e->port,
		        .at_port = e->at_port,
		        .connections = e->connections,
		        .first_from = (uint32_t)c->sections[SECTION_FROMS].n,
		        .from_count = (uint32_t)e->from_count};

		for (size_t k = 0; k < e->from_count; k++)
			compile_from(c, &e->from[k]);
		compile_push(c, SECTION_EXPOSES, &out);
	}
	c->failed |= c->model->arena->failed;
}
