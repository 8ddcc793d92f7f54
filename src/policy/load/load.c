/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the floor is read first (load/floor.c). Then the main file and its includes
 * are read, depth first, each file once. Then all credentials and groups are loaded, so that any
 * file may use them, then all rules, the main file's first. Faults are collected as long as reading
 * on makes sense; after any fault nothing is compiled.
 */
#include <errno.h>
#include <stdlib.h>

#include "policy/compile/compile.h"
#include "policy/compile/unused.h"
#include "policy/credentials/source.h"
#include "policy/load/variables.h"
#include "policy/rules/limits.h"
#include "policy/rules/rule.h"
#include "vethguard/policy/body.h"

static void load_group(struct loader *l, struct tree *tree, const struct tree_item *item)
{
	struct load_group group = {.mark = mark_of(tree, item->key)};
	struct slice name;
	bool added;
	uint32_t id;

	if (!load_name(tree, item->key, "a group's name", &name) ||
	        !tree_is_list(tree, item->value, "a group"))
		return;
	if (item->value->count == 0 || item->value->count > MODEL_DESTINATIONS_MAX) {
		tree_error(tree, item->key, "a group holds 1 to %d destinations",
		        MODEL_DESTINATIONS_MAX);
		return;
	}
	group.destinations.items = arena_take(&l->arena,
	        item->value->count * LOAD_DESTINATIONS_EACH * sizeof(*group.destinations.items));
	for (const struct tree_item *d = item->value->first; d && group.destinations.items;
	        d = d->next)
		if (d->value->kind == TREE_SCALAR &&
		        slice_starts_with(d->value->text, SLICE("group:")))
			tree_error(tree, d->value, "groups hold destinations, not other groups");
		else
			group.destinations.count += load_destination(l, tree, d->value,
			        &group.destinations.items[group.destinations.count]);
	id = intern_put(&l->group_names, name, &added);
	if (id == UINT32_MAX || (added && !vec_append(&l->groups, &group, 1)))
		l->arena.failed = true;
	else if (!added)
		tree_error(tree, item->key, "group \"%.*s\" is already defined at %s:%u",
		        SLICE_ARG(name), ((struct load_group *)vec_at(&l->groups, id))->mark.file,
		        ((struct load_group *)vec_at(&l->groups, id))->mark.line);
}

static void load_groups(struct loader *l, struct load_file *file)
{
	const struct tree_node *map = tree_get(file->tree.root, "groups");

	if (!map || !tree_is_map(&file->tree, map, "groups"))
		return;
	for (const struct tree_item *item = map->first; item && !l->arena.failed; item = item->next)
		load_group(l, &file->tree, item);
}

/* The main file's name without directory and ending, without characters that no name may have. */
static struct slice name_of_file(struct arena *arena, struct slice path)
{
	char name[POLICY_NAME_MAX];
	size_t n = 0, at = path.n;

	while (at > 0 && path.p[at - 1] != '/')
		at--;
	if (slice_ends_with(path, SLICE(".yaml")))
		path.n -= 5;
	for (; at < path.n && n < sizeof(name); at++) {
		char c = path.p[at];
		bool good = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
		            (c >= 'a' && c <= 'z') || (n > 0 && (c == '.' || c == '_' || c == '-'));

		if (good)
			name[n++] = c;
	}
	return n ? arena_copy(arena, slice_of(name, n)) : SLICE("policy");
}

static void load_main(
        struct loader *l, struct load_file *file, const struct policy_load_options *options)
{
	const struct tree_node *name = tree_get(file->tree.root, "name");

	if (name)
		load_name(&file->tree, name, "name", &l->model.name);
	else
		l->model.name = name_of_file(&l->arena, file->path);
	load_floor_defaults(l, file->tree.root);
	load_top(l, &file->tree, file->tree.root);
	load_limits(&(struct limits_parse){l, &file->tree, POLICY_NONE, false}, file->tree.root);
	if (options && options->observe)
		l->model.mode = POLICY_OBSERVE;
}

#define PORT_WORDS (65536 / 64)
#define DNS_PORT 53

static bool is_marked(const uint64_t seen[PORT_WORDS], uint32_t port)
{
	return seen[port / 64] >> (port % 64) & 1;
}

/* Sets the bits of a range. Returns how many were not set before. */
static size_t mark_ports(uint64_t seen[PORT_WORDS], struct image_range range)
{
	size_t count = 0;

	for (uint32_t port = range.low; port <= range.high; port++) {
		count += !is_marked(seen, port);
		seen[port / 64] |= UINT64_C(1) << (port % 64);
	}
	return count;
}

