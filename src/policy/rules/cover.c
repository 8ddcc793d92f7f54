/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/rules/cover.h"

const struct image_range *cover_ports(const struct model_rule *rule,
        const struct model_destination *d, struct image_range *one, size_t *n)
{
	uint16_t port = d->port ? d->port : policy_scheme_default_port(d->scheme);

	if (d->port == 0 && rule->port_count > 0) {
		*n = rule->port_count;
		return rule->ports;
	}
	*one = (struct image_range){port, port};
	*n = 1;
	return one;
}

static bool prefix_covers(struct slice outer, struct slice inner)
{
	const uint8_t *o = (const uint8_t *)outer.p, *i = (const uint8_t *)inner.p;
	unsigned bits = o[1], whole = bits / 8;
	uint8_t mask = (uint8_t)(0xff00u >> bits % 8);

	if (o[0] != i[0] || bits > i[1] || memcmp(o + 2, i + 2, whole) != 0)
		return false;
	return bits % 8 == 0 || ((o[2 + whole] ^ i[2 + whole]) & mask) == 0;
}

bool cover_target(struct slice outer, struct slice inner)
{
	struct slice o = slice_of(outer.p + 1, outer.n - 1);
	struct slice i = slice_of(inner.p + 1, inner.n - 1);

	if (slice_equals(outer, inner))
		return true;
	if (outer.p[0] == TARGET_PREFIX)
		return inner.p[0] == TARGET_PREFIX && prefix_covers(o, i);
	return outer.p[0] == TARGET_GLOB && inner.p[0] != TARGET_PREFIX && i.n > o.n + 1 &&
	       slice_ends_with(i, o) && i.p[i.n - o.n - 1] == '.';
}

bool cover_meets(const struct model_rule *x, const struct model_destination *a,
        const struct model_rule *y, const struct model_destination *b)
{
	struct image_range one_a, one_b;
	size_t n_a, n_b;
	const struct image_range *p = cover_ports(x, a, &one_a, &n_a);
	const struct image_range *q = cover_ports(y, b, &one_b, &n_b);

	if (!cover_target(a->key, b->key) && !cover_target(b->key, a->key))
		return false;
	for (size_t i = 0; i < n_a; i++)
		for (size_t k = 0; k < n_b; k++)
			if (p[i].low <= q[k].high && q[k].low <= p[i].high)
				return true;
	return false;
}
