/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: a policy publishes few ports with few sources each, so they are searched
 * linearly. A peer that no source names may not connect. */
#include <stdio.h>

#include "policy/image/image.h"
#include "vethguard/policy/expose.h"

static struct ip_prefix network_of(struct slice key)
{
	struct ip_prefix network = {{0}, 0};

	if (key.n != IMAGE_PREFIX_KEY)
		return network;
	network.base.family = (uint8_t)key.p[0];
	network.bits = (uint8_t)key.p[1];
	memcpy(network.base.bytes, key.p + 2, sizeof(network.base.bytes));
	return network;
}

uint32_t policy_expose_count(const struct policy *policy)
{
	return image_count(policy, SECTION_EXPOSES);
}

void policy_expose(const struct policy *policy, uint32_t index, struct policy_expose *out)
{
	const struct image_expose *e;

	memset(out, 0, sizeof(*out));
	if (index >= policy_expose_count(policy))
		return;
	e = image_expose_at(policy, index);
	out->name = image_slice(policy, e->name);
	out->port = e->port;
	out->at = network_of(image_slice(policy, e->at)).base;
	out->at_port = e->at_port;
	out->connections = e->connections;
	out->from_count = e->from_count;
}

void policy_expose_from(
        const struct policy *policy, uint32_t index, uint32_t i, struct policy_from *out)
{
	const struct image_from *from;

	memset(out, 0, sizeof(*out));
	out->kind = POLICY_FROM_COUNT;
	if (index >= policy_expose_count(policy) || i >= image_expose_at(policy, index)->from_count)
		return;
	from = image_from_at(policy, image_expose_at(policy, index)->first_from + i);
	out->kind = (enum policy_from_kind)from->kind;
	out->text = image_slice(policy, from->text);
	out->network = network_of(image_slice(policy, from->network));
}

uint32_t policy_expose_find(const struct policy *policy, uint16_t port)
{
	for (uint32_t i = 0; i < policy_expose_count(policy); i++)
		if (image_expose_at(policy, i)->port == port)
			return i;
	return POLICY_NONE;
}

/* Returns the text after "sandbox:" or "label:". */
static struct slice behind(struct slice text, struct slice prefix)
{
	return slice_of(text.p + prefix.n, text.n - prefix.n);
}

static bool has_label(const struct policy_peer *peer, struct slice label)
{
	for (size_t i = 0; i < peer->label_count; i++)
		if (slice_equals(peer->labels[i], label))
			return true;
	return false;
}

static bool is_from(const struct policy_from *from, const struct policy_peer *peer)
{
	bool is_sandbox = peer->sandbox.n > 0;

	switch (from->kind) {
	case POLICY_FROM_HOST:
		return !is_sandbox && peer->own;
	case POLICY_FROM_NETWORK:
		return !is_sandbox && ip_in_prefix(&peer->address, &from->network);
	case POLICY_FROM_SANDBOX:
		return is_sandbox &&
		       slice_equals(peer->sandbox, behind(from->text, SLICE("sandbox:")));
	case POLICY_FROM_LABEL:
		return is_sandbox && has_label(peer, behind(from->text, SLICE("label:")));
	case POLICY_FROM_COUNT:
		break;
	}
	return false;
}

bool policy_expose_admits(
        const struct policy *policy, uint32_t index, const struct policy_peer *peer)
{
	struct policy_expose expose;
	struct policy_from from;

	policy_expose(policy, index, &expose);
	for (uint32_t i = 0; i < expose.from_count; i++) {
		policy_expose_from(policy, index, i, &from);
		if (is_from(&from, peer))
			return true;
	}
	return false;
}

static bool has_from(const struct policy *policy, uint32_t index, struct slice text)
{
	struct policy_expose expose;
	struct policy_from from;

	policy_expose(policy, index, &expose);
	for (uint32_t i = 0; i < expose.from_count; i++) {
		policy_expose_from(policy, index, i, &from);
		if (slice_equals(from.text, text))
			return true;
	}
	return false;
}

/* A list has no source twice, so two lists are equal if they are equally long and every source of
 * one is in the other. */
bool policy_expose_equals(const struct policy *a, uint32_t i, const struct policy *b, uint32_t j)
{
	struct policy_expose x, y;
	struct policy_from from;

	policy_expose(a, i, &x);
	policy_expose(b, j, &y);
	if (x.port != y.port || !ip_equals(&x.at, &y.at) || x.at_port != y.at_port ||
	        x.connections != y.connections || x.from_count != y.from_count)
		return false;
	for (uint32_t k = 0; k < x.from_count; k++) {
		policy_expose_from(a, i, k, &from);
		if (!has_from(b, j, from.text))
			return false;
	}
	return true;
}

const char *policy_endpoint_text(
        const struct ip *address, uint16_t port, char out[POLICY_ENDPOINT_MAX])
{
	char text[IP_TEXT_MAX];

	snprintf(out, POLICY_ENDPOINT_MAX, address->family == 6 ? "[%s]:%u" : "%s:%u",
	        ip_format(address, text), port);
	return out;
}

const char *policy_expose_text(const struct policy *policy, uint32_t index, char *out, size_t size)
{
	struct policy_expose expose;
	struct policy_from from;
	char endpoint[POLICY_ENDPOINT_MAX];
	size_t n;

	policy_expose(policy, index, &expose);
	if (expose.at.family)
		n = (size_t)snprintf(out, size, "%u at %s from ", expose.port,
		        policy_endpoint_text(&expose.at, expose.at_port, endpoint));
	else
		n = (size_t)snprintf(out, size, "%u from ", expose.port);
	for (uint32_t i = 0; i < expose.from_count && n < size; i++) {
		policy_expose_from(policy, index, i, &from);
		n += (size_t)snprintf(
		        out + n, size - n, "%s%.*s", i ? ", " : "", SLICE_ARG(from.text));
	}
	return out;
}