static size_t mark_rule_ports(uint64_t seen[PORT_WORDS], const struct model_rule *rule)
{
	size_t count = 0;

	for (size_t l = 0; l < rule->destinations.count; l++)
		for (size_t i = 0; i < rule->destinations.lists[l].count; i++) {
			const struct model_destination *to = &rule->destinations.lists[l].items[i];

			if (to->scheme != POLICY_UDP)
				continue;
			if (to->port)
				count += mark_ports(seen, (struct image_range){to->port, to->port});
			for (size_t p = 0; to->port == 0 && p < rule->port_count; p++)
				count += mark_ports(seen, rule->ports[p]);
		}
	return count;
}

/* Notes udp:// port 53: vethguard answers DNS queries there itself, whatever a rule says. */
static void note_own_port(const struct loader *l, const struct model_rule *rule)
{
	if (l->options && l->options->notes)
		diag_add(l->options->notes, rule->mark.file, rule->mark.line, rule->mark.column,
		        "udp:// port %d is vethguard's own: queries for names are answered there, "
		        "nothing is relayed",
		        DNS_PORT);
}

/* Bounds the ports of udp:// allow rules, since each needs a listener. */
static void check_udp_ports(struct loader *l)
{
	uint64_t seen[PORT_WORDS] = {0};
	size_t count = 0;
	bool noted;

	for (size_t i = 0; i < l->model.rules.n && count <= POLICY_UDP_PORTS_MAX; i++) {
		const struct model_rule *r = vec_at(&l->model.rules, i);

		if (r->deny)
			continue;
		noted = is_marked(seen, DNS_PORT);
		count += mark_rule_ports(seen, r);
		if (!noted && is_marked(seen, DNS_PORT))
			note_own_port(l, r);
		if (count <= POLICY_UDP_PORTS_MAX)
			continue;
		diag_add(l->model.diags, r->mark.file, r->mark.line, r->mark.column,
		        "udp:// rules name more than %d different ports by now; each needs a "
		        "listener",
		        POLICY_UDP_PORTS_MAX);
		l->wrong = true;
	}
}

/* Adds a shadow for each ask rule. Servers read one path in several ways, so a request can spell
 * its path in a way that the ask rule does not match but the server reads as one that it matches.
 * The shadow, which matches as a deny rule does, finds such requests. */
static void add_shadows(struct loader *l)
{
	size_t count = l->model.rules.n;

	l->model.rule_count = (uint32_t)count;
	for (size_t i = 0; i < count && !l->arena.failed; i++) {
		struct model_rule shadow = *(struct model_rule *)vec_at(&l->model.rules, i);

		if (!shadow.wait_s)
			continue;
		shadow.deny = true;
		shadow.wait_s = (uint32_t)i + 1;
		shadow.credential = POLICY_NONE;
		shadow.seals = false;
		shadow.upgrades = SLICE("");
		if (!vec_append(&l->model.rules, &shadow, 1))
			l->arena.failed = true;
	}
}

static void load_contents(struct loader *l, const struct policy_load_options *options)
{
	size_t n = l->files.n;

	for (size_t i = 0; i < n; i++)
		variables_declare(l, vec_at(&l->files, i));
	variables_check(l);
	for (size_t i = 0; i < n; i++) {
		struct load_file *file = vec_at(&l->files, i);

		if (i == 0)
			load_main(l, file, options);
		load_credentials(l, file);
		load_groups(l, file);
	}
	load_overrides_apply(l);
	for (size_t i = 0; i < n && !l->arena.failed; i++) {
		struct load_file *file = vec_at(&l->files, i);

		load_rules(l, file, "allow");
		load_rules(l, file, "ask");
		load_rules(l, file, "deny");
		load_exposes(l, file);
	}
	if (n)
		load_tokens_check(l, &((struct load_file *)vec_at(&l->files, 0))->tree);
	for (size_t i = 0; i < n; i++)
		l->wrong |= ((struct load_file *)vec_at(&l->files, i))->tree.wrong;
	if (!l->wrong)
		check_udp_ports(l);
	add_shadows(l);
}

