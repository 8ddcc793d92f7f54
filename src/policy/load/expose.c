/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: each entry of expose: names a port of the sandbox, where the host listens
 * for it, and from where it may be reached (expose_from.c).
 */
#include "policy/load/expose.h"

#define ENDPOINT_WRITTEN_MAX 256

static const char *const keys[] = {"name", "port", "from", "at", "connections", NULL};
static const struct tree_refusal refused[] = {
        {"to", "does not exist here: expose: is about connections to the sandbox; write port: "
               "and from:"},
        {"ports", "does not exist here: write one entry for each port"},
        {"listen", "does not exist here: write at: ADDRESS:PORT"},
        {"host", "does not exist here: write from: [host]"},
        {"credential", "does not exist here: what comes in gets no credential"}, {NULL, NULL}};

static bool can_listen(const struct ip *ip)
{
	enum ip_class class = ip_classify(ip);

	return class != IP_MULTICAST && class != IP_BROADCAST && class != IP_MAPPED;
}

/* True if another entry listens there. An address of all zeros stands for every address. */
static bool collides(const struct model_expose *a, const struct model_expose *b)
{
	if (a->at.family != b->at.family || a->at_port != b->at_port)
		return false;
	return ip_equals(&a->at, &b->at) || ip_classify(&a->at) == IP_UNSPECIFIED ||
	       ip_classify(&b->at) == IP_UNSPECIFIED;
}

static void check_place(struct expose_parse *p, const struct tree_node *node)
{
	char endpoint[POLICY_ENDPOINT_MAX];

	for (size_t i = 0; i < p->l->model.expose_count; i++) {
		const struct model_expose *other = &p->l->model.exposes[i];

		if (!collides(other, p->out))
			continue;
		tree_error(p->tree, node, "at %s is taken by \"%.*s\" at %s:%u",
		        policy_endpoint_text(&p->out->at, p->out->at_port, endpoint),
		        SLICE_ARG(other->name), other->mark.file, other->mark.line);
		return;
	}
}

static void take_at(struct expose_parse *p, const struct tree_node *node)
{
	static const char form[] = "write ADDRESS:PORT, as in 127.0.0.1:8080 or [::1]:8080";
	struct url_authority authority;
	char quoted[TREE_QUOTE_MAX];
	struct slice text;

	if (!tree_text(p->tree, node, "at", ENDPOINT_WRITTEN_MAX, &text))
		return;
	tree_quote(text, quoted);
	if (!url_parse_authority(text, &authority))
		tree_error(p->tree, node, "at %s: %s", quoted, form);
	else if (authority.host_n)
		tree_error(
		        p->tree, node, "at %s: a host's name is not an address; %s", quoted, form);
	else if (authority.port == 0)
		tree_error(p->tree, node, "at %s has no port; %s", quoted, form);
	else if (!can_listen(&authority.address))
		tree_error(p->tree, node, "at %s: nobody can listen at such an address", quoted);
	else {
		p->out->at = authority.address;
		p->out->at_port = authority.port;
		check_place(p, node);
	}
}

static void take_port(struct expose_parse *p, const struct tree_node *node)
{
	uint64_t port;

	if (!tree_uint(p->tree, node, "port", 1, UINT16_MAX, &port))
		return;
	p->out->port = (uint16_t)port;
	for (size_t i = 0; i < p->l->model.expose_count; i++) {
		const struct model_expose *other = &p->l->model.exposes[i];

		if (other->port == port)
			tree_error(p->tree, node,
			        "port %u is exposed already at %s:%u; put all sources into its "
			        "from",
			        other->port, other->mark.file, other->mark.line);
	}
}

static void take_name(struct expose_parse *p, const struct load_file *file, size_t index)
{
	const struct tree_node *node = tree_get(p->node, "name");
	struct model_expose *e = p->out;

	if (node && !load_name(p->tree, node, "name", &e->name))
		return;
	if (!node)
		e->name = arena_printf(&p->l->arena, "%.*s%sexpose[%zu]", SLICE_ARG(file->label),
		        file->label.n ? ":" : "", index);
	for (size_t i = 0; i < p->l->model.expose_count; i++) {
		const struct model_expose *other = &p->l->model.exposes[i];

		if (slice_equals(other->name, e->name))
			tree_error(p->tree, node ? node : p->node,
			        "\"%.*s\" already exists at %s:%u; names are unique",
			        SLICE_ARG(e->name), other->mark.file, other->mark.line);
	}
}

static void take_connections(struct expose_parse *p, const struct tree_node *node)
{
	uint64_t count = POLICY_EXPOSE_CONNECTIONS;

	if (node)
		tree_uint(p->tree, node, "connections", 1, POLICY_EXPOSE_CONNECTIONS_MAX, &count);
	p->out->connections = (uint32_t)count;
}

static void load_expose(
        struct loader *l, struct load_file *file, const struct tree_node *node, size_t index)
{
	struct expose_parse p = {.l = l, .tree = &file->tree, .node = node};
	struct tree_node *port, *from;

	if (!tree_is_map(p.tree, node, "an entry of expose"))
		return;
	p.out = &l->model.exposes[l->model.expose_count];
	*p.out = (struct model_expose){.mark = mark_of(p.tree, node)};
	tree_check_keys(p.tree, node, keys, refused);
	take_name(&p, file, index);
	port = tree_get(node, "port");
	from = tree_get(node, "from");
	p.at = tree_get(node, "at");
	take_connections(&p, tree_get(node, "connections"));
	if (port)
		take_port(&p, port);
	else
		tree_error(p.tree, node, "the entry has no port; add port: 8080");
	if (p.at)
		take_at(&p, p.at);
	if (from)
		load_expose_from(&p, from);
	else
		tree_error(p.tree, node,
		        "the entry does not say who may connect; add from: [host], an address, a "
		        "network, sandbox:NAME or label:KEY=VALUE");
	l->model.expose_count++;
}

void load_exposes(struct loader *l, struct load_file *file)
{
	const struct tree_node *list = tree_get(file->tree.root, "expose");
	size_t index = 0;

	if (!list)
		return;
	if (tree_get(list, "port")) {
		tree_error(&file->tree, list,
		        "expose must be a list: put \"- \" before the first key of each entry");
		return;
	}
	if (!tree_is_list(&file->tree, list, "expose"))
		return;
	for (const struct tree_item *item = list->first; item && !l->arena.failed;
	        item = item->next) {
		if (l->model.expose_count == POLICY_EXPOSES_MAX) {
			tree_error(&file->tree, item->value,
			        "more than %d ports are exposed by all files together",
			        POLICY_EXPOSES_MAX);
			return;
		}
		load_expose(l, file, item->value, index++);
	}
}