static void loader_init(
        struct loader *l, const struct policy_reader *reader, struct diag_list *diags)
{
	memset(l, 0, sizeof(*l));
	l->reader = reader;
	arena_init(&l->arena);
	l->model.arena = &l->arena;
	l->model.diags = diags;
	l->model.inspect = POLICY_INSPECT_DEFAULT;
	vec_init(&l->model.rules, sizeof(struct model_rule));
	vec_init(&l->floor_rules, sizeof(struct model_rule));
	vec_init(&l->files, sizeof(struct load_file));
	vec_init(&l->groups, sizeof(struct load_group));
	vec_init(&l->name_rules, sizeof(uint32_t));
	vec_init(&l->overrides, sizeof(struct load_override));
	intern_init(&l->paths);
	intern_init(&l->group_names);
	intern_init(&l->rule_names);
	intern_init(&l->credential_names);
}

static void loader_fini(struct loader *l)
{
	intern_fini(&l->paths);
	intern_fini(&l->group_names);
	intern_fini(&l->rule_names);
	intern_fini(&l->credential_names);
	vec_fini(&l->model.rules);
	vec_fini(&l->floor_rules);
	free(l->model.floor.image);
	free(l->model.infrastructure.image);
	vec_fini(&l->files);
	vec_fini(&l->groups);
	vec_fini(&l->name_rules);
	vec_fini(&l->overrides);
	arena_fini(&l->arena);
}

static void tell_sources(const struct model *model, const struct policy_load_options *options)
{
	for (size_t i = 0; i < model->credential_count; i++) {
		const struct model_credential *credential = &model->credentials[i];
		const struct mark *at = &credential->source;

		options->each_source(options->each_source_context, &credential->c, at->file,
		        at->line, at->column);
	}
}

static void tell_hosts_of(const struct model_rule *rule, const struct policy_load_options *options)
{
	for (size_t l = 0; l < rule->destinations.count; l++)
		for (size_t i = 0; i < rule->destinations.lists[l].count; i++) {
			const struct model_destination *d = &rule->destinations.lists[l].items[i];
			const struct policy_host_place place = {
			        .host = slice_of(d->key.p + 1, d->key.n - 1),
			        .scheme = d->scheme,
			        .port = d->port ? d->port
			                : rule->port_count > 0
			                        ? rule->ports[0].low
			                        : policy_scheme_default_port(d->scheme),
			        .file = d->mark.file,
			        .line = d->mark.line,
			        .column = d->mark.column,
			};

			if (d->key.p[0] == TARGET_HOST)
				options->each_host(options->each_host_context, &place);
		}
}

static void tell_hosts(const struct model *model, const struct policy_load_options *options)
{
	for (size_t i = 0; i < model->rules.n; i++) {
		const struct model_rule *rule = vec_at(&model->rules, i);

		if (!rule->deny)
			tell_hosts_of(rule, options);
	}
}

int policy_load(const struct policy_reader *reader, const char *path,
        const struct policy_load_options *options, uint8_t **image, size_t *size,
        struct diag_list *diags)
{
	struct loader *l = malloc(sizeof(*l));
	int rc;

	*image = NULL;
	*size = 0;
	if (!l)
		return -ENOMEM;
	loader_init(l, reader, diags);
	l->options = options;
	rc = load_floor(l);
	variables_give(l, options, path);
	if (rc == 0)
		rc = load_all_files(l, path);
	if (options && options->floor && options->each_file)
		options->each_file(options->each_file_context, options->floor);
	if (rc == 0 && l->files.n > 0 && !l->wrong)
		load_contents(l, options);
	for (size_t i = 0; i < l->files.n; i++)
		l->wrong |= ((struct load_file *)vec_at(&l->files, i))->tree.wrong;
	if (rc == 0)
		rc = l->arena.failed ? -ENOMEM : l->wrong ? -EINVAL : 0;
	if (rc == 0)
		rc = load_floor_compile(l);
	if (rc == 0)
		rc = policy_compile(&l->model, image, size);
	if (rc == 0 && options && options->notes)
		variables_note_unused(l, path, options->notes);
	if (rc == 0 && options && options->notes && options->thorough)
		load_registry_note(&l->model, *image, *size, options->notes);
	if (rc == 0 && options && options->notes && options->thorough)
		unused_note_rules(&l->model, ((struct load_file *)vec_at(&l->files, 0))->tree.file,
		        options->notes);
	if (rc == 0 && options && options->each_source)
		tell_sources(&l->model, options);
	if (rc == 0 && options && options->each_host)
		tell_hosts(&l->model, options);
	loader_fini(l);
	free(l);
	return rc;
}
